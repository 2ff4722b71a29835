#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "mount/bucket/names.h"
#include "mount/bucket/store.h"

#define STATFS_BLOCK 4096

/* A handle that an earlier process had. */
static void handle_restore(void *context, uint64_t number, const struct ledger_record *r)
{
    switch (r->kind) {
    case LEDGER_DIRECTORY:
        vfs_restore_directory(context, number, r);
        break;
    case LEDGER_FILE:
        vfs_restore_file(context, number, r);
        break;
    case LEDGER_WRITTEN:
        vfs_restore_written(context, number, r);
        break;
    case LEDGER_FREE:
    case LEDGER_NODE:
    case LEDGER_DRAFT:
    case LEDGER_PLACE:
    case LEDGER_UNSAVED:
        break;
    }
}

static int ask_room(void *context, struct tree_room *room)
{
    struct vfs *v = context;
    int rc = tree_room(&v->tree, room);
    if (rc != -EACCES)
        return rc;
    *room = (struct tree_room){0}; /* the user may not see the cluster's room: none is shown */
    return 0;
}

static bool vfs_start(struct vfs *v)
{
    const struct vfs_options *options = &v->options;
    const struct buffer_options buffer = {
        .bytes = vfs_buffer_bytes(v),
        .fetchers = options->fetchers,
    };
    const struct data_store store = {.context = &v->tiers,
                                     .fetch = tiers_fetch,
                                     .near = v->tiers.cache != NULL ? tiers_near : NULL};
    const struct write_store objects = tree_store(&v->tree);
    room_init(&v->room, ask_room, v);
    handles_init(&v->handles, v->ledger);
    nodes_init(&v->nodes, options->prefix, v->ledger);
    drafts_init(&v->drafts, &v->nodes);
    passing_init(&v->passing, &v->tiers);
    v->buffer = buffer_new(&buffer, &store);
    if (options->writable)
        v->writers = writers_new(&options->writing, &objects);
    if (v->buffer == NULL || (v->writers != NULL) != options->writable)
        return false;
    ledger_each(v->ledger, handle_restore, v);
    return true;
}

static int no_resource(struct dfc_error *err, const char *what)
{
    *err = (struct dfc_error){.result = DFC_LOCAL};
    snprintf(err->message, sizeof err->message, "%s", what);
    return DFC_LOCAL;
}

int vfs_open(const struct vfs_options *options, struct dfc_client *client, struct vfs **vfs,
             struct dfc_error *err)
{
    _cleanup_(ledger_closep)
    struct ledger *ledger = ledger_open(options->ledger);
    if (ledger == NULL)
        return no_resource(err, "no memory could be mapped for the kernel's numbers");
    struct vfs *v = xcalloc(1, sizeof *v);
    v->options = *options;
    v->opened_s = options->opened_s;
    int rc = tree_open(&v->tree, client, options->bucket, options->prefix, err);
    if (rc == DFC_OK)
        rc = vfs_open_tiers(v, err);
    if (rc != DFC_OK) {
        vfs_close_tiers(v);
        tree_close(&v->tree);
        free(v);
        return rc;
    }
    v->ledger = steal(ledger);
    if (vfs_start(v)) {
        *vfs = v;
        return DFC_OK;
    }
    vfs_close(v);
    return no_resource(err, "no thread could be started that moves data");
}

void vfs_close(struct vfs *v)
{
    if (v == NULL)
        return;
    handles_done(&v->handles);
    drafts_done(&v->drafts);
    writers_free(v->writers);
    buffer_free(v->buffer);
    vfs_close_tiers(v);
    nodes_done(&v->nodes);
    passing_done(&v->passing);
    ledger_close(v->ledger);
    tree_close(&v->tree);
    room_done(&v->room);
    free(v);
}

static struct node *node_of(struct vfs *v, const char *prefix, const struct entry *e)
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

int vfs_id_of(struct vfs *v, const char *prefix, const struct entry *e, uint64_t *id)
{
    const struct node *node = node_of(v, prefix, e);
    if (node == NULL)
        return -ENOMEM;
    *id = nodes_id(node);
    return 0;
}

int vfs_lookup(struct vfs *v, uint64_t parent, const char *name, uint64_t *node)
{
    struct entry e;
    const struct node *directory = nodes_of(&v->nodes, parent);
    if (!directory->is_directory)
        return -ENOTDIR;
    if (v->writers != NULL) {
        _cleanup_free_ char *key = name_file(directory->key, name);
        struct node *draft = drafts_find(&v->drafts, key);
        if (draft != NULL) {
            *node = nodes_id(draft);
            return 0;
        }
    }
    int rc = tree_lookup(&v->tree, directory->key, name, &e);
    if (rc != 0)
        return rc;
    rc = vfs_id_of(v, directory->key, &e, node);
    entry_done(&e);
    return rc;
}

void vfs_forget(struct vfs *v, uint64_t node, uint64_t uses)
{
    nodes_forget(&v->nodes, nodes_of(&v->nodes, node), uses);
}

bool vfs_is_draft(struct vfs *v, uint64_t node)
{
    return nodes_of(&v->nodes, node)->is_draft;
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

int vfs_statfs(struct vfs *v, struct statvfs *out)
{
    struct tree_room room;
    int rc = room_get(&v->room, &room);
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
