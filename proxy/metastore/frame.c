#include "proxy/metastore/frame.h"

#include <stdbool.h>
#include <string.h>

#include "common/checksum.h"

enum { SECTOR = 512 };

static void put_u32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> (8 * i));
}

static void put_u64(unsigned char *at, uint64_t v)
{
    put_u32(at, (uint32_t)v);
    put_u32(at + 4, (uint32_t)(v >> 32));
}

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const unsigned char *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static uint32_t crc_of(struct checksum *c)
{
    struct checksum_value v;
    checksum_final(c, &v);
    checksum_free(c);
    /* A digest is big-endian. */
    return (uint32_t)v.bytes[0] << 24 | (uint32_t)v.bytes[1] << 16 | (uint32_t)v.bytes[2] << 8 |
           (uint32_t)v.bytes[3];
}

static uint32_t data_crc(const void *data, size_t len)
{
    struct checksum *c = checksum_new(CHECKSUM_CRC32C);
    checksum_update(c, data, len);
    return crc_of(c);
}

/* Over the header without the field that holds it. */
static uint32_t header_crc(const unsigned char *header)
{
    struct checksum *c = checksum_new(CHECKSUM_CRC32C);
    checksum_update(c, header, 4);
    checksum_update(c, header + 8, FRAME_HEADER_BYTES - 8);
    return crc_of(c);
}

void frame_put(struct buf *out, uint64_t sequence, const void *data, size_t len)
{
    unsigned char header[FRAME_HEADER_BYTES] = {0};
    put_u32(header, (uint32_t)len);
    put_u64(header + 8, sequence);
    put_u32(header + 16, data_crc(data, len));
    put_u32(header + 4, header_crc(header));
    buf_append(out, header, sizeof header);
    buf_append(out, data, len);
}

/* Do the bytes from `offset` on hold a sector, or the rest of one, that was never written? */
static bool has_unwritten_sector(const char *file, size_t size, size_t offset)
{
    while (offset < size) {
        size_t end = (offset / SECTOR + 1) * SECTOR;
        if (end > size)
            end = size;
        bool zero = true;
        for (size_t i = offset; zero && i < end; i++)
            zero = file[i] == 0;
        if (zero)
            return true;
        offset = end;
    }
    return false;
}

enum frame_status frame_get(const char *file, size_t size, size_t offset, struct frame *out,
                            const char **why)
{
    if (offset == size)
        return FRAME_END;
    *why = "the header is cut";
    if (size - offset < FRAME_HEADER_BYTES)
        return FRAME_TORN;
    const unsigned char *header = (const unsigned char *)file + offset;
    *why = "the header's checksum is wrong";
    if (get_u32(header + 4) != header_crc(header))
        return has_unwritten_sector(file, size, offset) ? FRAME_TORN : FRAME_DAMAGED;
    size_t data_at = offset + FRAME_HEADER_BYTES;
    *out = (struct frame){
        .sequence = get_u64(header + 8),
        .data = file + data_at,
        .len = get_u32(header),
        .end = data_at + get_u32(header),
    };
    *why = "the data is cut";
    if (out->end > size)
        return FRAME_TORN;
    if (get_u32(header + 16) == data_crc(out->data, out->len))
        return FRAME_OK;
    *why = "the data's checksum is wrong";
    /* What has a successor was whole: each record was on the disk before the next one began. */
    bool last = out->end == size;
    return last && has_unwritten_sector(file, size, data_at) ? FRAME_TORN : FRAME_DAMAGED;
}
