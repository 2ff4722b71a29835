/* Files that are written from their first byte to their last, and become objects as a whole.
 *
 *     writer_new
 *     writer_append    each write begins where the one before has ended
 *     writer_store     the object appears, or the condition or the store refuses it
 *     writer_free      what was not stored by then never appears
 *
 * Up to one part is kept in memory; such a file is stored by one put, and may be written on and
 * stored again.  A larger file is an upload: full parts are sent while it is written, and the
 * first writer_store() completes it.
 *
 * The parts in memory of all writers are bounded.  A file takes the room of a whole part when it
 * grows beyond WRITER_SMALL bytes, so a writer with room can always send what it has: writers never
 * wait for each other in a circle.
 *
 * A failure stays: the writer fails with it from then on, and stores nothing.  Only what found no
 * room may be written again.  Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "mount/write/budget.h"
#include "mount/write/store.h"

#define WRITER_SMALL (64u << 10)
#define WRITER_PARTS_MAX 10000u
#define WRITER_PART_MIN (5ull << 20) /* bytes of a part that is not the last: libdfc's least */

struct writers_options {
    uint64_t bytes;      /* of all parts in memory; at least one part */
    uint64_t part_bytes; /* at least WRITER_PART_MIN */
    uint64_t wait_ms;    /* a write waits no longer for room */
    unsigned senders;    /* parts on their way at once */
};

/* What the writers of one mount share. */
struct writers;

struct writers *writers_new(const struct writers_options *options, const struct write_store *store);
void writers_free(struct writers *all); /* no writer is left; NULL is fine */
DEFINE_CLEANUP(struct writers, writers_free);

struct writer;

struct writer *writer_new(struct writers *all, const char *key,
                          const struct write_condition *condition);
void writer_free(struct writer *w); /* NULL is fine */
DEFINE_CLEANUP(struct writer, writer_free);

struct writer_bytes {
    uint64_t offset;
    const void *data;
    size_t size;
    bool (*interrupted)(void *context); /* asked while waiting for room; NULL: never */
    void *context;
};

/* The number of bytes taken, fewer after an interruption, or -errno.  EOPNOTSUPP: the offset is not
 * the end, or the file was stored as an upload.  EFBIG: a part more than an upload has.  ENOBUFS:
 * no room for parts. */
ssize_t writer_append(struct writer *w, const struct writer_bytes *bytes);
/* 0 also where nothing changed since the last time; -errno, ESTALE: the condition does not hold. */
int writer_store(struct writer *w);
/* Nothing of it will be stored any more. */
void writer_drop(struct writer *w);
uint64_t writer_size(struct writer *w);
bool writer_is_saved(struct writer *w); /* stored as it is, dropped, or failed for good */
