/* Numbers and texts in order, out of or into whatever carries bytes: the form of everything that
 * sort/ sends to a peer or puts into a work file.
 *
 * An encoder collects into a buffer of CODEC_BUFFER bytes and hands full ones to its sink; a
 * decoder refills such a buffer from its source.  Both keep the XXH3 checksum of all that went
 * through, for the end of a stream.  A decoder trusts nothing: every getter fails with E_LENGTH
 * where the bytes end early and E_CORRUPT where they make no sense. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "io/varint.h"

#define CODEC_BUFFER 65536

struct sink {
    int (*write)(void *ctx, const void *data, size_t len, struct error *err);
    void *ctx;
};

struct source {
    /* 1..max bytes, 0 at the end, or an error code. */
    ssize_t (*read)(void *ctx, void *out, size_t max, struct error *err);
    void *ctx;
};

struct sink sink_buf(struct buf *b);

struct span {
    const unsigned char *data;
    size_t len;
};
struct source source_span(struct span *s); /* reads it away */

struct encoder {
    struct sink sink;
    struct checksum *checksum;
    unsigned char *buffer;
    size_t used;
};

void encoder_init(struct encoder *e, struct sink sink);
void encoder_done(struct encoder *e); /* frees; what was not flushed is gone */
int encoder_flush(struct encoder *e, struct error *err);
int encoder_put(struct encoder *e, const void *data, size_t len, struct error *err);
int encoder_put_u64(struct encoder *e, uint64_t value, struct error *err); /* 8 bytes, low first */
/* Ends a stream: the checksum of everything before it, and a flush. */
int encoder_put_checksum(struct encoder *e, struct error *err);

static inline int encoder_put_varint(struct encoder *e, uint64_t value, struct error *err)
{
    if (CODEC_BUFFER - e->used < VARINT_MAX) {
        int rc = encoder_flush(e, err);
        if (rc != 0)
            return rc;
    }
    e->used += varint_put(e->buffer + e->used, value);
    return 0;
}

struct decoder {
    struct source source;
    struct checksum *checksum;
    unsigned char *buffer;
    size_t start;    /* of what has not been decoded */
    size_t end;      /* of what has been read */
    size_t hashed;   /* of what the checksum has seen */
    uint64_t before; /* bytes that left the buffer */
    bool at_end;
};

void decoder_init(struct decoder *d, struct source source);
void decoder_done(struct decoder *d);
int decoder_get(struct decoder *d, void *out, size_t len, struct error *err);
int decoder_get_u64(struct decoder *d, uint64_t *value, struct error *err);
int decoder_get_varint_slow(struct decoder *d, uint64_t *value, struct error *err);
/* A number of at most `max`; `what` names it in the error. */
int decoder_get_bounded(struct decoder *d, uint64_t max, const char *what, uint64_t *value,
                        struct error *err);
/* Compares with the stream's own (E_CHECKSUM). */
int decoder_get_checksum(struct decoder *d, struct error *err);
int decoder_expect_end(struct decoder *d, struct error *err); /* E_CORRUPT where bytes follow */
uint64_t decoder_offset(const struct decoder *d);             /* bytes decoded so far */

static inline int decoder_get_varint(struct decoder *d, uint64_t *value, struct error *err)
{
    size_t n = varint_get(d->buffer + d->start, d->end - d->start, value);
    if (n == 0)
        return decoder_get_varint_slow(d, value, err);
    d->start += n;
    return 0;
}
