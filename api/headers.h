/* The headers of one reply, as they arrive line by line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

#define HEADERS_MAX_BYTES (256u << 10)

struct header {
    const char *name;
    const char *value; /* without spaces around it */
};

struct headers {
    struct buf text; /* "Name\0value\0" one after another */
    size_t count;
};

void headers_done(struct headers *h);

/* One line as it came, CRLF and all.  A status line begins a new set: what an interim reply
 * (100 Continue) said is forgotten.  False where the set grows past HEADERS_MAX_BYTES. */
bool headers_add_line(struct headers *h, const char *line, size_t len);

/* The value of the first header of this name (case does not matter), or NULL. */
const char *headers_get(const struct headers *h, const char *name);

/* Walks all of them: start with *at = 0; false after the last. */
bool headers_next(const struct headers *h, size_t *at, struct header *out);

/* A whole number of a header; UINT64_MAX where it is missing or is none. */
uint64_t headers_get_u64(const struct headers *h, const char *name);

/* "bytes 5-9/100" (RFC 9110 14.4) into first and total; false where it is anything else.  A total
 * of "*" gives UINT64_MAX. */
bool headers_parse_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *total);

/* Retry-After: seconds or a date, as milliseconds from now_s; 0 where there is none. */
uint64_t headers_retry_after_ms(const struct headers *h, int64_t now_s);
