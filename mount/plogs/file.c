#include "mount/plogs/plogs_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"

/* ---- the writer of a node ---- */

/* The options of dfc_plog_open().  id: the plog; NULL: any. */
static struct dfc_plog_options how_to_write(const struct plogs *p, unsigned flags, const char *id)
{
    return (struct dfc_plog_options){.flags = DFC_PLOG_WRITE | flags,
                                     .segment_bytes = p->options.segment_bytes,
                                     .inflight = p->options.inflight,
                                     .id = id,
                                     .pool = p->pool,
                                     .reader = &p->reader};
}

/* An object that is no plog becomes an empty one. */
static int replace_flat(struct plogs *p, struct plog_node *node, int flags)
{
    struct dfc_error err;
    const struct dfc_plog_options how = {
        .mode = 0644, .uid = p->options.uid, .gid = p->options.gid};
    if ((flags & O_TRUNC) == 0) {
        log_warn("an object that is no plog can be replaced, and not be changed: open it with "
                 "O_TRUNC, or copy it",
                 lstr("object", node->key));
        return -EOPNOTSUPP;
    }
    return dfc_plog_replace_object(p->client, p->tree.bucket, node->key, &how, &err) == DFC_OK
               ? 0
               : plogs_told(node->key, &err);
}

static int cut_now(struct plog_node *node)
{
    struct dfc_error err;
    if (dfc_plog_truncate(node->writer, 0, &err) == DFC_OK &&
        dfc_plog_sync(node->writer, &err) == DFC_OK)
        return 0;
    return plogs_told(node->key, &err);
}

int plogs_begin_writing(struct plogs *p, struct plog_node *node, int flags)
{
    struct dfc_error err;
    const bool cuts = (flags & O_TRUNC) != 0;
    if (node->is_gone)
        return -ESTALE;
    if (node->writer != NULL)
        return cuts ? cut_now(node) : 0;
    const int rc = node->is_flat ? replace_flat(p, node, flags) : 0;
    if (rc != 0)
        return rc;
    const struct dfc_plog_options how =
        how_to_write(p, cuts ? DFC_PLOG_TRUNCATE : 0, cuts ? NULL : node->version);
    if (dfc_plog_open(p->client, p->tree.bucket, node->key, &how, &node->writer, &err) != DFC_OK) {
        node->writer = NULL;
        return err.result == DFC_NOT_FOUND ? -ESTALE : plogs_told(node->key, &err);
    }
    plog_nodes_replace(&p->nodes, node, dfc_plog_id(node->writer));
    return 0;
}

static void drop_writer(struct plog_node *node)
{
    dfc_plog_drop(node->writer);
    node->writer = NULL;
    node->is_unsynced = false;
}

void plogs_drop_unused(struct plog_node *node)
{
    if (node->writers == 0)
        drop_writer(node);
}

void plogs_end_gone(struct plogs *p, struct plog_node *node)
{
    node->has_lost |= node->is_unsynced;
    plogs_end_removed(p, node);
}

void plogs_end_removed(struct plogs *p, struct plog_node *node)
{
    plog_nodes_remove(&p->nodes, node);
    drop_writer(node);
}

/* The time that a program has set, which the merge has replaced. */
static void store_time(struct plogs *p, struct plog_node *node)
{
    struct dfc_error err;
    pthread_mutex_lock(&p->nodes.lock);
    const struct dfc_plog_change c = {.sets_modified = node->mtime_ms >= 0,
                                      .modified_ms = (uint64_t)node->mtime_ms};
    node->mtime_ms = -1;
    node->generation++; /* readers look anew */
    pthread_mutex_unlock(&p->nodes.lock);
    if (c.sets_modified &&
        dfc_plog_change(p->client, p->tree.bucket, node->key, &c, &err) != DFC_OK)
        plogs_told(node->key, &err);
}

int plogs_end_writing(struct plogs *p, struct plog_node *node)
{
    struct dfc_error err;
    if (node->writer == NULL)
        return 0;
    if (dfc_plog_close(node->writer, &err) == DFC_OK) {
        node->writer = NULL;
        node->is_unsynced = false;
        store_time(p, node);
        return 0;
    }
    const int rc = plogs_told(node->key, &err);
    if (rc == -ESTALE)
        plogs_end_gone(p, node);
    return rc;
}

/* ---- open and close ---- */

