/* The body of a request: bytes that are known, a file, or a source that can be read only once.
 *
 * The first 256 KiB of a read-once source are kept, so that a short one is as good as memory and
 * a long one survives a redirect or a refusal that comes before its body was really sent.
 *
 *     body_begin      before each try: from the first byte on
 *     body_read       until 0
 *     body_repeatable may another try begin? */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/dfc.h"
#include "common/checksum.h"
#include "common/cleanup.h"

#define BODY_KEPT_BYTES (256u << 10)

struct body;

struct body *body_from_memory(const void *data, size_t size); /* borrowed */
/* From the descriptor's position; borrowed.  A regular file can be read again. */
int body_from_fd(int fd, struct body **out, struct dfc_error *err);
struct body *body_from_source(const struct dfc_source *source);
void body_free(struct body *b);
DEFINE_CLEANUP(struct body, body_free);

/* What remains to be known before the request's headers are made: reads the kept part of a
 * read-once source, which may show its size. */
int body_prime(struct body *b, struct dfc_error *err);

int64_t body_size(const struct body *b); /* -1 where unknown */
bool body_repeatable(const struct body *b);
bool body_in_store(const struct body *b);   /* memory or file: reading it once more is cheap */
bool body_rereadable(const struct body *b); /* any number of times */
/* The checksum over all of it.  Only where body_rereadable(). */
int body_checksum(struct body *b, enum checksum_type type, struct checksum_value *out,
                  struct dfc_error *err);

int body_begin(struct body *b, struct dfc_error *err);
/* Bytes, 0 at the end, or a negative result with err filled.  A body that ends before its size is
 * a failure; what a growing file has beyond is left out. */
ptrdiff_t body_read(struct body *b, void *to, size_t room, struct dfc_error *err);
uint64_t body_sent(const struct body *b); /* bytes read since body_begin() */

/* Computes the checksum on the way; after the end of a try, body_seen() is what went out. */
void body_watch(struct body *b, enum checksum_type type);
bool body_seen(struct body *b, struct checksum_value *out);
