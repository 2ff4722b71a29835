/* One segment.  Its words come in the order of the calls; a pointer is written when what it points
 * to gets its place, which is always behind it. */
#include "vdisc/capnp.h"

#include <assert.h>
#include <string.h>

#define WORD 8u
#define FRAMING WORD /* number of segments less one, length of the only one */
#define OFFSET_MAX ((1 << 29) - 1)
#define COUNT_MAX ((1u << 29) - 1)
#define POINTER_LIST 1u
#define SIZE_BYTE 2u
#define SIZE_COMPOSITE 7u

static void put_le(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint8_t *at_word(struct capnp_writer *w, uint64_t word)
{
    return (uint8_t *)w->words.data + FRAMING + word * WORD;
}

/* Zero words at the end; returns the first. */
static uint64_t add_words(struct capnp_writer *w, uint64_t count)
{
    uint64_t first = (w->words.len - FRAMING) / WORD;
    if (first + count > OFFSET_MAX) {
        w->too_large = true;
        return first;
    }
    buf_reserve(&w->words, count * WORD);
    memset(w->words.data + w->words.len, 0, count * WORD + 1);
    w->words.len += count * WORD;
    return first;
}

static uint64_t pointer_word(const struct capnp_place *in, uint16_t pointer)
{
    assert(pointer < in->pointers);
    return in->word + in->data_words + pointer;
}

static uint64_t offset_bits(uint64_t from, uint64_t to)
{
    return (uint64_t)(uint32_t)(to - from - 1) << 2;
}

struct capnp_place capnp_begin(struct capnp_writer *w, uint16_t data, uint16_t pointers)
{
    static const uint8_t framing[FRAMING];
    *w = (struct capnp_writer){0};
    buf_append(&w->words, framing, sizeof framing);
    add_words(w, 1);
    const struct capnp_place before = {.pointers = 1};
    return capnp_put_struct(w, &before, 0, data, pointers);
}

struct capnp_place capnp_put_struct(struct capnp_writer *w, const struct capnp_place *in,
                                    uint16_t pointer, uint16_t data, uint16_t pointers)
{
    uint64_t word = add_words(w, (uint64_t)data + pointers);
    uint64_t from = pointer_word(in, pointer);
    if (!w->too_large)
        put_le(at_word(w, from),
               offset_bits(from, word) | (uint64_t)data << 32 | (uint64_t)pointers << 48, 8);
    return (struct capnp_place){.word = word, .data_words = data, .pointers = pointers};
}

static void put_list_pointer(struct capnp_writer *w, uint64_t from, uint64_t to, unsigned size,
                             uint64_t count)
{
    if (count > COUNT_MAX)
        w->too_large = true;
    if (!w->too_large)
        put_le(at_word(w, from),
               POINTER_LIST | offset_bits(from, to) | (uint64_t)size << 32 | count << 35, 8);
}

struct capnp_place capnp_put_list(struct capnp_writer *w, const struct capnp_place *in,
                                  uint16_t pointer, uint32_t count, uint16_t data,
                                  uint16_t pointers)
{
    uint64_t words = (uint64_t)count * (data + (uint64_t)pointers);
    uint64_t tag = add_words(w, words + 1);
    put_list_pointer(w, pointer_word(in, pointer), tag, SIZE_COMPOSITE, words);
    if (!w->too_large)
        put_le(at_word(w, tag),
               (uint64_t)count << 2 | (uint64_t)data << 32 | (uint64_t)pointers << 48, 8);
    return (struct capnp_place){.word = tag + 1, .data_words = data, .pointers = pointers};
}

struct capnp_place capnp_item(const struct capnp_place *list, uint32_t i)
{
    struct capnp_place item = *list;
    item.word += (uint64_t)i * (list->data_words + (uint64_t)list->pointers);
    return item;
}

static void put_bytes(struct capnp_writer *w, const struct capnp_place *in, uint16_t pointer,
                      const void *bytes, size_t len, size_t zeros)
{
    if (len == 0)
        return;
    uint64_t word = add_words(w, (len + zeros + WORD - 1) / WORD);
    put_list_pointer(w, pointer_word(in, pointer), word, SIZE_BYTE, len + zeros);
    if (!w->too_large)
        memcpy(at_word(w, word), bytes, len);
}

void capnp_put_text(struct capnp_writer *w, const struct capnp_place *in, uint16_t pointer,
                    const char *text, size_t len)
{
    put_bytes(w, in, pointer, text, len, 1);
}

void capnp_put_data(struct capnp_writer *w, const struct capnp_place *in, uint16_t pointer,
                    const void *bytes, size_t len)
{
    put_bytes(w, in, pointer, bytes, len, 0);
}

static void put_number(struct capnp_writer *w, const struct capnp_place *in, unsigned byte,
                       uint64_t value, unsigned bytes)
{
    assert(byte + bytes <= in->data_words * WORD);
    if (!w->too_large)
        put_le(at_word(w, in->word) + byte, value, bytes);
}

void capnp_put_u16(struct capnp_writer *w, const struct capnp_place *in, unsigned byte,
                   uint16_t value)
{
    put_number(w, in, byte, value, 2);
}

void capnp_put_u32(struct capnp_writer *w, const struct capnp_place *in, unsigned byte,
                   uint32_t value)
{
    put_number(w, in, byte, value, 4);
}

int capnp_end(struct capnp_writer *w, struct error *err)
{
    if (w->too_large)
        return error_set(err, E_IMAGE_TOO_LARGE,
                         "the table of the image has more than 4 GiB: make several images");
    put_le((uint8_t *)w->words.data + 4, (w->words.len - FRAMING) / WORD, 4);
    return 0;
}

void capnp_writer_done(struct capnp_writer *w)
{
    buf_done(&w->words);
}