static struct plogs_file *file_new(struct plogs *p, struct plog_node *node, bool writes)
{
    struct plogs_file *f = xcalloc(1, sizeof *f);
    f->plogs = p;
    f->node = node;
    f->writes = writes;
    pthread_mutex_init(&f->lock, NULL);
    plog_nodes_use(&p->nodes, node);
    pthread_mutex_lock(&p->files_lock);
    f->next = p->files;
    f->at = &p->files;
    if (f->next != NULL)
        f->next->at = &f->next;
    p->files = f;
    pthread_mutex_unlock(&p->files_lock);
    return f;
}

static void file_free(struct plogs_file *f)
{
    struct plogs *p = f->plogs;
    pthread_mutex_lock(&p->files_lock);
    *f->at = f->next;
    if (f->next != NULL)
        f->next->at = f->at;
    pthread_mutex_unlock(&p->files_lock);
    dfc_plog_drop(f->reader);
    plog_nodes_forget(&p->nodes, f->node, 1);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* The reader shows what all mounts have synced.  With `use`, and the file's lock. */
static int look(struct plogs_file *f)
{
    struct dfc_error err;
    struct plogs *p = f->plogs;
    const struct dfc_plog_options how = {.id = f->node->version, .reader = &p->reader};
    pthread_mutex_lock(&p->nodes.lock);
    const uint64_t generation = f->node->generation;
    pthread_mutex_unlock(&p->nodes.lock);
    if (f->reader != NULL && f->generation != generation) { /* the id may be another, too */
        dfc_plog_drop(f->reader);
        f->reader = NULL;
    }
    f->generation = generation;
    if (f->reader != NULL ||
        dfc_plog_open(p->client, p->tree.bucket, f->node->key, &how, &f->reader, &err) == DFC_OK)
        return 0;
    f->reader = NULL;
    return err.result == DFC_NOT_FOUND || err.result == DFC_INVALID
               ? -ESTALE
               : plogs_told(f->node->key, &err);
}

/* The handle shows what others have synced before its open. */
static int open_to_read(struct plogs_file *f)
{
    struct plog_node *node = f->node;
    if (node->is_gone)
        return -ESTALE;
    if (node->writer == NULL)
        return node->is_flat ? 0 : look(f);
    dfc_plog_renew(node->writer);
    return 0;
}

static int open_to_write(struct plogs_file *f, int flags)
{
    struct plog_node *node = f->node;
    int rc = plogs_begin_writing(f->plogs, node, flags);
    if (rc == 0) {
        node->writers += f->writes;
        dfc_plog_renew(node->writer);
    }
    if (rc == 0 && node->writers == 0) /* O_RDONLY | O_TRUNC */
        rc = plogs_end_writing(f->plogs, node);
    if (rc != 0)
        plogs_drop_unused(node);
    return rc;
}

static int open_now(struct plogs_file *f, int flags)
{
    int rc;
    if (f->writes || (flags & O_TRUNC) != 0) {
        pthread_rwlock_wrlock(&f->node->use);
        rc = open_to_write(f, flags);
    } else {
        pthread_rwlock_rdlock(&f->node->use);
        pthread_mutex_lock(&f->lock);
        rc = open_to_read(f);
        pthread_mutex_unlock(&f->lock);
    }
    pthread_rwlock_unlock(&f->node->use);
    return rc;
}

int plogs_openfile(struct plogs *p, uint64_t id, int flags, struct plogs_file **out)
{
    struct plog_node *node = plog_nodes_of(&p->nodes, id);
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (node->is_directory)
        return -EISDIR;
    if (p->options.read_only && (writes || (flags & O_TRUNC) != 0))
        return -EROFS;
    struct plogs_file *f = file_new(p, node, writes);
    const int rc = open_now(f, flags);
    if (rc == 0 && (flags & O_TRUNC) != 0)
        plogs_has_changed(p, node);
    if (rc != 0) {
        if (rc == -ESTALE)
            plog_nodes_remove(&p->nodes, node);
        file_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

/* The plog is there and open for writing; a node takes it. */
static int create_open(struct plogs *p, const struct plogs_create *c, const char *key,
                       struct dfc_plog **plog)
{
    struct dfc_error err;
    struct dfc_plog_options how =
        how_to_write(p,
                     DFC_PLOG_CREATE | ((c->flags & O_EXCL) != 0 ? DFC_PLOG_EXCLUSIVE : 0) |
                         ((c->flags & O_TRUNC) != 0 ? DFC_PLOG_TRUNCATE : 0),
                     NULL);
    how.mode = c->mode & 07777;
    how.uid = c->uid;
    how.gid = c->gid;
    int rc = dfc_plog_open(p->client, p->tree.bucket, key, &how, plog, &err);
    if (rc == DFC_OK)
        return 0;
    return rc == DFC_CONFLICT ? -EEXIST : plogs_told(key, &err);
}

int plogs_create(struct plogs *p, const struct plogs_create *c, uint64_t *id, struct stat *st,
                 struct plogs_file **out)
{
    struct plog_node *parent = plog_nodes_of(&p->nodes, c->parent);
    struct dfc_plog *plog;
    struct dfc_error err;
    int rc = plogs_check_name(p, parent, c->name);
    if (rc != 0)
        return rc;
    _cleanup_free_ char *key = xprintf("%s%s", parent->key, c->name);
    rc = create_open(p, c, key, &plog);
    if (rc != 0)
        return rc;
    const struct plog_node_is is = {
        .key = key, .version = dfc_plog_id(plog), .inode = tree_inode(&p->tree, key)};
    struct plog_node *node = plog_nodes_take(&p->nodes, &is);
    struct plogs_file *f = file_new(p, node, (c->flags & O_ACCMODE) != O_RDONLY);
    pthread_rwlock_wrlock(&node->use);
    if (f->writes && node->writer == NULL)
        node->writer = plog;
    else if (dfc_plog_close(plog, &err) != DFC_OK) /* at most it has cut */
        dfc_plog_drop(plog);
    node->writers += f->writes;
    if (node->writer != NULL)
        dfc_plog_renew(node->writer);
    pthread_rwlock_unlock(&node->use);
    rc = plogs_attributes(p, node, st);
    if (rc != 0) {
        plogs_closefile(f);
        plog_nodes_forget(&p->nodes, node, 1);
        return rc;
    }
    *id = plog_nodes_id(&p->nodes, node);
    *out = f;
    return 0;
}

bool plogs_is_written(struct plogs_file *f)
{
    pthread_rwlock_rdlock(&f->node->use);
    const bool is_written = f->writes || f->node->writers > 0;
    pthread_rwlock_unlock(&f->node->use);
    return is_written;
}

void plogs_closefile(struct plogs_file *f)
{
    struct plog_node *node = f->node;
    pthread_rwlock_wrlock(&node->use);
    node->writers -= f->writes;
    if (f->writes && node->writers == 0 && plogs_end_writing(f->plogs, node) != 0 &&
        node->writer != NULL) {
        log_error("bytes are lost: the last close of the file failed", lstr("object", node->key));
        drop_writer(node);
    }
    pthread_rwlock_unlock(&node->use);
    file_free(f);
}

void plogs_rename_readers(struct plogs *p, const struct plog_node *node)
{
    pthread_mutex_lock(&p->files_lock);
    for (struct plogs_file *f = p->files; f != NULL; f = f->next) {
        if (f->node == node && f->reader != NULL)
            dfc_plog_renamed(f->reader, node->key);
    }
    pthread_mutex_unlock(&p->files_lock);
}

/* ---- bytes ---- */

static ssize_t read_flat(struct plogs_file *f, void *to, size_t size, uint64_t offset)
{
    struct segments_object o = {.key = f->node->key, .etag = f->node->version};
    pthread_mutex_lock(&f->plogs->nodes.lock);
    o.size = f->node->size;
    pthread_mutex_unlock(&f->plogs->nodes.lock);
    if (offset >= o.size)
        return 0;
    const size_t n = size < o.size - offset ? size : (size_t)(o.size - offset);
    const int rc = segments_read_object(f->plogs->segments, &o, to, n, offset);
    return rc == 0 ? (ssize_t)n : rc;
}

/* A segment is not there: the file was removed or replaced, or the bucket has lost the segment. */
static int missing(const struct plogs_file *f)
{
    struct dfc_error err;
    struct dfc_plog *now;
    const struct plogs *p = f->plogs;
    const struct dfc_plog_options how = {.id = f->node->version};
    if (dfc_plog_open(p->client, p->tree.bucket, f->node->key, &how, &now, &err) != DFC_OK)
        return err.result == DFC_NOT_FOUND || err.result == DFC_INVALID
                   ? -ESTALE
                   : plogs_told(f->node->key, &err);
    dfc_plog_drop(now);
    log_error("the plog has lost a segment: 'dfcctl plog check' names it",
              lstr("object", f->node->key));
    return -EIO;
}

static int read_plog(struct plogs_file *f, struct dfc_plog *plog, void *to, size_t size,
                     uint64_t offset, size_t *got)
{
    struct dfc_error err;
    if (dfc_plog_read(plog, to, size, offset, got, &err) == DFC_OK)
        return 0;
    return err.result == DFC_NOT_FOUND ? missing(f) : plogs_told(f->node->key, &err);
}

/* What others have changed is looked for if a call of this mount has seen that there is any. */
static ssize_t read_written(struct plogs_file *f, void *to, size_t size, uint64_t offset)
{
    struct plog_node *node = f->node;
    size_t got = 0;
    pthread_mutex_lock(&f->plogs->nodes.lock);
    const bool is_old = node->shown != node->generation;
    node->shown = node->generation;
    pthread_mutex_unlock(&f->plogs->nodes.lock);
    if (is_old)
        dfc_plog_renew(node->writer);
    const int rc = read_plog(f, node->writer, to, size, offset, &got);
    return rc == 0 ? (ssize_t)got : rc;
}

static ssize_t read_alone(struct plogs_file *f, void *to, size_t size, uint64_t offset)
{
    size_t got = 0;
    pthread_mutex_lock(&f->lock);
    int rc = look(f);
    if (rc == 0)
        rc = read_plog(f, f->reader, to, size, offset, &got);
    pthread_mutex_unlock(&f->lock);
    return rc == 0 ? (ssize_t)got : rc;
}

ssize_t plogs_read(struct plogs_file *f, void *to, size_t size, uint64_t offset)
{
    struct plog_node *node = f->node;
    ssize_t n = -ESTALE;
    pthread_rwlock_rdlock(&node->use);
    if (!node->is_gone)
        n = node->is_flat          ? read_flat(f, to, size, offset)
            : node->writer != NULL ? read_written(f, to, size, offset)
                                   : read_alone(f, to, size, offset);
    pthread_rwlock_unlock(&node->use);
    return n;
}

static int write_locked(struct plogs_file *f, const void *data, size_t size, uint64_t offset)
{
    struct dfc_error err;
    if (dfc_plog_write(f->node->writer, data, size, offset, &err) != DFC_OK)
        return plogs_told(f->node->key, &err);
    f->node->is_unsynced = true;
    plogs_has_changed(f->plogs, f->node);
    return 0;
}

/* The writer may be closed by a descriptor's close while another descriptor is open. */
int plogs_write(struct plogs_file *f, const void *data, size_t size, uint64_t offset)
{
    struct plog_node *node = f->node;
    pthread_rwlock_rdlock(&node->use);
    if (node->writer != NULL) {
        const int rc = write_locked(f, data, size, offset);
        pthread_rwlock_unlock(&node->use);
        return rc;
    }
    pthread_rwlock_unlock(&node->use);
    pthread_rwlock_wrlock(&node->use);
    int rc = plogs_begin_writing(f->plogs, node, 0);
    if (rc == 0)
        rc = write_locked(f, data, size, offset);
    pthread_rwlock_unlock(&node->use);
    return rc;
}

/* A write that comes meanwhile counts as unsynced. */
static int sync_locked(struct plog_node *node)
{
    struct dfc_error err;
    const bool was_unsynced = atomic_exchange(&node->is_unsynced, false);
    if (dfc_plog_sync(node->writer, &err) == DFC_OK) {
        dfc_plog_renew(node->writer); /* what others have synced is seen, too */
        return 0;
    }
    if (was_unsynced)
        node->is_unsynced = true;
    return plogs_told(node->key, &err);
}

int plogs_fsync(struct plogs_file *f)
{
    struct plog_node *node = f->node;
    int rc = 0;
    pthread_rwlock_rdlock(&node->use);
    if (f->writes && node->is_gone)
        rc = -ESTALE;
    else if (node->writer != NULL)
        rc = sync_locked(node);
    pthread_rwlock_unlock(&node->use);
    if (rc != -ESTALE)
        return rc;
    pthread_rwlock_wrlock(&node->use);
    plogs_end_gone(f->plogs, node);
    pthread_rwlock_unlock(&node->use);
    f->was_told = true;
    return rc;
}

/* Of a file that is gone: each handle is told once that bytes are lost. */
static int tell_lost(struct plogs_file *f)
{
    return f->node->has_lost && !atomic_exchange(&f->was_told, true) ? -ESTALE : 0;
}

int plogs_flush(struct plogs_file *f)
{
    struct plog_node *node = f->node;
    if (!f->writes)
        return 0;
    pthread_rwlock_wrlock(&node->use);
    const bool is_gone = node->is_gone;
    const bool is_last = node->writers == 1;
    int rc = 0;
    if (is_gone)
        plogs_end_gone(f->plogs, node);
    else if (is_last)
        rc = plogs_end_writing(f->plogs, node);
    if (rc == -ESTALE || (rc == 0 && is_gone))
        rc = tell_lost(f);
    pthread_rwlock_unlock(&node->use);
    return is_gone || is_last ? rc : plogs_fsync(f);
}
