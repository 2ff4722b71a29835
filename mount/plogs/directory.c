/* A directory is listed when it is read from its beginning, and kept until it is closed. */
#include "mount/plogs/plogs_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "mount/bucket/names.h"

struct row {
    char *name;
    bool is_directory;
};

struct plogs_directory {
    struct plogs *plogs;
    struct plog_node *node;
    struct row *rows;
    size_t count, room;
};

static void rows_done(struct plogs_directory *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->rows[i].name);
    free(d->rows);
    d->rows = NULL;
    d->count = d->room = 0;
}

static void add(struct plogs_directory *d, const char *name, bool is_directory)
{
    if (d->count == d->room) {
        d->room = d->room > 0 ? 2 * d->room : 64;
        d->rows = xrealloc(d->rows, d->room * sizeof *d->rows);
    }
    d->rows[d->count++] = (struct row){.name = xstrdup(name), .is_directory = is_directory};
}

static int list(struct plogs_directory *d)
{
    _cleanup_(listing_closep)
    struct listing *l = NULL;
    struct entry e;
    int rc = listing_open(&d->plogs->tree, d->node->key, &l);
    rows_done(d);
    if (rc != 0)
        return rc;
    add(d, ".", true);
    add(d, "..", true);
    while ((rc = listing_next(l, &e)) > 0) {
        add(d, e.name, e.is_directory);
        entry_done(&e);
    }
    return rc;
}

int plogs_opendir(struct plogs *p, uint64_t id, struct plogs_directory **out)
{
    struct plog_node *node = plog_nodes_of(&p->nodes, id);
    if (!node->is_directory)
        return -ENOTDIR;
    struct plogs_directory *d = xcalloc(1, sizeof *d);
    d->plogs = p;
    d->node = node;
    plog_nodes_use(&p->nodes, node);
    *out = d;
    return 0;
}

static uint64_t inode_of(const struct plogs_directory *d, const struct row *r)
{
    _cleanup_free_ char *key =
        r->is_directory ? name_directory(d->node->key, r->name) : name_file(d->node->key, r->name);
    return tree_inode(&d->plogs->tree, key);
}

int plogs_readdir(struct plogs_directory *d, uint64_t offset,
                  bool (*fill)(void *context, const struct plogs_entry *e), void *context)
{
    const int rc = offset == 0 ? list(d) : 0;
    if (rc != 0)
        return rc;
    for (uint64_t i = offset; i < d->count; i++) {
        const struct row *r = &d->rows[i];
        const struct plogs_entry e = {.name = r->name,
                                      .is_directory = r->is_directory,
                                      .inode = i < 2 ? d->node->inode : inode_of(d, r),
                                      .next = i + 1};
        if (!fill(context, &e))
            break;
    }
    return 0;
}

void plogs_closedir(struct plogs_directory *d)
{
    rows_done(d);
    plog_nodes_forget(&d->plogs->nodes, d->node, 1);
    free(d);
}
