#include "mount/meta/postgres_array.h"

#include <endian.h>

static void put32(struct buf *out, uint32_t number)
{
    const uint32_t big = htobe32(number);
    buf_append(out, &big, sizeof big);
}

void postgres_array_begin(struct buf *out, enum postgres_type type, uint32_t count)
{
    enum { DIMENSIONS = 1, NULLS = 0, FIRST = 1 };
    put32(out, DIMENSIONS);
    put32(out, NULLS);
    put32(out, type);
    put32(out, count);
    put32(out, FIRST);
}

void postgres_array_bytes(struct buf *out, const void *data, uint32_t size)
{
    put32(out, size);
    if (size > 0)
        buf_append(out, data, size);
}

void postgres_array_int8(struct buf *out, int64_t number)
{
    const uint64_t big = htobe64((uint64_t)number);
    postgres_array_bytes(out, &big, sizeof big);
}

void postgres_array_int4(struct buf *out, int32_t number)
{
    const uint32_t big = htobe32((uint32_t)number);
    postgres_array_bytes(out, &big, sizeof big);
}
