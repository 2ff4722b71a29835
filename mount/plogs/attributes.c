/* The kernel's view of a file: a node is a name and the id of a plog, or the tag of another object.
 * What other mounts change is found by comparing what was told last with what is there now. */
#include "mount/plogs/plogs_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/error.h"
#include "common/internal_name.h"
#include "common/mem.h"
#include "mount/bucket/names.h"

enum { FLAT_MODE = 0444, MS = 1000000 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

void plogs_has_changed(struct plogs *p, struct plog_node *node)
{
    pthread_mutex_lock(&p->nodes.lock);
    node->generation++;
    node->changed_ns = now_ns();
    node->mtime_ms = -1;
    pthread_mutex_unlock(&p->nodes.lock);
}

static void fill_directory(const struct plogs *p, const struct plog_node *node, struct stat *st)
{
    *st = (struct stat){.st_ino = node->inode,
                        .st_mode = S_IFDIR | p->options.directory_mode,
                        .st_nlink = 2,
                        .st_uid = p->options.uid,
                        .st_gid = p->options.gid,
                        .st_blksize = 4096,
                        .st_mtim.tv_sec = p->opened_s,
                        .st_ctim.tv_sec = p->opened_s,
                        .st_atim.tv_sec = p->opened_s};
}

static void fill_file(const struct plog_node *node, const struct dfc_plog_glance *g,
                      struct stat *st)
{
    *st = (struct stat){.st_ino = node->inode,
                        .st_mode = S_IFREG | g->mode,
                        .st_nlink = node->is_gone ? 0 : 1,
                        .st_uid = g->uid,
                        .st_gid = g->gid,
                        .st_size = (off_t)g->size,
                        .st_blocks = (blkcnt_t)((g->size + 511) / 512),
                        .st_blksize = 1 << 20};
}

/* The head has the time of the last merge, which is too old while some one writes. */
static void take(struct plogs *p, struct plog_node *node, const struct dfc_plog_glance *g,
                 bool is_written, struct stat *st)
{
    char seen[sizeof node->seen];
    snprintf(seen, sizeof seen, "%s %llu %llu %llu", g->version, (unsigned long long)g->size,
             (unsigned long long)g->stored, (unsigned long long)g->sessions);
    pthread_mutex_lock(&p->nodes.lock);
    if (strcmp(seen, node->seen) != 0 && node->seen[0] != '\0') {
        node->generation++;
        if (g->sessions > 0)
            node->changed_ns = now_ns();
    }
    memcpy(node->seen, seen, sizeof seen);
    node->size = g->size;
    fill_file(node, g, st);
    int64_t ns = (int64_t)g->modified_ms * MS;
    if (node->mtime_ms >= 0)
        ns = node->mtime_ms * MS;
    else if ((g->sessions > 0 || is_written) && node->changed_ns > ns)
        ns = node->changed_ns;
    pthread_mutex_unlock(&p->nodes.lock);
    st->st_mtim = st->st_ctim = st->st_atim = time_of(ns);
}

/* ---- other objects ---- */

static int glance_flat(struct plogs *p, const char *key, struct dfc_plog_glance *g, char **etag)
{
    struct dfc_object_info *info;
    const int rc = tree_head(&p->tree, key, &info);
    if (rc != 0)
        return rc;
    *g = (struct dfc_plog_glance){.size = info->size,
                                  .mode = FLAT_MODE,
                                  .uid = p->options.uid,
                                  .gid = p->options.gid,
                                  .modified_ms = (uint64_t)info->modified_ms};
    *etag = xstrdup(info->etag);
    dfc_object_info_free(info);
    return 0;
}

/* ---- a node ---- */

/* What the file is now, by its name.  ESTALE: it is not the node's. */
static int glance_node(struct plogs *p, struct plog_node *node, struct dfc_plog_glance *g)
{
    struct dfc_error err;
    _cleanup_free_ char *etag = NULL;
    if (node->is_flat) {
        const int rc = glance_flat(p, node->key, g, &etag);
        return rc != 0 ? rc : strcmp(etag, node->version) == 0 ? 0 : -ESTALE;
    }
    const int rc = node->writer != NULL
                       ? dfc_plog_look(node->writer, g, &err)
                       : dfc_plog_glance(p->client, p->tree.bucket, node->key, g, &err);
    if (rc == DFC_INVALID)
        return -ESTALE;
    if (rc != DFC_OK)
        return plogs_told(node->key, &err);
    return strcmp(g->id, node->version) == 0 ? 0 : -ESTALE;
}

static int glance_locked(struct plogs *p, struct plog_node *node, struct dfc_plog_glance *g,
                         bool *is_written)
{
    pthread_rwlock_rdlock(&node->use);
    *is_written = node->writer != NULL;
    int rc = node->is_gone ? -ESTALE : glance_node(p, node, g);
    pthread_rwlock_unlock(&node->use);
    rc = rc == -ENOENT ? -ESTALE : rc;
    if (rc == -ESTALE)
        plog_nodes_remove(&p->nodes, node);
    return rc;
}

int plogs_attributes(struct plogs *p, struct plog_node *node, struct stat *st)
{
    struct dfc_plog_glance g;
    bool is_written;
    if (node->is_directory) {
        fill_directory(p, node, st);
        return 0;
    }
    const int rc = glance_locked(p, node, &g, &is_written);
    if (rc == 0)
        take(p, node, &g, is_written, st);
    return rc;
}

int plogs_getattr(struct plogs *p, uint64_t id, struct stat *st)
{
    return plogs_attributes(p, plog_nodes_of(&p->nodes, id), st);
}

/* ---- names ---- */

static int find_directory(struct plogs *p, const char *prefix, struct plog_node **node,
                          struct stat *st)
{
    const struct plog_node_is is = {
        .key = prefix, .is_directory = true, .version = "", .inode = tree_inode(&p->tree, prefix)};
    *node = plog_nodes_take(&p->nodes, &is);
    fill_directory(p, *node, st);
    return 0;
}

/* Not a plog of a later release, of which a part would be left if it were removed. */
static bool is_other_object(const struct dfc_error *err)
{
    return err->result == DFC_INVALID && strcmp(err->code, error_name(E_UNSUPPORTED)) != 0;
}

static int find_file(struct plogs *p, const char *key, struct plog_node **node, struct stat *st)
{
    struct dfc_plog_glance g;
    struct dfc_error err;
    _cleanup_free_ char *etag = NULL;
    const int rc = dfc_plog_glance(p->client, p->tree.bucket, key, &g, &err);
    if (rc != DFC_OK && !is_other_object(&err))
        return plogs_told(key, &err);
    if (rc == DFC_INVALID) {
        const int code = glance_flat(p, key, &g, &etag);
        if (code != 0)
            return code;
    }
    const struct plog_node_is is = {.key = key,
                                    .is_flat = etag != NULL,
                                    .version = etag != NULL ? etag : g.id,
                                    .inode = tree_inode(&p->tree, key)};
    *node = plog_nodes_take(&p->nodes, &is);
    take(p, *node, &g, false, st);
    return 0;
}

/* A file that this mount writes: its size is more than what others see. */
static bool find_written(struct plogs *p, const char *key, struct plog_node **out, struct stat *st)
{
    struct plog_node *node = plog_nodes_find(&p->nodes, key);
    if (node == NULL)
        return false;
    pthread_rwlock_rdlock(&node->use);
    const bool is_written = node->writers > 0;
    pthread_rwlock_unlock(&node->use);
    if (is_written && plogs_attributes(p, node, st) == 0) {
        *out = node;
        return true;
    }
    plog_nodes_forget(&p->nodes, node, 1);
    return false;
}

int plogs_find(struct plogs *p, const struct plog_node *parent, const char *name,
               struct plog_node **node, struct stat *st)
{
    enum tree_begins found;
    if (!name_is_shown(name, strlen(name)))
        return strlen(name) > NAME_MAX_BYTES ? -ENAMETOOLONG : -ENOENT;
    _cleanup_free_ char *key = name_file(parent->key, name);
    _cleanup_free_ char *directory = name_directory(parent->key, name);
    if (name_is_internal(key))
        return -ENOENT;
    if (find_written(p, key, node, st))
        return 0;
    int rc = tree_begins(&p->tree, directory, &found);
    if (rc != 0 && rc != -ENOENT)
        return rc;
    if (rc == 0 && found == TREE_BEGINS_YES)
        return find_directory(p, directory, node, st);
    const bool is_unknown = rc == 0 && found == TREE_BEGINS_UNKNOWN;
    rc = find_file(p, key, node, st);
    return rc == -ENOENT && is_unknown ? -EIO : rc;
}

int plogs_lookup(struct plogs *p, uint64_t parent, const char *name, uint64_t *id, struct stat *st)
{
    struct plog_node *node;
    const int rc = plogs_find(p, plog_nodes_of(&p->nodes, parent), name, &node, st);
    if (rc == 0)
        *id = plog_nodes_id(&p->nodes, node);
    return rc;
}

void plogs_forget(struct plogs *p, uint64_t id, uint64_t uses)
{
    plog_nodes_forget(&p->nodes, plog_nodes_of(&p->nodes, id), uses);
}

/* ---- changes ---- */

/* A cut by a writer that is there, or by one that comes for it and leaves. */
static int cut(struct plogs *p, struct plog_node *node, uint64_t size)
{
    struct dfc_error err;
    int rc = plogs_begin_writing(p, node, size == 0 && node->is_flat ? O_TRUNC : 0);
    if (rc == 0 && dfc_plog_truncate(node->writer, size, &err) != DFC_OK)
        rc = plogs_told(node->key, &err);
    if (rc == 0) {
        node->is_unsynced = size > 0 || node->is_unsynced;
        plogs_has_changed(p, node);
    }
    if (rc == 0 && node->writers == 0)
        rc = plogs_end_writing(p, node);
    if (rc != 0)
        plogs_drop_unused(node);
    return rc;
}

/* The next merge sets the time, so that of a file that is written is stored after it. */
static int change_head(struct plogs *p, struct plog_node *node, const struct plogs_change *c)
{
    struct dfc_error err;
    const bool waits = c->sets_mtime && node->writer != NULL;
    const struct dfc_plog_change change = {.sets_mode = c->sets_mode,
                                           .sets_uid = c->sets_uid,
                                           .sets_gid = c->sets_gid,
                                           .sets_modified = c->sets_mtime && !waits,
                                           .mode = c->mode & 07777,
                                           .uid = c->uid,
                                           .gid = c->gid,
                                           .modified_ms = c->mtime_ms};
    if (waits) {
        pthread_mutex_lock(&p->nodes.lock);
        node->mtime_ms = (int64_t)c->mtime_ms;
        pthread_mutex_unlock(&p->nodes.lock);
    }
    if (!change.sets_mode && !change.sets_uid && !change.sets_gid && !change.sets_modified)
        return 0;
    return dfc_plog_change(p->client, p->tree.bucket, node->key, &change, &err) == DFC_OK
               ? 0
               : plogs_told(node->key, &err);
}

static int change_file(struct plogs *p, struct plog_node *node, const struct plogs_change *c)
{
    if (node->is_gone)
        return -ESTALE;
    int rc = c->sets_size ? cut(p, node, c->size) : 0;
    if (rc != 0 || (!c->sets_mode && !c->sets_uid && !c->sets_gid && !c->sets_mtime))
        return rc;
    return node->is_flat ? -EPERM : change_head(p, node, c);
}

int plogs_setattr(struct plogs *p, uint64_t id, const struct plogs_change *change, struct stat *st)
{
    struct plog_node *node = plog_nodes_of(&p->nodes, id);
    int rc = p->options.read_only ? -EROFS : 0;
    if (rc == 0 && !node->is_directory) {
        pthread_rwlock_wrlock(&node->use);
        rc = change_file(p, node, change);
        pthread_rwlock_unlock(&node->use);
    }
    return rc == 0 ? plogs_attributes(p, node, st) : rc == -ENOENT ? -ESTALE : rc;
}
