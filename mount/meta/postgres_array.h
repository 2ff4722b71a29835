/* Arrays as parameters of statements, in PostgreSQL's binary form.  Pure. */
#pragma once

#include <stdint.h>

#include "common/buf.h"

enum postgres_type { POSTGRES_BYTEA = 17, POSTGRES_INT8 = 20, POSTGRES_INT4 = 23 };

/* One dimension of `count` elements, which follow by the functions below. */
void postgres_array_begin(struct buf *out, enum postgres_type type, uint32_t count);
void postgres_array_bytes(struct buf *out, const void *data, uint32_t size);
void postgres_array_int8(struct buf *out, int64_t number);
void postgres_array_int4(struct buf *out, int32_t number);
