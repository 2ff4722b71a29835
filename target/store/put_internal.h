/* A PUT under way, for the files that make it: put.c, put_bytes.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/direct.h"
#include "target/store/commit.h"
#include "target/store/object.h"
#include "target/store/put_sums.h"

struct arena;
struct file_md5;

struct object_put {
    struct commit commit; /* first: see put_of() */
    struct object_condition condition;
    struct arena *texts;
    uint64_t size;    /* announced, or OBJECT_SIZE_UNKNOWN */
    uint64_t written; /* what object_put_write() was given */
    uint64_t claimed; /* so far room was asked for … */
    bool allocated;   /* … and taken, more than may be written */
    uint64_t hollow;  /* how many bytes it has that do not come */
    struct put_sums sums;
    struct file_md5 *md5; /* or NULL */
    char *buffer;
    size_t buffer_size, buffered;
    struct direct direct; /* how they are written */
    bool unread, frees;
    bool finished; /* all bytes have come, and are what they should be */
    bool decided;  /* a write of our own, whose version other owners have */
    bool ranks;    /* of the same version the greater rank stays */
    bool unnamed;  /* it gets no name */
    bool linked;   /* a file had the bytes (struct object_file) */
    bool yields;   /* it takes the place of nothing that is pending */
    object_done_fn *done;
    void *arg;
};

static inline bool put_is_announced(const struct object_put *p)
{
    return p->size != OBJECT_SIZE_UNKNOWN;
}

static inline bool put_is_tombstone(const struct object_put *p)
{
    return (p->commit.attr.flags & ATTR_TOMBSTONE) != 0;
}

/* Other owners have it already, and what it stands for must be known here, too. */
static inline bool put_is_known(const struct object_put *p)
{
    return p->commit.moved && (p->size == 0 || p->hollow > 0) && !put_is_tombstone(p);
}

/* A tombstone makes room: space_reserve is kept for it.  What moves here without bytes may take a
 * part of that (known.h). */
static inline bool put_takes_room(const struct object_put *p)
{
    return !put_is_tombstone(p) && !put_is_known(p) && !p->linked;
}

/* Room for the byte at `at`, and some behind it.  E_NO_SPACE. */
int object_put_claim(struct object_put *p, uint64_t at, struct error *err);
