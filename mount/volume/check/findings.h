/* What a check of a volume (check.h) finds. */
#pragma once

#include "mount/volume/slices.h"
#include "mount/meta/keys.h"

enum check_kind {
#define CHECK(name, repair, text) CHECK_##name,
#include "mount/volume/check/check.def"
#undef CHECK
    CHECK_KINDS,
};

struct check_finding {
    enum check_kind kind;
    uint64_t id;                  /* inode; slice; of quotas their number */
    uint64_t other;               /* directory of an entry; time in a queue */
    int64_t is, should;           /* of counters; QUOTA_OF: numbers of quotas */
    uint64_t stamp;               /* NLINK, PARENT, ORPHAN: of the inode's attribute */
    char name[META_NAME_MAX + 1]; /* of an entry */
};

/* A slice that a file names. */
struct check_slice {
    uint64_t slice, ino;
    uint32_t size;
    bool removed; /* the file has no name any more */
};

struct check {
    struct check_finding *findings;
    size_t count, room;
    struct check_slice *slices; /* in order, each once for every entry */
    size_t slice_count, slice_room;
    uint64_t inodes;
};

/* A finding more; one about a counter, if it is wrong. */
struct check_finding *check_add(struct check *c, enum check_kind kind, uint64_t id);
void check_add_counter(struct check *c, enum check_kind kind, uint64_t id, int64_t is,
                       int64_t should);
/* The same of an inode whose names were compared with its attribute, which had this stamp. */
void check_add_names(struct check *c, enum check_kind kind, uint64_t id, uint64_t stamp, int64_t is,
                     int64_t should);
/* "inode 7: wrong number of names: 2, and should be 1"; malloc'ed. */
char *check_text(const struct check_finding *f);
/* Keeps what is about quotas alone. */
void check_keep_quotas(struct check *c);
/* Takes out findings that `again` does not have. */
void check_keep_common(struct check *c, const struct check *again);
void check_done(struct check *c);
