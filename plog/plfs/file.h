/* Open files of plfs.h, for the calls that also take a path. */
#pragma once

#include <stdint.h>

#include "plog/client/dfc_plog.h"
#include "plog/plfs/plfs.h"
#include "plog/plfs/shim.h"

/* For writing, by the flags of open(2).  *err is for the caller's buffer alone. */
plfs_error_t shim_open(struct dfc_client *client, const struct plfs_path *p, int flags, mode_t mode,
                       struct dfc_plog **plog, struct dfc_error *err);
/* *is_plog false: it is another object, and *plog is not filled. */
plfs_error_t shim_fd_stat(Plfs_fd *fd, struct dfc_plog_glance *plog, bool *is_plog);
plfs_error_t shim_fd_truncate(Plfs_fd *fd, uint64_t length);
const struct plfs_path *shim_fd_path(const Plfs_fd *fd);
