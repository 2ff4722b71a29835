/* A metadata engine: where a volume keeps names, attributes and slice entries.
 *
 * An engine knows keys, stamped values and commits, and nothing of files.  It has seven calls:
 *
 *     open, close
 *     read     a batch of questions, answered at one moment
 *     commit   expectations and changes, all or nothing
 *     queue    keys of a QUEUE kind that are due
 *     snapshot all keys, of one moment
 *     now      the engine's clock, by which sessions of several machines are judged
 *
 * Stamps.  A value has a stamp, which PUT and SET give anew, and ADD and RAISE leave.  A stamp is
 * never given twice, so that "it has the stamp that was read" means "nothing but counters changed".
 *
 * Results.  0, or a code of common/error.def with its sentence:
 *     E_PRECONDITION  commit: an expectation does not hold, nothing was changed
 *     E_IN_DOUBT      commit: it was made, will be made, or neither; nothing else leaves doubt
 *     E_CORRUPT       a value is no value of this release
 *     E_NO_SPACE, E_TIMEOUT, E_IO, …
 *
 * Any thread may call, and calls may run at the same time. */
#pragma once

#include "common/arena.h"
#include "common/error.h"
#include "mount/meta/keys.h"

struct meta_value {
    bool found; /* false: the key is absent, and the rest is 0 */
    uint64_t stamp;
    const uint8_t *data; /* in the arena of the read */
    size_t size;
};

/* ---- read ---- */

enum meta_ask {
    META_GET,    /* the value of a key */
    META_FOLLOW, /* of an ENTRY, and the attribute of the inode that it names */
    META_PAGE,   /* the children of key.id, or a whole POINT kind, in order of their keys */
};

struct meta_row {
    struct meta_key key; /* its name is in the arena */
    struct meta_value value;
    struct meta_value attr; /* of entries: the inode's */
};

struct meta_item {
    enum meta_ask ask;
    struct meta_key key;
    /* of a page */
    bool after;   /* only what follows key; otherwise from the beginning */
    size_t limit; /* rows at most; 0: none.  An engine may give fewer, with `more` */
    /* filled: */
    struct meta_value value;
    struct meta_value attr;
    struct meta_row *rows;
    size_t count;
    bool more; /* the page ended at a limit, its own or the engine's */
};

struct meta_read {
    struct arena *arena; /* answers live in it */
    struct meta_item *items;
    size_t count;
};

/* ---- commit ---- */

enum meta_step_kind {
    /* all expectations are looked at before the first change */
    META_EXPECT_ABSENT,
    META_EXPECT_PRESENT,
    META_EXPECT_STAMP,    /* present with `stamp` */
    META_EXPECT_EQUAL,    /* the field at `offset` is `number`; present */
    META_EXPECT_AT_LEAST, /* … is not less */
    /* changes; in their order */
    META_PUT,    /* data, whole */
    META_DELETE, /* absent is fine */
    META_SET,    /* data at `offset` of what is there */
    META_ADD,    /* `number` to the field at `offset` */
    META_RAISE,  /* the field to `number`, if it is less */
};

/* A field is a signed 64-bit little-endian number in a value.  SET, ADD and RAISE of an absent key,
 * or outside of its value, are expectations that do not hold.  They must not follow a PUT or a
 * DELETE of the same key. */
struct meta_step {
    enum meta_step_kind kind;
    struct meta_key key;
    uint64_t stamp;
    size_t offset;
    int64_t number;
    const void *data; /* borrowed until commit returns */
    size_t size;
};

struct meta_commit {
    const struct meta_step *steps;
    size_t count;
    size_t conflict; /* filled with E_PRECONDITION: which step */
};

/* ---- engines ---- */

struct meta;

/* 0, or a code with its sentence in err, which ends the call.  A row holds until the return, has no
 * attr, and the engine must not be called meanwhile. */
typedef int meta_visit(void *context, const struct meta_row *row, struct error *err);

struct meta_ops {
    const char *scheme; /* of its URLs, without "://" */
    /* `where` is what follows "://".  make: an empty one where there is none; otherwise
     * E_NOT_FOUND. */
    int (*open)(const char *where, bool make, struct meta **out, struct error *err);
    void (*close)(struct meta *m); /* no call may be running */
    int (*read)(struct meta *m, struct meta_read *r, struct error *err);
    int (*commit)(struct meta *m, struct meta_commit *c, struct error *err);
    /* As a page of the kind's keys whose id is at most `until`: item->key.kind and limit count. */
    int (*queue)(struct meta *m, struct arena *arena, struct meta_item *item, uint64_t until,
                 struct error *err);
    /* All rows as they were at one moment, while others commit, in bounded memory.  FORMAT is the
     * first; the others have no order, and one may come twice.  E_NOT_READY: not now. */
    int (*snapshot)(struct meta *m, meta_visit *visit, void *context, struct error *err);
    int (*now)(struct meta *m, int64_t *unix_ms, struct error *err);
};

/* The head of every engine's own struct. */
struct meta {
    const struct meta_ops *ops;
};

void meta_close(struct meta *m); /* NULL is fine */
DEFINE_CLEANUP(struct meta, meta_close);

/* The signed number at `offset` of a value's data; 0 where the data end before it. */
int64_t meta_field(const struct meta_value *value, size_t offset);
void meta_field_put(uint8_t *data, size_t offset, int64_t number);
/* The inode that an ENTRY's value names; 0: it is no such value. */
uint64_t meta_entry_inode(const struct meta_value *value);
enum { META_ENTRY_INODE = 8 }; /* its offset; before it is the type: the S_IFMT bits of a mode */
