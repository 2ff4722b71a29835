/* Lookups, attributes, directories, links: what only reads. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/volume/counters.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"

struct look {
    uint64_t ino;
    const char *name;
    struct volume_inode *out;
    struct attr *attr;
};

static int decide_attr(struct txn *t, void *op)
{
    struct look *l = op;
    struct meta_key key = meta_key_point(META_ATTR, l->ino);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    if (!value.found)
        return -ENOENT;
    return attr_decode(&value, l->attr) ? 0 : -EIO;
}

int volume_getattr(struct volume *v, uint64_t ino, struct attr *out)
{
    struct look l = {.ino = ino, .attr = out};
    return txn_run(v, decide_attr, &l);
}

/* No list has the trash, and its name is no entry. */
static bool is_trash(const struct look *l)
{
    return l->ino == VOLUME_ROOT && strcmp(l->name, TRASH_NAME) == 0;
}

static int decide_lookup(struct txn *t, void *op)
{
    struct look *l = op;
    struct meta_item item = {.ask = META_FOLLOW, .key = steps_entry(l->ino, l->name)};
    int rc = txn_read(t, &item, 1);
    if (rc != 0)
        return rc;
    if (!item.value.found)
        return -ENOENT;
    l->out->ino = meta_entry_inode(&item.value);
    return attr_decode(&item.attr, &l->out->attr) ? 0 : -EIO;
}

int volume_lookup(struct volume *v, uint64_t directory, const char *name, struct volume_inode *out)
{
    struct look l = {.ino = directory, .name = name, .out = out};
    int rc = steps_check_name(name);
    if (rc == 0 && is_trash(&l)) {
        out->ino = TRASH_INO;
        return volume_getattr(v, TRASH_INO, &out->attr);
    }
    return rc != 0 ? rc : txn_run(v, decide_lookup, &l);
}

/* ---- symbolic links ---- */

struct link {
    uint64_t ino;
    struct arena *arena;
    char *target;
};

static int decide_readlink(struct txn *t, void *op)
{
    struct link *l = op;
    struct attr a;
    struct meta_item items[] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, l->ino)},
        {.ask = META_GET, .key = meta_key_point(META_SYMLINK, l->ino)},
    };
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    if (!attr_decode(&items[0].value, &a))
        return -EIO;
    if (!S_ISLNK(a.mode))
        return -EINVAL;
    l->target = arena_strndup(l->arena, (const char *)items[1].value.data, items[1].value.size);
    return 0;
}

int volume_readlink(struct volume *v, uint64_t ino, struct arena *arena, char **target)
{
    struct link l = {.ino = ino, .arena = arena};
    int rc = txn_run(v, decide_readlink, &l);
    *target = l.target;
    return rc;
}

/* ---- directories ---- */

struct list {
    uint64_t directory;
    const char *after;
    size_t limit;
    struct arena *arena;
    struct volume_name *names;
    size_t count;
    bool more;
};

static int decide_readdir(struct txn *t, void *op)
{
    struct list *l = op;
    struct attr a;
    struct meta_item items[] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, l->directory)},
        {.ask = META_PAGE, .after = l->after[0] != '\0', .limit = l->limit},
    };
    items[1].key = (struct meta_key){.kind = META_ENTRY, .id = l->directory};
    if (items[1].after)
        items[1].key = steps_entry(l->directory, l->after);
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    rc = steps_check_directory(&items[0].value, &a);
    if (rc != 0 && !(rc == -ENOENT && items[0].value.found)) /* one that was removed is empty */
        return rc;
    l->names = arena_alloc(l->arena, (items[1].count + 1) * sizeof *l->names);
    for (l->count = 0; l->count < items[1].count; l->count++) {
        const struct meta_row *row = &items[1].rows[l->count];
        struct volume_name *n = &l->names[l->count];
        n->name = arena_strndup(l->arena, row->key.name, row->key.name_size);
        n->type = entry_type(&row->value);
        n->ino = meta_entry_inode(&row->value);
        n->known = attr_decode(&row->attr, &n->attr);
    }
    l->more = items[1].more;
    return 0;
}

int volume_readdir(struct volume *v, uint64_t directory, const char *after, size_t limit,
                   struct arena *arena, struct volume_name **out, size_t *count, bool *more)
{
    struct list l = {.directory = directory, .after = after, .limit = limit, .arena = arena};
    int rc = strlen(after) > META_NAME_MAX ? -EINVAL : txn_run(v, decide_readdir, &l);
    *out = l.names;
    *count = l.count;
    *more = l.more;
    return rc;
}

/* ---- use ---- */

static int decide_use(struct txn *t, void *op)
{
    struct volume_use *u = op;
    struct meta_key key = counters_use_key();
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    *u = (struct volume_use){
        .inodes = meta_field(&value, USE_INODES),
        .bytes = meta_field(&value, USE_BYTES),
        .inodes_left = meta_field(&value, USE_INODES_LEFT),
        .bytes_left = meta_field(&value, USE_BYTES_LEFT),
    };
    return 0;
}

int volume_use(struct volume *v, struct volume_use *out)
{
    return txn_run(v, decide_use, out);
}
