/* What a volume must do, as plainly as it can be said: inodes in an array, names 'a' to 'e', a cell
 * for each byte of a file.  One operation at a time. */
#pragma once

#include "mount/volume/testing/slice_model.h"
#include "mount/volume/trees/trees.h"

enum { MODEL_NAMES = 5, MODEL_XATTRS = 2, MODEL_SEEN_BYTES = 1024 };

enum op_kind {
    OP_LOOKUP,
    OP_GETATTR,
    OP_READDIR,
    OP_READLINK,
    OP_READ,
    OP_GETXATTR,
    OP_SEEK,      /* flags: 1 for a hole */
    OP_READS_END, /* those before change nothing */
    OP_CREATE = OP_READS_END,
    OP_LINK,
    OP_UNLINK,
    OP_UNLINK_MANY,
    OP_RMDIR,
    OP_RENAME,
    OP_CHMOD,
    OP_TRUNCATE,
    OP_CLEAR, /* zeros, also behind the end */
    OP_WRITE,
    OP_APPEND,
    OP_COMPACT,
    OP_CLONE,
    OP_RESTORE,
    OP_SETXATTR,
    OP_REMOVEXATTR,
    OP_QUOTA_SET, /* limits: at, value; what is below does not count yet */
    OP_QUOTA_REMOVE,
    OP_CHANGES_END,
    OP_OPEN = OP_CHANGES_END, /* these change nothing that the model knows */
    OP_CLOSE,
    OP_BEAT,
    OP_CLEAN,
    OPS,
};

struct op {
    enum op_kind kind;
    uint64_t ino, to;       /* directories of names; or the inode */
    unsigned name, to_name; /* 0 to MODEL_NAMES - 1; of an extended attribute */
    unsigned flags;         /* of many names: a bit for each */
    uint32_t mode;
    int64_t at;
    uint32_t length;
    uint64_t slice;
    uint64_t
        value; /* of a link's target, or an extended attribute; of a range to be stored anew: its
                     * bytes when they were looked at */
};

struct op_result {
    int rc;
    uint64_t v[5]; /* what it returns, by its kind; 0 after an error */
};
const char *op_name(enum op_kind kind);
const char *op_file_name(unsigned name); /* "a" */
const char *op_xattr_name(unsigned name);
uint64_t op_mix(uint64_t digest, uint64_t more); /* for v */

struct model_inode {
    uint64_t ino;
    uint32_t mode;
    bool removed;           /* a directory that rmdir took */
    bool building;          /* a clone that has no place yet */
    bool trashed;           /* one of its names is in the trash */
    uint64_t was_directory; /* of that name */
    unsigned was_name;
    int64_t nlink;
    uint64_t parent;
    uint64_t quota;              /* its number, also of one that is gone; 0: none */
    uint64_t child[MODEL_NAMES]; /* 0: none */
    uint64_t xattr[MODEL_XATTRS];
    uint64_t target;
    struct slice_cell *cells;
    int64_t length;
};

enum {
    MODEL_QUOTAS = 1024, /* that a run makes at most */
    MODEL_GUESSED = 101, /* clients guess numbers of inodes below this one */
};

struct model_quota {
    uint64_t id, directory;
    int64_t inodes, bytes; /* limits */
    bool gone;
};

struct model {
    struct model_inode *inodes;
    size_t count, room;
    struct model_quota quotas[MODEL_QUOTAS];
    size_t quota_count;
    bool trash;              /* last names go there */
    bool had[MODEL_GUESSED]; /* an inode has, or had, this number: no other one gets it */
};

void model_init(struct model *m, bool trash); /* a root */
void model_done(struct model *m);
/* The operation's result; and, with `apply`, its effect, if it succeeds.  made: the number of a new
 * inode. */
struct op_result model_do(struct model *m, const struct op *op, bool apply, uint64_t made);
/* A clone of the inode begins, and has no place yet: it is `made`, with what it is now. */
void model_build(struct model *m, uint64_t ino, uint64_t made);
struct model_inode *model_find(const struct model *m, uint64_t ino); /* NULL: none */
void model_empty_trash(struct model *m);
void model_free_inode(struct model *m, uint64_t ino);
int64_t model_nlink(const struct model *m, const struct model_inode *i);
int64_t model_entries(const struct model_inode *i);

/* ---- model_quota.c ---- */

uint64_t model_quota_of(const struct model *m, const struct model_inode *i); /* 0: none */
int model_quota_check(const struct model *m, uint64_t id, int64_t inodes, int64_t bytes);
/* An inode counts no more. */
void model_quota_drop(struct model *m, struct model_inode *i);
int model_quota_check_move(const struct model *m, const struct model_inode *i,
                           const struct model_inode *from, const struct model_inode *to);
/* It counts for the quota of the directory, and has no name elsewhere. */
bool model_quota_may_return(const struct model *m, const struct model_inode *i,
                            const struct model_inode *directory);
struct op_result model_quota_do(struct model *m, const struct op *op, bool apply, uint64_t made);

/* What a range shows, as a number. */
uint64_t model_digest(const struct model *m, uint64_t ino, int64_t at, uint32_t length);
/* The same on a volume. */
struct op_result op_run(struct volume *v, const struct op *op);
