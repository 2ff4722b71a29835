/* The directories of vfs.h.  Offsets count entries: a reader that goes back begins a new list. */
#include "mount/vfs/vfs_parts.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/bucket/names.h"

struct vfs_directory {
    struct handle handle; /* first */
    struct vfs *vfs;
    struct node *node;       /* a use */
    struct listing *listing; /* NULL: not begun */
    uint64_t at;             /* number of the entry below, or of the next one */
    bool has_entry;
    struct entry entry;
    int failed; /* what the next page fails with */
};

static uint64_t const first_offset = 2; /* behind "." and ".." */

static void directory_rewind(struct vfs_directory *d)
{
    if (d->has_entry)
        entry_done(&d->entry);
    listing_close(d->listing);
    d->listing = NULL;
    d->has_entry = false;
}

static void directory_close(struct handle *h)
{
    struct vfs_directory *d = (struct vfs_directory *)h;
    directory_rewind(d);
    nodes_forget(&d->vfs->nodes, d->node, 1);
    free(d);
}

int vfs_opendir(struct vfs *v, uint64_t id, struct vfs_directory **directory)
{
    struct vfs_directory *d = xcalloc(1, sizeof *d);
    d->vfs = v;
    d->node = nodes_of(&v->nodes, id);
    nodes_use(&v->nodes, d->node);
    const struct ledger_record r = {.kind = LEDGER_DIRECTORY, .node = id};
    int rc = handles_add(&v->handles, &d->handle, &r, directory_close);
    if (rc != 0)
        directory_close(&d->handle);
    else
        *directory = d;
    return rc;
}

/* The ledger counts the use of the node that the handle has. */
void vfs_restore_directory(struct vfs *v, uint64_t number, const struct ledger_record *r)
{
    struct vfs_directory *d = xcalloc(1, sizeof *d);
    d->vfs = v;
    d->node = nodes_of(&v->nodes, r->node);
    handles_restore(&v->handles, &d->handle, number, r->inode, directory_close);
}

uint64_t vfs_directory_id(const struct vfs_directory *d)
{
    return d->handle.id;
}

struct vfs_directory *vfs_directory_of(struct vfs *v, uint64_t id)
{
    return (struct vfs_directory *)handles_of(&v->handles, id);
}

void vfs_closedir(struct vfs_directory *d)
{
    handles_remove(&d->vfs->handles, &d->handle);
    directory_close(&d->handle);
}

static void directory_drop(struct vfs_directory *d)
{
    entry_done(&d->entry);
    d->has_entry = false;
    d->at++;
}

/* 1: d->entry is the one at this offset; 0: there is none; -errno. */
static int directory_seek(struct vfs_directory *d, uint64_t offset)
{
    int rc = 1;
    if (d->listing != NULL && offset < d->at)
        directory_rewind(d);
    if (d->listing == NULL) {
        rc = listing_open(&d->vfs->tree, d->node->key, &d->listing);
        if (rc != 0)
            return rc;
        d->at = first_offset;
    }
    for (;;) {
        if (!d->has_entry) {
            rc = listing_next(d->listing, &d->entry);
            if (rc <= 0)
                return rc;
            d->has_entry = true;
        }
        if (d->at == offset)
            return 1;
        directory_drop(d);
    }
}

static bool fill_dot(struct vfs_directory *d, uint64_t offset,
                     bool (*fill)(void *context, const struct vfs_entry *e), void *context)
{
    const struct vfs_entry e = {
        .name = offset == 0 ? "." : "..",
        .is_directory = true,
        .inode = d->node->inode,
        .next = offset + 1,
        .directory = d,
    };
    return fill(context, &e);
}

static bool fill_entry(struct vfs_directory *d,
                       bool (*fill)(void *context, const struct vfs_entry *e), void *context)
{
    const struct entry *e = &d->entry;
    _cleanup_free_ char *key =
        e->is_directory ? name_directory(d->node->key, e->name) : name_file(d->node->key, e->name);
    const struct vfs_entry out = {
        .name = e->name,
        .is_directory = e->is_directory,
        .is_known = e->is_directory || e->is_known,
        .inode = tree_inode(&d->vfs->tree, key),
        .next = d->at + 1,
        .directory = d,
    };
    return fill(context, &out);
}

int vfs_readdir(struct vfs_directory *d, uint64_t offset,
                bool (*fill)(void *context, const struct vfs_entry *e), void *context)
{
    const int failed = d->failed;
    d->failed = 0;
    if (failed != 0 && offset > 0)
        return failed;
    for (; offset < first_offset; offset++) {
        if (!fill_dot(d, offset, fill, context))
            return 0;
    }
    for (;; offset++) {
        int rc = directory_seek(d, offset);
        if (rc <= 0)
            return rc;
        if (!fill_entry(d, fill, context))
            return 0;
    }
}

void vfs_readdir_failed(struct vfs_directory *d, int rc)
{
    d->failed = rc;
}

uint64_t vfs_adopt(const struct vfs_entry *e)
{
    uint64_t id = 0;
    struct vfs_directory *d = e->directory;
    return vfs_id_of(d->vfs, d->node->key, &d->entry, &id) == 0 ? id : 0;
}
