/* Bytes that are appended once and read at any place: in memory up to a limit, from there on in a
 * work file, or several where disks get full.  The tables of a job live in blobs, so that their
 * memory has a bound.
 *
 * Appending is one thread's at a time; reading is anybody's, also while another thread appends,
 * as long as the bytes that are read were there before. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/base/codec.h"
#include "sort/base/env.h"

struct blob;

struct blob *blob_new(const struct sort_env *env, uint64_t memory_limit);
void blob_free(struct blob *b);
DEFINE_CLEANUP(struct blob, blob_free);
int blob_append(struct blob *b, const void *data, size_t len, struct error *err);
uint64_t blob_size(const struct blob *b);
int blob_read(const struct blob *b, uint64_t offset, void *out, size_t len, struct error *err);
/* They will be read soon: where they are in memory the processor fetches them. */
void blob_prefetch(const struct blob *b, uint64_t offset);
void blob_reset(struct blob *b); /* empty again; keeps its memory and file */

struct sink sink_blob(struct blob *b);
/* The bytes from `at` to `end`; reading moves `at`. */
struct blob_range {
    const struct blob *blob;
    uint64_t at;
    uint64_t end;
};
struct source source_blob(struct blob_range *r);
