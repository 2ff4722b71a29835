/* One part of an upload on its way to the disk.
 *
 *   begin ─▶ more, more, … ─▶ end:  MD5 ─▶ sync bytes ─▶ record in the log ─▶ sync it ─▶ done()
 *      └────────┴─▶ abort
 *
 * Without `sync` the record follows the MD5 at once.  One thread at a time; done() may come from
 * any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/checksum.h"
#include "target/uploads/uploads.h"

struct part_write;
struct hashers;

struct part_spec {
    unsigned number;
    uint64_t size; /* or OBJECT_SIZE_UNKNOWN */
    bool sync;
    const struct checksum_value *expect; /* the MD5 that it must have, or NULL */
    const struct s3_sum_text *sum; /* what it must have, where the upload has checksums; or NULL */
    struct hashers *md5;           /* file_md5.h */
};

/* The part, or NULL and the error. */
typedef void part_done_fn(void *arg, const struct part *part, const struct error *err);

/* Takes a reference of the upload.  E_INVALID: also a checksum of another algorithm than the
 * upload's.  E_TOO_LARGE, E_NO_SPACE; E_NOT_READY: it is being
 * completed; E_NOT_FOUND: it is over. */
int part_write_begin(struct upload *u, const struct part_spec *spec, struct part_write **out,
                     struct error *err);
/* After an error only part_write_abort() is left. */
int part_write_more(struct part_write *w, const void *data, size_t len, struct error *err);
/* Ends it in any case, and calls done() once.  E_LENGTH, E_CHECKSUM, E_NOT_FOUND: nothing was
 * stored. */
void part_write_end(struct part_write *w, part_done_fn *done, void *arg);
void part_write_abort(struct part_write *w); /* NULL is fine */
