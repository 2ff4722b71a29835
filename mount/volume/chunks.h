/* A file's chunks within a transaction. */
#pragma once

#include "mount/volume/releases.h"

/* Entries that a chunk may have before those that show nothing are taken out. */
enum { CHUNKS_PRUNE_ABOVE = 8 };

struct chunk {
    struct meta_key key;
    struct meta_value value; /* as it was read */
    struct slice_list list;
};

/* One that was read: its entries.  0 or -errno. */
int chunks_parse(struct txn *t, struct chunk *c);
/* One entry more; prunes, and remembers in `r` what is gone. */
void chunks_add(struct txn *t, struct chunk *c, const struct slice_entry *e, struct releases *r);
/* Entries that show nothing are taken out. */
void chunks_prune(struct txn *t, struct chunk *c, struct releases *r);
/* Steps that put the list in the place of what was read. */
void chunks_store(struct txn *t, const struct chunk *c);

/* Bytes from `from` to `to` of the file become zeros, and entries that show nothing go.  The caller
 * expects the attribute's `changes` as they were read, and adds to them: chunks that were not there
 * need no expectation then. */
int chunks_clear(struct txn *t, uint64_t ino, uint64_t from, uint64_t to, struct releases *r);
/* The file's length becomes `length`: steps on its chunks and its attribute, of which `a` is what
 * was read. */
int chunks_truncate(struct txn *t, uint64_t ino, const struct attr *a, int64_t length,
                    struct releases *r);
/* The chunk is looked at after so long, and stored anew if it is messy then (compact.c). */
void compact_queue(struct txn *t, uint64_t ino, uint64_t chunk, uint64_t after_ms);
/* EFBIG: no file is so long. */
int chunks_check_end(int64_t at, uint64_t length);
