/* The chunked transfer coding, decoded (RFC 9112 section 7.1): strictly, like the head.  Pure;
 * fuzzed.
 *
 *     while ((n = chunk_next(&c, at, end - at, &data, &data_len, err)) >= 0) {
 *         at += n;                      // framing that was passed over
 *         if (data_len == 0)            // at the end, or more input is needed
 *             break;
 *         ... use some of data[0..data_len), which begins at `at` ...
 *         chunk_used(&c, used);
 *         at += used;
 *     }
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

struct chunks {
    enum {
        CHUNK_SIZE,
        CHUNK_BLANK, /* behind the size: an extension or the line's end comes */
        CHUNK_EXTENSION,
        CHUNK_DATA,
        CHUNK_AFTER,
        CHUNK_TRAILER,
        CHUNK_END,
    } state;
    uint64_t left; /* of the data of this chunk; while its size is read: the size so far */
    unsigned digits;
    size_t line; /* length so far of an extension, of the trailers */
    bool cr;     /* a CR has come, its LF has not */
};

#define CHUNKS_INIT ((struct chunks){.state = CHUNK_SIZE})

/* Passes over framing at the beginning of text[0..len): returns its length, and the data that
 * follows it (*data_len bytes; 0: none in this input).  E_INVALID for what is malformed. */
ssize_t chunk_next(struct chunks *c, const char *text, size_t len, const char **data,
                   size_t *data_len, struct error *err);
void chunk_used(struct chunks *c, size_t len); /* of the data */
bool chunk_ended(const struct chunks *c);
