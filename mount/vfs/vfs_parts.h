/* The inside of a struct vfs. */
#pragma once

#include <pthread.h>

#include "mount/bucket/tree.h"
#include "mount/data/buffer.h"
#include "mount/data/readahead.h"
#include "mount/data/tiers.h"
#include "mount/vfs/drafts.h"
#include "mount/vfs/handles.h"
#include "mount/vfs/nodes.h"
#include "mount/vfs/passing.h"
#include "mount/vfs/room.h"
#include "mount/vfs/vfs.h"

struct vfs {
    struct vfs_options options;
    struct tree tree;
    struct tiers tiers;
    struct group_reader *group; /* between the disk cache and the cluster; or NULL */
    struct buffer *buffer;
    struct ledger *ledger;
    int64_t opened_s; /* directories' time */
    struct room room;
    struct handles handles;
    struct nodes nodes;
    struct passing passing;
    struct drafts drafts;
    struct writers *writers; /* NULL: nothing may be written */
};

/* An open file: it is read, or it is written. */
struct vfs_file {
    struct handle handle; /* first */
    struct vfs *vfs;
    pthread_mutex_t lock; /* guards readahead; the buffer's lock is never taken with it */
    struct entity *entity;
    struct readahead readahead;
    struct node *of; /* a use, of a node that is no draft; or NULL */
    int backing;     /* 0: this process reads */
    uint64_t request;
    /* If it is written: */
    struct node *node; /* a use */
    struct writer *writer;
    int64_t process; /* that opened it */
    atomic_bool unlinked;
    bool lost; /* it was not stored when the process before died */
};

/* Handles of the process before. */
void vfs_restore_directory(struct vfs *v, uint64_t number, const struct ledger_record *r);
void vfs_restore_file(struct vfs *v, uint64_t number, const struct ledger_record *r);
void vfs_restore_written(struct vfs *v, uint64_t number, const struct ledger_record *r);

/* The tiers below the buffer, and what of the buffer's bytes they leave it. */
int vfs_open_tiers(struct vfs *v, struct dfc_error *err);
uint64_t vfs_buffer_bytes(const struct vfs *v);
void vfs_close_tiers(struct vfs *v);
char *vfs_stats(struct vfs *v); /* Prometheus' text; malloc'ed */

/* The key of a name that may be made in the directory; malloc'ed. */
int vfs_new_key(struct vfs *v, uint64_t parent, const char *name, char **key);
void vfs_close_written(struct vfs_file *f);

/* The node of what a directory with this prefix has, with a use: 0, or -ENOMEM. */
int vfs_id_of(struct vfs *v, const char *prefix, const struct entry *e, uint64_t *id);
