/* From an object's bytes, as they come, to its slices' bytes.  Memory: k + m blocks.
 *
 *     begin ─▶ write() any pieces, in order ─▶ finish(): the headers          one thread at a time
 *
 * The length is known before the first byte: the last stripe is cut by it. */
#pragma once

#include "ec/header.h"

struct ec_sink {
    void *ctx;
    /* One stripe: the next `len` bytes of every slice's file, by slice.  To be taken or copied
     * before it returns; other than 0 ends the encoding. */
    int (*stripe)(void *ctx, unsigned char *const *blocks, size_t len, struct error *err);
};

struct ec_encoder;

/* E_INVALID: ec_layout_check(). */
int ec_encoder_new(const struct ec_layout *layout, uint64_t tag, const struct ec_sink *sink,
                   struct ec_encoder **out, struct error *err);
/* E_LENGTH beyond the layout's length.  After an error only ec_encoder_free() is left. */
int ec_encoder_write(struct ec_encoder *e, const void *data, size_t len, struct error *err);
/* E_LENGTH where bytes are missing.  Fills in layout, tag, index and slice_sum of k + m headers;
 * the rest is the caller's. */
int ec_encoder_finish(struct ec_encoder *e, struct ec_header *headers, struct error *err);
void ec_encoder_free(struct ec_encoder *e);
DEFINE_CLEANUP(struct ec_encoder, ec_encoder_free);
