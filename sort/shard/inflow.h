/* A shard's file, read forward through a buffer: what decoders read with.  It is asked for exactly
 * so many bytes, or hands out what it has; going back is possible, and cheap within the buffer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "sort/shard/format.h"

#define INFLOW_BYTES (256 * 1024)

struct inflow {
    const struct format_input *in;
    unsigned char *buffer;
    size_t at, len;
    uint64_t begin; /* offset in the file of the buffer's first byte */
};

void inflow_init(struct inflow *f, const struct format_input *in);
void inflow_done(struct inflow *f);
/* There is at least one byte at `at`, or the file is at its end. */
int inflow_fill(struct inflow *f, struct error *err);
static inline size_t inflow_left(const struct inflow *f)
{
    return f->len - f->at;
}
static inline const unsigned char *inflow_data(const struct inflow *f)
{
    return f->buffer + f->at;
}
static inline uint64_t inflow_offset(const struct inflow *f)
{
    return f->begin + f->at;
}
void inflow_seek(struct inflow *f, uint64_t offset); /* within the file */
/* Exactly len bytes; E_SHARD_CORRUPT where the file ends before. */
int inflow_get(struct inflow *f, void *out, size_t len, struct error *err);
/* The same, each piece to a sink. */
int inflow_copy(struct inflow *f, uint64_t len, struct sink to, struct error *err);
/* "shard 's.zip', byte 17: " and why. */
int inflow_corrupt(const struct inflow *f, const char *why, struct error *err);
int inflow_unsupported(const struct inflow *f, const char *why, struct error *err);

/* --- frames, one behind the other: lz4, zstd ---------------------------------------------------
 */
/* Decompresses a piece of what f has (there may be nothing left: what the codec still holds comes)
 * into out, says how much it made and how much it wants: 0 between two frames.  Moves f->at. */
typedef int inflow_frame_fn(struct inflow *f, void *codec, unsigned char *out, size_t room,
                            size_t *made, size_t *wants, struct error *err);
/* The whole file, to its end, which must be that of a frame. */
int inflow_frames(const struct format_input *in, inflow_frame_fn *step, void *codec, struct sink to,
                  struct error *err);
