/* The files of a bucket on one mountpath, objects and tombstones alike, one after the other: the
 * directories by their names, the files of a directory in the order of their inodes, which is the
 * one in which a cold disk gives them fastest.  Memory is bounded, however many there are. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "common/error.h"
#include "target/disk/mountpath.h"
#include "target/format/object_path.h"

/* fn() for each, with its whole path, until one fails.  With `stop` others are at work meanwhile: a
 * bucket that goes is no error, and E_CANCELLED comes when *stop becomes true.  NULL: nobody else
 * touches the mountpath. */
int object_files_each(const struct mountpath *mp, uint64_t bucket_id, const atomic_bool *stop,
                      int (*fn)(void *ctx, const char *path, struct error *err), void *ctx,
                      struct error *err);
/* Those of one directory, whose number is below OBJECT_FANS; it may never have been made. */
int object_files_each_of(const struct mountpath *mp, uint64_t bucket_id, unsigned fan,
                         const atomic_bool *stop,
                         int (*fn)(void *ctx, const char *path, struct error *err), void *ctx,
                         struct error *err);
