#include "ais/msgpack.h"

#include <assert.h>
#include <string.h>

/* The first bytes of the formats, by the length of what follows. */
enum {
    FIXMAP = 0x80,
    FIXARRAY = 0x90,
    FIXSTR = 0xa0,
    UINT8 = 0xcc,
    UINT16 = 0xcd,
    UINT32 = 0xce,
    UINT64 = 0xcf,
    STR8 = 0xd9,
    STR16 = 0xda,
    STR32 = 0xdb,
    ARRAY16 = 0xdc,
    ARRAY32 = 0xdd,
    MAP16 = 0xde,
    MAP32 = 0xdf,
};

/* `bytes` of a number, the most significant first, behind the format's byte. */
static void put(struct buf *out, int format, uint64_t value, unsigned bytes)
{
    buf_putc(out, (char)format);
    for (unsigned i = bytes; i > 0; i--)
        buf_putc(out, (char)(value >> 8 * (i - 1) & 0xff));
}

static void put_head(struct buf *out, uint32_t count, int fix, int of16, int of32)
{
    if (count < 16)
        put(out, fix | (int)count, 0, 0);
    else if (count <= UINT16_MAX)
        put(out, of16, count, 2);
    else
        put(out, of32, count, 4);
}

void msgpack_put_map(struct buf *out, uint32_t pairs)
{
    put_head(out, pairs, FIXMAP, MAP16, MAP32);
}

void msgpack_put_array(struct buf *out, uint32_t items)
{
    put_head(out, items, FIXARRAY, ARRAY16, ARRAY32);
}

void msgpack_put_str(struct buf *out, const char *text)
{
    size_t len = strlen(text);
    assert(len <= UINT32_MAX);
    if (len < 32)
        put(out, FIXSTR | (int)len, 0, 0);
    else if (len <= UINT8_MAX)
        put(out, STR8, len, 1);
    else if (len <= UINT16_MAX)
        put(out, STR16, len, 2);
    else
        put(out, STR32, len, 4);
    buf_append(out, text, len);
}

void msgpack_put_u64(struct buf *out, uint64_t value)
{
    if (value < 0x80)
        put(out, (int)value, 0, 0);
    else if (value <= UINT8_MAX)
        put(out, UINT8, value, 1);
    else if (value <= UINT16_MAX)
        put(out, UINT16, value, 2);
    else if (value <= UINT32_MAX)
        put(out, UINT32, value, 4);
    else
        put(out, UINT64, value, 8);
}
