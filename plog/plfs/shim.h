/* What the calls of plfs.h share: the client of the process, paths, and errors. */
#pragma once

#include "api/dfc.h"
#include "plog/plfs/path.h"
#include "plog/plfs/plfs_error.h"

/* Of the environment, and of this process: a child that was forked gets another. */
plfs_error_t shim_client(struct dfc_client **client);
/* Without a name below the bucket only if may_be_bucket. */
plfs_error_t shim_path(const char *path, bool may_be_bucket, struct plfs_path *out);
/* Both, for a call that takes a file. */
plfs_error_t shim_file(const char *path, struct plfs_path *p, struct dfc_client **client);

/* Each remembers the sentence for plfs_dfc_error(). */
plfs_error_t shim_fail(const struct dfc_error *err);
plfs_error_t shim_refuse(plfs_error_t error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
