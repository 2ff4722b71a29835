/* Giving a finished temporary file an object's name: the one way in which objects, hidden objects
 * and tombstones come into being.
 *
 *   stamp     decides the version, writes the attribute         in the caller's thread
 *   sync      fsync of the file                                 the disk's ring
 *   publish   checks again, index, rename                       the disk's thread
 *   sync      fsync of the directory                            the disk's ring
 *
 * Without `sync` there is only publish, which then stamps, too, in the caller's thread; over
 * another object the bytes are written before, and both come from the disk.  With `sync` another
 * writer may be faster between stamp and publish: then the version is decided anew.
 *
 * With `sync` a rename over an old object exchanges the two, so that the old one can come back
 * where the last step fails, unless the new one `stays`; without, it replaces it, once the new
 * one's bytes have been written to the disk (not flushed: the file system's journal, which is,
 * comes after them), so that power loss leaves the old or the new.  What has just been named
 * without sync is known by its time: life.h. */
#pragma once

#include "io/disk.h"
#include "target/store/object_parts.h"

struct commit {
    unsigned magic;
    struct object_place place;  /* its name lives as long as the commit */
    struct attr attr;           /* all but the version, which is decided here */
    struct object_held earlier; /* what the version must be greater than, too */
    bool moved;                 /* the version is another target's, and stays */
    bool stays;                 /* object_put_commit_as(): not taken back */
    int fd;                     /* of the temporary file; the owner's to close */
    char tmp[MOUNTPATH_TMP_NAME];
    bool sync;
    bool keeps; /* what the rule refuses with E_STALE_MAP keeps its temporary file */
    /* Under the name's lock: may it become the object, given what is there?  May set flags. */
    int (*rule)(struct commit *c, const struct stored *cur, struct error *err);
    void (*seen)(struct commit *c); /* or NULL: under the lock, right before it is */
    /* The end, with c->err; the temporary file is gone, unless commit_is_kept(). */
    void (*done)(struct commit *c);
    struct error err;
    /* the commit's own */
    size_t step;
    int dir_fd;
    bool exchanged; /* the old object is in the temporary name */
    bool created;   /* there was none */
    bool waits;     /* without sync: nothing was done yet, for the bytes are to be written before */
    struct disk_op op;
};

#define COMMIT_MAGIC 0xc0331701u

void commit_run(struct commit *c);
/* At the end: was nothing done, so that it can be run again? */
bool commit_is_kept(const struct commit *c);
/* Asks the rule before the work begins, to refuse early. */
int commit_ask(struct commit *c, struct error *err);
/* The same, and decides the version: for a write that others have before it is committed here. */
int commit_decide(struct commit *c, struct error *err);
