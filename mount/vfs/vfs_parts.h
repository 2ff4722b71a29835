/* The inside of a struct vfs. */
#pragma once

#include <pthread.h>

#include "mount/bucket/tree.h"
#include "mount/data/buffer.h"
#include "mount/vfs/handles.h"
#include "mount/vfs/nodes.h"
#include "mount/vfs/vfs.h"

struct vfs {
    struct vfs_options options;
    struct tree tree;
    struct buffer *buffer;
    int64_t opened_s; /* directories' time */
    pthread_mutex_t room_lock;
    uint64_t room_asked_ms; /* 0: never */
    struct tree_room room;
    struct handles handles;
    struct nodes nodes;
};

/* The node of what a directory with this prefix has. */
struct node *vfs_node_of(struct vfs *v, const char *prefix, const struct entry *e);
