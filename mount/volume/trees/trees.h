/* Calls on whole trees of a volume, each of many transactions.  Other clients see the steps, and
 * may change the tree meanwhile.
 *
 * The kernel looks at rights for the calls of volume.h; here the caller's are looked at, for every
 * directory.  Functions return 0 or -errno, as those of volume.h; besides
 *
 *     EACCES   the caller may not
 *     EINTR    caller->stops() was true */
#pragma once

#include "mount/volume/volume.h"

struct volume_caller {
    uint32_t uid, gid;
    const uint32_t *groups;
    size_t group_count;
    bool (*stops)(void *context); /* asked between transactions; NULL: never */
    void *context;
};

struct volume_tally {
    uint64_t inodes;              /* names that were removed, or made */
    bool is_moved;                /* to the trash, with all that is below */
    char name[META_NAME_MAX + 1]; /* after an error: where */
};

/* Removes the name, and all that is below.  With a trash that is one move to there.  for_ever, or
 * without a trash, or in it: one by one; what was removed before an error stays removed. */
int volume_rmr(struct volume *v, uint64_t directory, const char *name,
               const struct volume_caller *caller, bool for_ever, struct volume_tally *tally);
/* A copy that shares the slices, and is complete when the name is there.  caller: may read all of
 * it, as far as the kernel has not looked: what is below a directory.  EEXIST: the name is there.
 * EBUSY: a large file was written to meanwhile.  EINVAL: the trash has no clone, nor has an hour of
 * it.  Owners stay if root is the caller; so do attributes that are not "user.". */
int volume_clone(struct volume *v, uint64_t ino, uint64_t directory, const char *name,
                 const struct volume_caller *caller, struct volume_tally *tally);

/* ---- the trash: HOUR/DIRECTORY-INODE-NAME ---- */

struct volume_trashed {
    const char *name; /* in its hour */
    uint32_t type;
    int64_t length;
    int64_t removed_ns; /* Unix time, of the last change */
};
struct volume_trash_page {
    struct volume_trashed *rows; /* in the arena */
    size_t count;
    bool more;                    /* there may be others behind, also if there are none here */
    char last[META_NAME_MAX + 1]; /* that was looked at */
};
/* What the caller may have back: what it owns; root: all.  hour: the name of one; at most `limit`
 * of the names in it that follow `after`. */
int volume_trash_list(struct volume *v, const char *hour, const char *after, size_t limit,
                      const struct volume_caller *caller, struct arena *arena,
                      struct volume_trash_page *out);
/* The name of the hour that follows `after` ("": the first).  ENOENT: there is none. */
int volume_trash_hour(struct volume *v, const char *after, char hour[static META_NAME_MAX + 1]);
/* Back to its directory, under its name.  ENOENT: it is not in the trash, or the directory is gone,
 * or in the trash itself.  EEXIST: the name is taken.  EINVAL: it has no place.  EXDEV: a file
 * in it has another name, and not the quota of the place. */
int volume_restore(struct volume *v, const char *hour, const char *name,
                   const struct volume_caller *caller);
/* Hours of the trash whose days are over are removed.  What is damaged stays, and is logged; then
 * the result is its error, and all else is removed.  The lease, which is held at the call, is
 * renewed for lease_ms again and again.  EINTR: caller->stops() was true, or the lease is lost.
 * caller may be NULL.  lease_ms 0: no lease. */
int volume_trash_clean(struct volume *v, const struct volume_caller *caller, uint64_t lease_ms);
/* In one commit: those of the names that are there, and no directories.  Of several names of one
 * inode the first. */
int volume_unlink_many(struct volume *v, uint64_t directory, const char *const *names, size_t count,
                       uint64_t *removed);

/* ---- quotas of directories ---- */

/* A limit that is not given stays as it is, or is none. */
#define VOLUME_QUOTA_AS_IT_IS (-1)
#define VOLUME_QUOTA_NO_LIMIT (INT64_MAX / 4 * 3)

struct volume_quota_limits {
    int64_t inodes, bytes; /* 0: nothing more is taken */
};

struct volume_quota {
    uint64_t id, directory;
    bool whole;                      /* all that is below counts */
    int64_t inodes, bytes;           /* below the directory; bytes: lengths of files */
    int64_t inodes_left, bytes_left; /* negative: more is in use than the limit allows */
    int64_t inodes_limit, bytes_limit;
};

/* The directory gets a quota, or its quota other limits.  What is below begins to count; if that is
 * interrupted, the call goes on with it.  Less than is in use may be given.  EEXIST: it is below a
 * directory with a quota.  EBUSY: one below it has a quota.  EFBIG: its files are longer in sum
 * than a quota counts.  EINVAL: the root, or the trash.  ENOENT: it is in the trash. */
int volume_quota_set(struct volume *v, uint64_t directory, const struct volume_quota_limits *limits,
                     const struct volume_caller *caller, struct volume_quota *out);
/* Its first commit: nothing that is below counts yet.  *made: there was none. */
int volume_quota_mark(struct volume *v, uint64_t directory,
                      const struct volume_quota_limits *limits, struct volume_quota *out,
                      bool *made);
/* ENODATA: the directory has none. */
int volume_quota_remove(struct volume *v, uint64_t directory);
/* The quota that an inode is below, or has.  ENODATA: none. */
int volume_quota_of(struct volume *v, uint64_t ino, struct volume_quota *out);
/* The same; *id 0: none. */
int volume_quota_id(struct volume *v, uint64_t ino, uint64_t *id);
/* All; in the arena. */
int volume_quota_list(struct volume *v, struct arena *arena, struct volume_quota **out,
                      size_t *count);
