/* The calls of a volume's extended attributes.  Of the root: user.dfc.pid, the
 * process that serves, user.dfc.supervisor, which starts another one when it
 * dies, and user.dfc.stats, its metrics.  They are in no list. */
#pragma once

#include <fuse_lowlevel.h>

void xattrs_get(fuse_req_t req, fuse_ino_t node, const char *name, size_t room);
void xattrs_list(fuse_req_t req, fuse_ino_t node, size_t room);
void xattrs_set(fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size,
                int flags);
void xattrs_remove(fuse_req_t req, fuse_ino_t node, const char *name);
