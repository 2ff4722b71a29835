/* The files of vfs.h that are written: a draft, a writer, and a handle of both. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

static void written_close(struct handle *h)
{
    struct vfs_file *f = (struct vfs_file *)h;
    struct vfs *v = f->vfs;
    if (f->writer != NULL && !writer_is_saved(f->writer) && !atomic_load(&f->unlinked))
        log_warn("what was written is dropped", lstr("object", f->node->key),
                 lu64("bytes", writer_size(f->writer)));
    drafts_end(&v->drafts, f->node);
    writer_free(f->writer);
    nodes_forget(&v->nodes, f->node, 1);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct vfs_file *written_new(struct vfs *v, int64_t process)
{
    struct vfs_file *f = xcalloc(1, sizeof *f);
    f->vfs = v;
    f->process = process;
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

/* Before it was shown to anybody. */
static int written_refuse(struct vfs_file *f, int rc)
{
    pthread_mutex_destroy(&f->lock);
    free(f);
    return rc;
}

/* node: with a use, the handle's from now on. */
static int written_begin(struct vfs_file *f, struct node *node, const char *etag)
{
    const struct write_condition condition = {.if_match = etag};
    const struct ledger_record r = {.kind = LEDGER_WRITTEN, .node = node->id, .uses = 1};
    f->node = node;
    f->writer = writer_new(f->vfs->writers, node->key, &condition);
    int rc = handles_add(&f->vfs->handles, &f->handle, &r, written_close);
    if (rc != 0)
        written_close(&f->handle);
    return rc;
}

/* The ledger counts the use of the node that the handle has. */
void vfs_restore_written(struct vfs *v, uint64_t number, const struct ledger_record *r)
{
    struct vfs_file *f = written_new(v, 0);
    f->node = nodes_of(&v->nodes, r->node);
    f->lost = r->uses != 0;
    handles_restore(&v->handles, &f->handle, number, r->inode, written_close);
}

static struct node_is draft_of(struct vfs *v, const char *key)
{
    return (struct node_is){
        .key = key,
        .version = "",
        .inode = tree_inode(&v->tree, key),
        .modified_s = clock_wall_ms() / 1000,
    };
}

int vfs_create(struct vfs *v, const struct vfs_create *c, uint64_t *id, struct vfs_file **file)
{
    struct node *node = NULL;
    _cleanup_free_ char *key = NULL;
    int rc = (c->flags & O_APPEND) != 0 ? -EOPNOTSUPP : vfs_new_key(v, c->parent, c->name, &key);
    if (rc == 0)
        rc = tree_may_write(&v->tree, key);
    if (rc != 0)
        return rc;
    struct vfs_file *f = written_new(v, c->process);
    const struct node_is is = draft_of(v, key);
    rc = drafts_create(&v->drafts, &is, &f->unlinked, &node);
    if (rc != 0)
        return written_refuse(f, rc);
    rc = written_begin(f, node, NULL);
    if (rc != 0)
        return rc;
    nodes_use(&v->nodes, node); /* the kernel's */
    *id = nodes_id(node);
    *file = f;
    return 0;
}

/* The kernel looks the name up again then, and opens the draft. */
static int draft_want(struct vfs *v, const struct node *node, int flags)
{
    struct dfc_object_info *info;
    int rc = tree_may_write(&v->tree, node->key);
    if (rc != 0)
        return rc;
    rc = tree_head(&v->tree, node->key, &info);
    if (rc != 0)
        return rc == -ENOENT ? -ESTALE : rc;
    const struct node_is is = draft_of(v, node->key);
    rc = (flags & O_TRUNC) == 0 && info->size > 0 ? -EOPNOTSUPP
                                                  : drafts_want(&v->drafts, &is, info->etag);
    dfc_object_info_free(info);
    return rc != 0 ? rc : -ESTALE;
}

int vfs_openwrite(struct vfs *v, uint64_t id, int flags, int64_t process, struct vfs_file **file)
{
    struct node *node = nodes_of(&v->nodes, id);
    if (v->writers == NULL)
        return -EROFS;
    if ((flags & O_APPEND) != 0)
        return -EOPNOTSUPP;
    if (!node->is_draft)
        return draft_want(v, node, flags);
    _cleanup_free_ char *etag = NULL;
    struct vfs_file *f = written_new(v, process);
    int rc = drafts_open(&v->drafts, node, &f->unlinked, &etag);
    if (rc != 0)
        return written_refuse(f, rc);
    nodes_use(&v->nodes, node);
    rc = written_begin(f, node, etag);
    if (rc == 0)
        *file = f;
    return rc;
}

bool vfs_is_written(const struct vfs_file *f)
{
    return f->node != NULL;
}

int64_t vfs_process(const struct vfs_file *f)
{
    return f->process;
}

uint64_t vfs_inode(const struct vfs_file *f)
{
    return f->node->inode;
}

ssize_t vfs_write(struct vfs_file *f, const struct vfs_read *r, const void *from)
{
    if (f->node == NULL)
        return -EBADF;
    if (f->writer == NULL)
        return -EIO; /* the process before had it */
    const struct writer_bytes bytes = {
        .offset = r->offset,
        .data = from,
        .size = r->size,
        .interrupted = r->interrupted,
        .context = r->context,
    };
    ledger_uses(f->vfs->ledger, handles_number(&f->handle), 1);
    ssize_t n = writer_append(f->writer, &bytes);
    if (n > 0) {
        f->node->size = writer_size(f->writer);
        f->node->modified_s = clock_wall_ms() / 1000;
    }
    return n;
}

/* Of a name that is there, in the turn of a store. */
static int written_store(struct vfs_file *f)
{
    int rc = writer_store(f->writer);
    if (rc == 0)
        ledger_uses(f->vfs->ledger, handles_number(&f->handle), 0);
    if (writer_is_saved(f->writer))
        drafts_end(&f->vfs->drafts, f->node);
    return rc;
}

int vfs_store(struct vfs_file *f)
{
    struct drafts *drafts = &f->vfs->drafts;
    if (f->writer == NULL)
        return f->lost ? -EIO : 0;
    drafts_store_begin(drafts, f->node);
    int rc = atomic_load(&f->unlinked) ? 0 : written_store(f);
    drafts_store_end(drafts, f->node);
    return rc;
}

void vfs_drop(struct vfs_file *f)
{
    if (f->writer == NULL)
        return;
    log_info("a program that wrote was killed", lstr("object", f->node->key));
    writer_drop(f->writer);
    drafts_end(&f->vfs->drafts, f->node);
}

void vfs_close_written(struct vfs_file *f)
{
    drafts_closing(&f->vfs->drafts, f->node);
    if (f->writer != NULL && !writer_is_saved(f->writer))
        vfs_store(f);
    handles_remove(&f->vfs->handles, &f->handle);
    written_close(&f->handle);
}

int vfs_resize(struct vfs *v, uint64_t id, uint64_t size)
{
    const struct node *node = nodes_of(&v->nodes, id);
    if (v->writers == NULL)
        return -EROFS;
    return !node->is_directory && node->size == size ? 0 : -EOPNOTSUPP;
}
