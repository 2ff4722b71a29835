/* The part of a check that is about quotas.  Pure; the rest of the check gives what it has read.
 *
 *     counters   the inodes that have the quota's number, their lengths, and what is left
 *     numbers    an inode has that of the directory that has its name
 *
 * Not judged are numbers of files with several names, of which one may be elsewhere, what is in the
 * trash, and what is below a quota that is not whole. */
#pragma once

#include "mount/volume/check/findings.h"
#include "mount/volume/quotas.h"

struct check_inode {
    uint64_t stamp;             /* of the attribute */
    uint64_t ino, parent, from; /* from: a directory that has an entry of it */
    uint32_t mode;
    bool queued;
    int64_t nlink, entries;               /* as the attribute says */
    int64_t names, children, directories; /* of the children */
    uint64_t quota;
    int64_t bytes; /* that count */
};

struct check_inodes { /* in order of ino */
    const struct check_inode *all;
    size_t count;
};

struct check_quotas {
    struct quota *all; /* in order of id */
    size_t count, room;
};

void check_quotas_see(struct check_quotas *q, const struct meta_row *row);
void check_quotas_judge(struct check_quotas *q, const struct check_inodes *inodes, struct check *c);
void check_quotas_done(struct check_quotas *q);
