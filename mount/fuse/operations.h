/* The table of calls that session.c gives to libfuse. */
#pragma once

#include <fuse_lowlevel.h>

struct vfs;

/* What libfuse hands to each call. */
struct operations {
    struct vfs *vfs;
    double ttl_s;
};

extern const struct fuse_lowlevel_ops operations_table;
