#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "mount/bucket/names.h"

#define STATFS_BLOCK 4096
#define STATFS_MS 60000 /* how long an answer of the cluster is used */

int vfs_open(const struct vfs_options *options, struct dfc_client *client, struct vfs **vfs,
             struct dfc_error *err)
{
    struct vfs *v = xcalloc(1, sizeof *v);
    v->options = *options;
    int rc = tree_open(&v->tree, client, options->bucket, options->prefix, err);
    if (rc != DFC_OK) {
        free(v);
        return rc;
    }
    v->opened_s = clock_wall_ms() / 1000;
    pthread_mutex_init(&v->room_lock, NULL);
    handles_init(&v->handles);
    nodes_init(&v->nodes, options->prefix);
    const struct buffer_options buffer = {
        .bytes = options->buffer_bytes,
        .fetchers = options->fetchers,
    };
    const struct data_store store = {.context = &v->tree, .fetch = tree_fetch};
    v->buffer = buffer_new(&buffer, &store);
    if (v->buffer != NULL) {
        *vfs = v;
        return DFC_OK;
    }
    vfs_close(v);
    *err = (struct dfc_error){.result = DFC_LOCAL,
                              .message = "no thread could be started that fetches data"};
    return DFC_LOCAL;
}

void vfs_close(struct vfs *v)
{
    if (v == NULL)
        return;
    handles_done(&v->handles);
    buffer_free(v->buffer);
    nodes_done(&v->nodes);
    tree_close(&v->tree);
    pthread_mutex_destroy(&v->room_lock);
    free(v);
}

struct node *vfs_node_of(struct vfs *v, const char *prefix, const struct entry *e)
{
    _cleanup_free_ char *key =
        e->is_directory ? name_directory(prefix, e->name) : name_file(prefix, e->name);
    const struct node_is is = {
        .key = key,
        .is_directory = e->is_directory,
        .version = e->version,
        .inode = tree_inode(&v->tree, key),
        .size = e->size,
        /* A HEAD tells whole seconds, a list milliseconds: both must be one time. */
        .modified_s = e->is_directory ? v->opened_s : e->modified_ms / 1000,
    };
    return nodes_take(&v->nodes, &is);
}

int vfs_lookup(struct vfs *v, uint64_t parent, const char *name, uint64_t *node)
{
    struct entry e;
    const struct node *directory = nodes_of(&v->nodes, parent);
    if (!directory->is_directory)
        return -ENOTDIR;
    int rc = tree_lookup(&v->tree, directory->key, name, &e);
    if (rc != 0)
        return rc;
    *node = nodes_id(&v->nodes, vfs_node_of(v, directory->key, &e));
    entry_done(&e);
    return 0;
}

void vfs_forget(struct vfs *v, uint64_t node, uint64_t uses)
{
    nodes_forget(&v->nodes, nodes_of(&v->nodes, node), uses);
}

void vfs_getattr(struct vfs *v, uint64_t id, struct stat *st)
{
    const struct node *node = nodes_of(&v->nodes, id);
    int64_t time_s = node == &v->nodes.root ? v->opened_s : node->modified_s;
    *st = (struct stat){
        .st_ino = node->inode,
        .st_mode = node->is_directory ? S_IFDIR | v->options.directory_mode
                                      : S_IFREG | v->options.file_mode,
        .st_nlink = 1,
        .st_uid = v->options.uid,
        .st_gid = v->options.gid,
        .st_size = (off_t)node->size,
        .st_blksize = ENTITY_BLOCK,
        .st_blocks = (blkcnt_t)((node->size + 511) / 512),
        .st_atim = {.tv_sec = time_s},
        .st_mtim = {.tv_sec = time_s},
        .st_ctim = {.tv_sec = time_s},
    };
}

static int room_refresh(struct vfs *v)
{
    uint64_t now = clock_ms();
    if (v->room_asked_ms != 0 && now - v->room_asked_ms < STATFS_MS)
        return 0;
    int rc = tree_room(&v->tree, &v->room);
    if (rc == -EACCES) { /* the user may not see the cluster's room: none is shown */
        v->room = (struct tree_room){0};
        rc = 0;
    }
    if (rc == 0)
        v->room_asked_ms = now;
    return rc;
}

int vfs_statfs(struct vfs *v, struct statvfs *out)
{
    pthread_mutex_lock(&v->room_lock);
    int rc = room_refresh(v);
    const struct tree_room room = v->room;
    pthread_mutex_unlock(&v->room_lock);
    *out = (struct statvfs){
        .f_bsize = STATFS_BLOCK,
        .f_frsize = STATFS_BLOCK,
        .f_blocks = room.total_bytes / STATFS_BLOCK,
        .f_bfree = room.available_bytes / STATFS_BLOCK,
        .f_bavail = room.available_bytes / STATFS_BLOCK,
        .f_namemax = NAME_MAX_BYTES,
    };
    return rc;
}
