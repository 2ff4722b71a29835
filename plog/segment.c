#include "plog/segment.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>

static const char magic[8] = "dfcplog1";
enum { FORMAT = 1, FLAG_CUTS = 1 };

struct footer_bytes { /* no padding: each field is aligned */
    char magic[8];
    uint16_t format, flags;
    uint32_t records;
    uint64_t writer;
    uint32_t epoch, n;
    uint64_t data_bytes;
    uint32_t index_bytes, sum;
    uint64_t end, index_sum;
};
_Static_assert(sizeof(struct footer_bytes) == PLOG_FOOTER, "the footer has a fixed size");

static uint64_t blocks_of(uint64_t bytes)
{
    return bytes / PLOG_BLOCK + (bytes % PLOG_BLOCK != 0);
}

static uint32_t sum_of(struct footer_bytes b)
{
    b.sum = 0;
    return (uint32_t)XXH3_64bits(&b, sizeof b);
}

/* --- writing ---------------------------------------------------------------------------------- */

void plog_segment_done(struct plog_segment *s)
{
    buf_done(&s->bytes);
    plog_encoder_done(&s->index);
    *s = (struct plog_segment){.end = 0};
}

bool plog_segment_empty(const struct plog_segment *s)
{
    return s->bytes.len == 0 && !s->cuts;
}

void plog_segment_write(struct plog_segment *s, const void *data, size_t length, uint64_t offset)
{
    plog_encode_write(&s->index, offset, length);
    buf_append(&s->bytes, data, length);
    if (offset + length > s->end)
        s->end = offset + length;
}

void plog_segment_cut(struct plog_segment *s, uint64_t length)
{
    plog_encode_cut(&s->index, length);
    s->cuts = true;
}

void plog_segment_seal(struct plog_segment *s, struct plog_segment_name *name)
{
    const uint64_t data = s->bytes.len, blocks = blocks_of(data);
    plog_encode_flush(&s->index);
    assert(blocks * 8 + s->index.out.len <= UINT32_MAX);
    name->end = s->end;
    name->bytes = data;
    name->cuts = s->cuts;
    buf_reserve(&s->bytes, blocks * 8 + s->index.out.len + PLOG_FOOTER);
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t left = data - i * PLOG_BLOCK;
        const uint64_t sum = htole64(
            XXH3_64bits(s->bytes.data + i * PLOG_BLOCK, left < PLOG_BLOCK ? left : PLOG_BLOCK));
        buf_append(&s->bytes, &sum, sizeof sum);
    }
    buf_append(&s->bytes, s->index.out.data, s->index.out.len);
    const size_t index_bytes = s->bytes.len - data;
    uint8_t footer[PLOG_FOOTER];
    plog_footer_print(
        &(struct plog_footer){.name = *name,
                              .records = s->index.records,
                              .index_bytes = (uint32_t)index_bytes,
                              .index_sum = XXH3_64bits(s->bytes.data + data, index_bytes)},
        footer);
    buf_append(&s->bytes, footer, sizeof footer);
}

void plog_footer_print(const struct plog_footer *f, uint8_t bytes[static PLOG_FOOTER])
{
    struct footer_bytes b = {.format = htole16(FORMAT),
                             .flags = htole16(f->name.cuts ? FLAG_CUTS : 0),
                             .records = htole32(f->records),
                             .writer = htole64(f->name.writer),
                             .epoch = htole32(f->name.epoch),
                             .n = htole32(f->name.n),
                             .data_bytes = htole64(f->name.bytes),
                             .index_bytes = htole32(f->index_bytes),
                             .end = htole64(f->name.end),
                             .index_sum = htole64(f->index_sum)};
    memcpy(b.magic, magic, sizeof magic);
    b.sum = htole32(sum_of(b));
    memcpy(bytes, &b, sizeof b);
}

/* --- reading ---------------------------------------------------------------------------------- */

int plog_footer_parse(const uint8_t bytes[static PLOG_FOOTER], struct plog_footer *f,
                      struct error *err)
{
    struct footer_bytes b;
    memcpy(&b, bytes, sizeof b);
    if (memcmp(b.magic, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "it does not end as a segment does");
    if (le32toh(b.sum) != sum_of(b))
        return error_set(err, E_CORRUPT, "the footer's checksum is wrong");
    if (le16toh(b.format) != FORMAT)
        return error_set(err, E_UNSUPPORTED, "format %u is of a later release", le16toh(b.format));
    *f = (struct plog_footer){.name = {.epoch = le32toh(b.epoch),
                                       .writer = le64toh(b.writer),
                                       .n = le32toh(b.n),
                                       .end = le64toh(b.end),
                                       .bytes = le64toh(b.data_bytes),
                                       .cuts = (le16toh(b.flags) & FLAG_CUTS) != 0},
                              .records = le32toh(b.records),
                              .index_bytes = le32toh(b.index_bytes),
                              .index_sum = le64toh(b.index_sum)};
    if (f->name.bytes > PLOG_OFFSET_MAX || f->name.end > PLOG_OFFSET_MAX ||
        blocks_of(f->name.bytes) > f->index_bytes / 8)
        return error_set(err, E_CORRUPT, "the footer is out of bounds");
    return 0;
}

uint64_t plog_footer_size(const struct plog_footer *f)
{
    return f->name.bytes + f->index_bytes + PLOG_FOOTER;
}

struct plog_cursor plog_index_records(const struct plog_footer *f, const uint8_t *index)
{
    return (struct plog_cursor){.at = index + blocks_of(f->name.bytes) * 8,
                                .end = index + f->index_bytes};
}

int plog_index_check(const struct plog_footer *f, const uint8_t *index, struct error *err)
{
    struct plog_cursor c = plog_index_records(f, index);
    struct plog_record r;
    uint64_t records = 0, end = 0;
    bool cuts = false;
    int code;
    if (XXH3_64bits(index, f->index_bytes) != f->index_sum)
        return error_set(err, E_CORRUPT, "the index's checksum is wrong");
    while ((code = plog_cursor_next(&c, &r, err)) > 0) {
        records++;
        cuts = cuts || r.is_cut;
        if (!r.is_cut && plog_record_end(&r) > end)
            end = plog_record_end(&r);
    }
    if (code < 0)
        return code;
    if (records != f->records || cuts != f->name.cuts || end != f->name.end ||
        c.physical != f->name.bytes)
        return error_set(err, E_CORRUPT, "the index is another segment's");
    return 0;
}

bool plog_index_block(const struct plog_footer *f, const uint8_t *index, uint64_t block,
                      const void *data, size_t len)
{
    const uint64_t from = block * PLOG_BLOCK;
    uint64_t sum;
    if (block >= blocks_of(f->name.bytes) ||
        len != (f->name.bytes - from < PLOG_BLOCK ? f->name.bytes - from : PLOG_BLOCK))
        return false;
    memcpy(&sum, index + block * 8, sizeof sum);
    return XXH3_64bits(data, len) == le64toh(sum);
}
