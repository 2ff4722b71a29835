/* The bytes of an archive that is an object: of its file here, or of its slices.
 *
 *     struct archive_source s = {.target = t, .bucket_id = id, .object = &o, .reader = r};
 *     rc = archive_source_open(&s, err);
 *     ... archive_source_read(&s, to, len, offset, err) ...
 *     archive_source_close(&s);
 *
 * In a thread that may wait. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "target/slices/source.h"
#include "target/store/object.h"

struct reader;
struct target;

struct archive_source {
    struct target *target;
    uint64_t bucket_id;
    const struct object *object; /* open, with the size that users see */
    struct reader *reader;       /* of its disk; NULL: this thread reads alone */
    /* Asked now and then, also where nothing comes out for long; what it returns, other than 0,
     * ends the reading. */
    int (*go_on)(void *ctx, struct error *err);
    void *ctx;

    struct ec_reading slices;
    struct buf piece; /* of an object in slices: what was read from `at` on */
    uint64_t at;
};

int archive_source_open(struct archive_source *s, struct error *err);
void archive_source_close(struct archive_source *s); /* also of one that was not opened */
/* Exactly len bytes: a tar_read_fn (sort/shard/tar.h), of which `ctx` is the source. */
int archive_source_read(void *ctx, void *out, size_t len, uint64_t offset, struct error *err);
/* What the readers of archives say, in the words of who reads members: E_ARCHIVE_DAMAGED,
 * E_NOT_ARCHIVE; another code stays. */
int archive_source_explain(const struct archive_source *s, int code, struct error *err);
