/* The files of vfs.h. */
#include "mount/vfs/vfs_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct vfs_file {
    struct handle handle; /* first */
    struct vfs *vfs;
    struct entity *entity;
    pthread_mutex_t lock; /* guards the next one; the buffer's lock is never taken with it */
    struct readahead readahead;
};

static void file_close(struct handle *h)
{
    struct vfs_file *f = (struct vfs_file *)h;
    buffer_readers(f->vfs->buffer, -1);
    entity_unref(f->entity);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

int vfs_openfile(struct vfs *v, uint64_t id, struct vfs_file **file)
{
    struct dfc_object_info *info;
    const struct node *node = nodes_of(&v->nodes, id);
    int rc = tree_head(&v->tree, node->key, &info);
    if (rc != 0)
        return rc == -ENOENT ? -ESTALE : rc;
    if (strcmp(tree_version(info), node->version) != 0 || info->size != node->size) {
        dfc_object_info_free(info);
        return -ESTALE;
    }
    struct vfs_file *f = xcalloc(1, sizeof *f);
    f->vfs = v;
    f->entity = tree_entity(node->key, info);
    pthread_mutex_init(&f->lock, NULL);
    buffer_readers(v->buffer, 1);
    dfc_object_info_free(info);
    handles_add(&v->handles, &f->handle, file_close);
    *file = f;
    return 0;
}

void vfs_closefile(struct vfs_file *f)
{
    handles_remove(&f->vfs->handles, &f->handle);
    file_close(&f->handle);
}

ssize_t vfs_read(struct vfs_file *f, const struct vfs_read *r, void *to)
{
    const uint64_t file_size = f->entity->size;
    if (r->offset >= file_size)
        return 0;
    size_t size = r->size < file_size - r->offset ? r->size : (size_t)(file_size - r->offset);
    uint64_t most = buffer_share(f->vfs->buffer);
    if (most > f->vfs->options.readahead_bytes)
        most = f->vfs->options.readahead_bytes;
    pthread_mutex_lock(&f->lock);
    struct span ahead = readahead_read(&f->readahead, r->offset, size, file_size, most);
    pthread_mutex_unlock(&f->lock);
    const struct buffer_read what = {
        .entity = f->entity,
        .offset = r->offset,
        .size = size,
        .ahead = ahead,
        .interrupted = r->interrupted,
        .context = r->context,
    };
    int rc = buffer_read(f->vfs->buffer, &what, to);
    return rc != 0 ? rc : (ssize_t)size;
}
