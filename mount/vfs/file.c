/* The files of vfs.h. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static void file_close(struct handle *h)
{
    struct vfs_file *f = (struct vfs_file *)h;
    buffer_readers(f->vfs->buffer, -1);
    entity_unref(f->entity);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct vfs_file *file_new(struct vfs *v, struct entity *e)
{
    struct vfs_file *f = xcalloc(1, sizeof *f);
    f->vfs = v;
    f->entity = e;
    pthread_mutex_init(&f->lock, NULL);
    buffer_readers(v->buffer, 1);
    return f;
}

/* What the node opens: 0, or -ESTALE where the kernel must look the name up again. */
static int check_node(struct vfs *v, const struct node *node, const struct dfc_object_info *info)
{
    if (node->is_draft)
        return drafts_look(&v->drafts, node);
    return strcmp(tree_version(info), node->version) == 0 && info->size == node->size ? 0 : -ESTALE;
}

/* An open of the node, by which somebody reads. */
static void take_node(struct vfs_file *f, struct node *node)
{
    nodes_use(&f->vfs->nodes, node);
    f->of = node;
    f->backing = passing_open(&f->vfs->passing, node, f->entity);
}

static void give_node(struct vfs_file *f)
{
    if (f->of == NULL)
        return;
    passing_close(&f->vfs->passing, f->of, f->backing);
    nodes_forget(&f->vfs->nodes, f->of, 1);
}

static int file_add(struct vfs_file *f)
{
    const struct entity *e = passing_entity(f->of, f->entity, f->backing);
    const struct ledger_record r = {
        .kind = LEDGER_FILE,
        .node = f->of != NULL ? f->of->id : 0,
        .uses = (uint64_t)f->backing,
        .modified_s = (int64_t)f->request,
        .size = e->size,
        .texts = {e->key, e->etag, e->checksum},
    };
    return handles_add(&f->vfs->handles, &f->handle, &r, file_close);
}

/* Nobody knows of it. */
static void file_refuse(struct vfs_file *f)
{
    give_node(f);
    file_close(&f->handle);
}

int vfs_openfile(struct vfs *v, uint64_t id, uint64_t request, struct vfs_file **file)
{
    struct dfc_object_info *info;
    struct node *node = nodes_of(&v->nodes, id);
    int rc = tree_head(&v->tree, node->key, &info);
    if (rc == -ENOENT && node->is_draft && drafts_look(&v->drafts, node) == 0)
        return -EBUSY;
    if (rc != 0)
        return rc == -ENOENT ? -ESTALE : rc;
    rc = check_node(v, node, info);
    if (rc != 0) {
        dfc_object_info_free(info);
        return rc;
    }
    struct vfs_file *f = file_new(v, tree_entity(node->key, info));
    dfc_object_info_free(info);
    f->request = request;
    if (!node->is_draft)
        take_node(f, node);
    rc = file_add(f);
    if (rc != 0)
        file_refuse(f);
    else
        *file = f;
    return rc;
}

/* The ledger counts the use of the node that the handle has. */
void vfs_restore_file(struct vfs *v, uint64_t number, const struct ledger_record *r)
{
    struct vfs_file *f = file_new(v, entity_new(r->texts[0], r->texts[1], r->texts[2], r->size));
    f->request = (uint64_t)r->modified_s;
    if (r->node != 0) {
        f->of = nodes_of(&v->nodes, r->node);
        f->backing = (int)r->uses;
        passing_restore(&v->passing, f->of, f->entity, f->backing);
    }
    handles_restore(&v->handles, &f->handle, number, r->inode, file_close);
}

static bool is_of_request(const struct handle *h, const void *wanted)
{
    const struct vfs_file *f = (const struct vfs_file *)h;
    return h->close == file_close && f->request == *(const uint64_t *)wanted;
}

struct vfs_file *vfs_file_again(struct vfs *v, uint64_t request)
{
    return (struct vfs_file *)handles_find(&v->handles, is_of_request, &request);
}

int vfs_file_backing(const struct vfs_file *f)
{
    return f->backing;
}

uint64_t vfs_file_id(const struct vfs_file *f)
{
    return f->handle.id;
}

struct vfs_file *vfs_file_of(struct vfs *v, uint64_t id)
{
    return (struct vfs_file *)handles_of(&v->handles, id);
}

void vfs_closefile(struct vfs_file *f)
{
    if (f->node != NULL) {
        vfs_close_written(f);
        return;
    }
    handles_remove(&f->vfs->handles, &f->handle); /* first: the ledger forgets the backing */
    give_node(f);
    file_close(&f->handle);
}

ssize_t vfs_read(struct vfs_file *f, const struct vfs_read *r, void *to)
{
    if (f->entity == NULL)
        return -EOPNOTSUPP; /* it is written */
    const uint64_t file_size = f->entity->size;
    if (r->offset >= file_size)
        return 0;
    size_t size = r->size < file_size - r->offset ? r->size : (size_t)(file_size - r->offset);
    uint64_t most = buffer_share(f->vfs->buffer);
    if (most > f->vfs->options.readahead_bytes)
        most = f->vfs->options.readahead_bytes;
    pthread_mutex_lock(&f->lock);
    struct span ahead = readahead_read(&f->readahead, r->offset, size, file_size, most);
    bool lone = f->readahead.lone;
    pthread_mutex_unlock(&f->lock);
    const struct buffer_read what = {
        .entity = f->entity,
        .offset = r->offset,
        .size = size,
        .ahead = ahead,
        .lone = lone,
        .interrupted = r->interrupted,
        .context = r->context,
    };
    int rc = buffer_read(f->vfs->buffer, &what, to);
    return rc != 0 ? rc : (ssize_t)size;
}
