/* Steps and checks that several operations share. */
#pragma once

#include "mount/volume/txn.h"

/* 0, ENOENT (empty), ENAMETOOLONG, EINVAL ('/', "." and ".."). */
int steps_check_name(const char *name);
struct meta_key steps_entry(uint64_t directory, const char *name);
/* 0; ENOENT: no inode, or a directory that was removed; ENOTDIR. */
int steps_check_directory(const struct meta_value *value, struct attr *out);

/* Its names changed: mtime and ctime, which are never set back. */
void steps_touch(struct txn *t, const struct meta_key *directory);
void steps_ctime(struct txn *t, const struct meta_key *inode);
/* One name less.  A directory must be empty.  After the last name the inode is queued, to be freed
 * after the grace. */
void steps_drop_name(struct txn *t, uint64_t ino, const struct attr *a);
void steps_queue_unlinked(struct txn *t, uint64_t ino);

/* ---- use ---- */

/* ENOSPC: `value`, as it was read, has not so much left. */
int steps_check_use(const struct meta_value *value, int64_t inodes, int64_t bytes);
void steps_use(struct txn *t, int64_t inodes, int64_t bytes); /* more; negative: less */
