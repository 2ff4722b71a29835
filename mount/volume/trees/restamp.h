/* Inodes of a tree get another quota.
 *
 *     quota set   what is below the directory begins to count
 *     rmr         what has moved to the trash counts no more
 *     restore     what leaves the trash counts again, as far as there is room
 *
 * Names of one directory a batch at a time.  A directory is read after it has the number: so what
 * is made in it later has it already, and nothing gets in that has not.  A name that is changed
 * within its directory meanwhile may be passed by: walk until nothing is found. */
#pragma once

#include "mount/volume/trees/trees.h"

struct restamp {
    struct volume *v;
    uint64_t quota;                     /* 0: none */
    bool limited;                       /* EDQUOT where it has no room */
    const struct volume_caller *caller; /* asked whether it stops; NULL: never */
    uint64_t changed;                   /* filled: inodes */
    int64_t beat_ns;
};

/* What is below the directory, which has the quota.  EBUSY: a directory has a quota of its own.
 * ENODATA: the quota is gone.  EFBIG: its files are longer in sum than a quota counts. */
int restamp_tree(struct restamp *r, uint64_t directory);
/* A name of the trash, and what is below.  A file with another name keeps its number.  EXDEV: such
 * a file would come back, by a limited one, to a place with another quota. */
int restamp_name(struct restamp *r, uint64_t hour, const char *name);
