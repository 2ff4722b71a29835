#include "ec/header.h"

#include <string.h>
#include <xxhash.h>

enum { FORMAT = 1 };

uint64_t ec_tag(uint64_t bucket_id, const char *name, uint64_t term, uint64_t map, uint64_t counter)
{
    const uint64_t numbers[] = {bucket_id, term, map, counter};
    uint64_t seed = XXH3_64bits(numbers, sizeof numbers);
    return XXH3_64bits_withSeed(name, strlen(name), seed);
}

static unsigned char *put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
    return at + bytes;
}

static const unsigned char *get(const unsigned char *at, uint64_t *value, size_t bytes)
{
    *value = 0;
    for (size_t i = 0; i < bytes; i++)
        *value |= (uint64_t)at[i] << 8 * i;
    return at + bytes;
}

void ec_header_encode(const struct ec_header *h, unsigned char out[static EC_HEADER_BYTES])
{
    unsigned char *at = out;
    at = put(at, FORMAT, 1);
    at = put(at, h->layout.k, 1);
    at = put(at, h->layout.m, 1);
    at = put(at, h->index, 1);
    at = put(at, h->layout.unit, 4);
    at = put(at, h->layout.length, 8);
    at = put(at, h->term, 8);
    at = put(at, h->map, 8);
    at = put(at, h->counter, 8);
    at = put(at, h->tag, 8);
    at = put(at, h->object.type, 1);
    size_t digest = checksum_size(h->object.type);
    memset(at, 0, CHECKSUM_MAX);
    memcpy(at, h->object.bytes, digest);
    at = put(at + CHECKSUM_MAX, h->slice_sum, 8);
    put(at, XXH3_64bits(out, (size_t)(at - out)), 8);
}

static int decode_object_sum(const unsigned char *at, uint64_t type, struct ec_header *h,
                             struct error *err)
{
    if (type >= CHECKSUM_TYPES)
        return error_set(err, E_CORRUPT, "a checksum of type %llu", (unsigned long long)type);
    h->object.type = (enum checksum_type)type;
    size_t digest = checksum_size(h->object.type);
    for (size_t i = digest; i < CHECKSUM_MAX; i++) {
        if (at[i] != 0)
            return error_set(err, E_CORRUPT, "bytes behind the checksum");
    }
    memcpy(h->object.bytes, at, digest);
    return 0;
}

static int check_frame(const unsigned char *data, size_t len, struct error *err)
{
    uint64_t sum;
    if (len > 0 && data[0] > FORMAT)
        return error_set(err, E_UNSUPPORTED, "a slice of format %u, which a newer release wrote",
                         data[0]);
    if (len != EC_HEADER_BYTES)
        return error_set(err, E_CORRUPT, "a header of %zu bytes, not %d", len, EC_HEADER_BYTES);
    get(data + EC_HEADER_BYTES - 8, &sum, 8);
    if (data[0] != FORMAT || sum != XXH3_64bits(data, EC_HEADER_BYTES - 8))
        return error_set(err, E_CORRUPT, "the header of a slice is damaged");
    return 0;
}

int ec_header_decode(const unsigned char *data, size_t len, struct ec_header *h, struct error *err)
{
    uint64_t k, m, index, unit, type;
    int code = check_frame(data, len, err);
    if (code != 0)
        return code;
    *h = (struct ec_header){0};
    const unsigned char *at = get(data + 1, &k, 1);
    at = get(at, &m, 1);
    at = get(at, &index, 1);
    at = get(at, &unit, 4);
    at = get(at, &h->layout.length, 8);
    at = get(at, &h->term, 8);
    at = get(at, &h->map, 8);
    at = get(at, &h->counter, 8);
    at = get(at, &h->tag, 8);
    at = get(at, &type, 1);
    h->layout.k = (unsigned)k;
    h->layout.m = (unsigned)m;
    h->layout.unit = (uint32_t)unit;
    h->index = (unsigned)index;
    if ((code = decode_object_sum(at, type, h, err)) != 0)
        return code;
    get(at + CHECKSUM_MAX, &h->slice_sum, 8);
    if ((code = ec_layout_check(&h->layout, err)) != 0)
        return error_recode(err, E_CORRUPT, "the header of a slice");
    return index < k + m ? 0
                         : error_set(err, E_CORRUPT, "slice %llu of %llu",
                                     (unsigned long long)index, (unsigned long long)(k + m));
}

static int differs(const char *what, uint64_t a, uint64_t b, struct error *err)
{
    return error_set(err, E_CORRUPT, "slices of different objects: %s %llu and %llu", what,
                     (unsigned long long)a, (unsigned long long)b);
}

int ec_header_match(const struct ec_header *a, const struct ec_header *b, struct error *err)
{
    const struct {
        const char *what;
        uint64_t a, b;
    } rows[] = {
        {"data slices", a->layout.k, b->layout.k},
        {"parity slices", a->layout.m, b->layout.m},
        {"unit", a->layout.unit, b->layout.unit},
        {"length", a->layout.length, b->layout.length},
        {"term", a->term, b->term},
        {"map", a->map, b->map},
        {"counter", a->counter, b->counter},
        {"tag", a->tag, b->tag},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].a != rows[i].b)
            return differs(rows[i].what, rows[i].a, rows[i].b, err);
    }
    if (!checksum_equal(&a->object, &b->object))
        return error_set(err, E_CORRUPT, "slices of different objects: their checksums differ");
    if (a->index == b->index)
        return error_set(err, E_CORRUPT, "slice %u is there twice", a->index);
    return 0;
}

int ec_header_check_file(const struct ec_header *h, uint64_t file_bytes, struct error *err)
{
    uint64_t wants = ec_layout_slice_bytes(&h->layout);
    if (file_bytes == wants)
        return 0;
    return error_set(err, E_CORRUPT, "slice %u has %llu bytes, not %llu", h->index,
                     (unsigned long long)file_bytes, (unsigned long long)wants);
}
