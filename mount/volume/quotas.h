/* Quotas of directories, within transactions.
 *
 * A quota is a key of its own, with a number that no other quota has or had.  An inode has the
 * number of its quota, or 0: it is inherited when the inode is made.  So a transaction on an inode
 * finds the quota without a way to the root, and adds to its counters, which meets nobody.
 *
 *     a number whose key is gone   no quota: a quota ends at once, whatever is below
 *     the directory itself         has the number, for what is made in it, and does not count
 *     the last name goes           to the trash or for ever: the inode counts no more, number 0
 *
 * What counts are inodes, and the lengths of files.  Quotas are not nested.  A name does not get
 * into a directory with another quota (EXDEV): programs copy then. */
#pragma once

#include "mount/volume/attr.h"
#include "mount/volume/txn.h"

/* The value of a quota's key. */
enum {
    QUOTA_INODES = 0, /* in use; of the volume's use the same places (counters.h) */
    QUOTA_BYTES = 8,
    QUOTA_INODES_LEFT = 16,
    QUOTA_BYTES_LEFT = 24,
    QUOTA_DIRECTORY = 32,
    QUOTA_WHOLE = 40, /* 1: all that is below has the number */
    QUOTA_INODES_LIMIT = 48,
    QUOTA_BYTES_LIMIT = 56,
    QUOTA_SIZE = 64,
};

struct quota {
    uint64_t id; /* 0: none */
    uint64_t directory;
    bool whole;
    int64_t inodes, bytes;
    int64_t inodes_left, bytes_left; /* each the limit less what is in use */
    int64_t inodes_limit, bytes_limit;
};

static inline struct meta_key quotas_key(uint64_t id)
{
    return meta_key_point(META_QUOTA, id);
}

/* False: no value of a quota. */
bool quotas_decode(const struct meta_value *value, uint64_t id, struct quota *out);
/* The quota with the number, as far as there is one. */
int quotas_get(struct txn *t, uint64_t id, struct quota *out);
/* As txn_read(), and the quota of the inode whose attribute is items[of], at the same moment.
 * There is room for one item more behind the `count`. */
int quotas_read(struct txn *t, struct meta_item *items, size_t count, size_t of, struct quota *out);
/* The inode still has the number that was read. */
void quotas_expect(struct txn *t, const struct meta_key *inode, const struct attr *a);

/* The bytes that count of an inode. */
int64_t quotas_bytes(const struct attr *a);
/* A sum of them.  Sparse files may be longer than a number: INT64_MAX then, which no quota has
 * left. */
int64_t quotas_sum(int64_t bytes, int64_t more);
/* EDQUOT: the quota, as it was read, has not so much left. */
int quotas_check(const struct quota *q, int64_t inodes, int64_t bytes);
/* More in use; negative: less.  quotas_count() does not look at what is left. */
void quotas_charge(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes);
void quotas_count(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes);
/* More in use, also past the limit.  EFBIG: more bytes than a quota counts. */
int quotas_count_past(struct txn *t, const struct quota *q, int64_t inodes, int64_t bytes);

/* A file gets another length.  EDQUOT: it is too long.  q: of quotas_read(). */
int quotas_resize(struct txn *t, const struct meta_key *inode, const struct attr *a,
                  const struct quota *q, int64_t length);
/* One name less; as steps_drop_name() and trash_drop_name(). */
int quotas_drop(struct txn *t, uint64_t ino, const struct attr *a);

struct quotas_place {
    const struct meta_key *key; /* of an inode's attribute */
    const struct attr *attr;
};
/* EXDEV: the inode has another quota than the directory. */
int quotas_check_link(struct txn *t, const struct quotas_place *inode,
                      const struct quotas_place *directory);
/* EXDEV: the inode may not move from one directory to the other. */
int quotas_check_move(struct txn *t, const struct quotas_place *inode,
                      const struct quotas_place *from, const struct quotas_place *to);
