#include "mount/volume/check/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "mount/volume/attr.h"
#include "mount/volume/check/quotas_check.h"
#include "mount/volume/counters.h"
#include "mount/volume/trash.h"
#include "mount/volume/walk.h"

struct shared {
    uint64_t slice;
    int64_t entries;
};

struct look {
    struct check *check;
    struct meta *m;
    const struct volume_format *format;
    struct arena *arena;
    struct check_inode *inodes;
    size_t count, room;
    struct check_quotas quotas;
    struct shared *shared;
    size_t shared_count, shared_room;
    int64_t use_inodes, use_bytes;
    int64_t inodes_left, bytes_left, inodes_should_left, bytes_should_left;
};

/* ---- inodes ---- */

static int by_ino(const void *a, const void *b)
{
    const struct check_inode *one = a, *two = b;
    return one->ino < two->ino ? -1 : one->ino > two->ino;
}

static struct check_inode *inode_of(const struct look *l, uint64_t ino)
{
    const struct check_inode key = {.ino = ino};
    return l->count > 0 ? bsearch(&key, l->inodes, l->count, sizeof key, by_ino) : NULL;
}

static int see_attr(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    struct attr a;
    (void)err;
    if (!attr_decode(&row->value, &a)) {
        check_add(l->check, CHECK_ATTR, row->key.id);
        return 0;
    }
    if (l->count == l->room) {
        l->room = 2 * l->room + 256;
        l->inodes = xrealloc(l->inodes, l->room * sizeof *l->inodes);
    }
    l->inodes[l->count++] = (struct check_inode){
        .stamp = row->value.stamp,
        .ino = row->key.id,
        .parent = a.parent,
        .mode = a.mode,
        .nlink = a.nlink,
        .entries = a.entries,
        .quota = a.quota,
        .bytes = S_ISREG(a.mode) ? a.length : 0,
    };
    return 0;
}

static int see_entry(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    const uint64_t ino = meta_entry_inode(&row->value);
    struct check_inode *directory = inode_of(l, row->key.id), *i = inode_of(l, ino);
    (void)err;
    directory->children++;
    directory->directories += S_ISDIR(entry_type(&row->value));
    if (i == NULL || (i->mode & S_IFMT) != entry_type(&row->value)) {
        struct check_finding *f = check_add(l->check, i == NULL ? CHECK_DANGLING : CHECK_TYPE, ino);
        f->other = row->key.id;
        memcpy(f->name, row->key.name, row->key.name_size);
    }
    if (i != NULL) {
        i->names++;
        i->from = row->key.id;
    }
    return 0;
}

/* ---- slices ---- */

static int see_chunk(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    struct check *c = l->check;
    struct slice_list list;
    struct error ignored = ERROR_INIT; /* the finding says it */
    (void)err;
    arena_reset(l->arena);
    if (slices_decode(row->value.data, row->value.size, l->format->chunk_bytes, l->arena, &list,
                      &ignored) != 0) {
        check_add(c, CHECK_CHUNK, row->key.id)->other = row->key.sub;
        return 0;
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct slice_entry *e = &list.entries[i];
        if (e->slice == 0)
            continue;
        if (c->slice_count == c->slice_room) {
            c->slice_room = 2 * c->slice_room + 256;
            c->slices = xrealloc(c->slices, c->slice_room * sizeof *c->slices);
        }
        c->slices[c->slice_count++] = (struct check_slice){
            .slice = e->slice,
            .ino = row->key.id,
            .size = e->size,
            .removed = inode_of(l, row->key.id)->nlink == 0,
        };
    }
    return 0;
}

static int see_shared(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    (void)err;
    if (l->shared_count == l->shared_room) {
        l->shared_room = 2 * l->shared_room + 64;
        l->shared = xrealloc(l->shared, l->shared_room * sizeof *l->shared);
    }
    l->shared[l->shared_count++] = (struct shared){row->key.id, meta_field(&row->value, 0)};
    return 0;
}

static int by_shared(const void *a, const void *b)
{
    const struct shared *one = a, *two = b;
    return one->slice < two->slice ? -1 : one->slice > two->slice;
}

static int by_slice(const void *a, const void *b)
{
    const struct check_slice *one = a, *two = b;
    return one->slice < two->slice ? -1 : one->slice > two->slice;
}

static bool is_named(const struct check *c, uint64_t slice)
{
    const struct check_slice key = {.slice = slice};
    return c->slice_count > 0 &&
           bsearch(&key, c->slices, c->slice_count, sizeof key, by_slice) != NULL;
}

/* ---- queues and counters ---- */

static int see_unlinked(void *context, const struct meta_row *row, struct error *err)
{
    struct check_inode *i = inode_of(context, row->key.sub);
    (void)err;
    if (i != NULL)
        i->queued = true;
    return 0;
}

static int see_garbage(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    (void)err;
    if (is_named(l->check, row->key.sub))
        check_add(l->check, CHECK_GARBAGE, row->key.sub)->other = row->key.id;
    return 0;
}

static int see_quota(void *context, const struct meta_row *row, struct error *err)
{
    struct look *l = context;
    (void)err;
    check_quotas_see(&l->quotas, row);
    return 0;
}

/* With the limits of the same moment, which may be changed at any time. */
static int see_use(struct look *l, struct error *err)
{
    struct volume_format limits;
    struct meta_item items[] = {
        {.ask = META_GET, .key = counters_use_key()},
        {.ask = META_GET, .key = meta_key_point(META_FORMAT, 0)},
    };
    struct meta_read r = {.arena = l->arena, .items = items, .count = 2};
    const struct meta_value *use = &items[0].value;
    int rc = l->m->ops->read(l->m, &r, err);
    if (rc == 0)
        rc = format_parse(&items[1].value, &limits, err);
    if (rc != 0)
        return rc;
    l->use_inodes = meta_field(use, USE_INODES);
    l->use_bytes = meta_field(use, USE_BYTES);
    l->inodes_left = meta_field(use, USE_INODES_LEFT);
    l->bytes_left = meta_field(use, USE_BYTES_LEFT);
    l->inodes_should_left = counters_left(limits.max_inodes, l->use_inodes);
    l->bytes_should_left = counters_left(limits.max_bytes, l->use_bytes);
    return 0;
}

/* ---- judgement ---- */

/* It needs no name. */
static bool is_top(const struct check_inode *i)
{
    return i->ino == VOLUME_ROOT || i->ino == TRASH_INO;
}

static bool leads_to_root(const struct look *l, const struct check_inode *i)
{
    for (size_t steps = 0; i != NULL && steps <= l->count; steps++) {
        if (is_top(i))
            return true;
        i = i->names > 0 ? inode_of(l, i->from) : NULL;
    }
    return false;
}

static void judge_directory(const struct look *l, const struct check_inode *i)
{
    struct check *c = l->check;
    check_add_counter(c, CHECK_ENTRIES, i->ino, i->entries, i->children);
    if (i->nlink > 0 || is_top(i))
        check_add_counter(c, CHECK_LINKS, i->ino, i->nlink, 2 + i->directories);
    if (is_top(i))
        return;
    if (i->nlink > 0 && i->names == 0)
        check_add(c, CHECK_ORPHAN, i->ino)->stamp = i->stamp;
    else if (i->nlink == 0 && i->names > 0)
        check_add_names(c, CHECK_NLINK, i->ino, i->stamp, 0, 2 + i->directories);
    else if (i->names > 1)
        check_add(c, CHECK_TWICE, i->ino);
    else if (i->names == 1 && i->from != i->parent)
        check_add_names(c, CHECK_PARENT, i->ino, i->stamp, (int64_t)i->parent, (int64_t)i->from);
    else if (i->names == 1 && !leads_to_root(l, i))
        check_add(c, CHECK_LOOP, i->ino);
}

static void judge_inode(const struct look *l, const struct check_inode *i)
{
    if (S_ISDIR(i->mode))
        judge_directory(l, i);
    else if (i->names == 0 && i->nlink > 0)
        check_add(l->check, CHECK_ORPHAN, i->ino)->stamp = i->stamp;
    else
        check_add_names(l->check, CHECK_NLINK, i->ino, i->stamp, i->nlink, i->names);
    if (i->nlink == 0 && i->names == 0 && !i->queued && !is_top(i))
        check_add(l->check, CHECK_UNQUEUED, i->ino);
}

/* A slice with several entries has a count of them. */
static void judge_slices(const struct look *l)
{
    struct check *c = l->check;
    int64_t bytes = 0;
    for (size_t i = 0, next; i < c->slice_count; i = next) {
        const uint64_t slice = c->slices[i].slice;
        int64_t shared;
        for (next = i; next < c->slice_count && c->slices[next].slice == slice; next++)
            continue;
        const struct shared key = {.slice = slice}, *kept = NULL;
        if (l->shared_count > 0)
            kept = bsearch(&key, l->shared, l->shared_count, sizeof key, by_shared);
        shared = kept != NULL ? kept->entries : 1;
        check_add_counter(c, CHECK_SHARED, slice, shared, (int64_t)(next - i));
        bytes += c->slices[i].size;
    }
    for (size_t i = 0; i < l->shared_count; i++) {
        if (!is_named(c, l->shared[i].slice))
            check_add(c, CHECK_UNNAMED, l->shared[i].slice)->is = l->shared[i].entries;
    }
    check_add_counter(c, CHECK_USE_BYTES, 0, l->use_bytes, bytes);
}

static void judge_use(const struct look *l)
{
    struct check *c = l->check;
    check_add_counter(c, CHECK_USE_INODES, 0, l->use_inodes, (int64_t)l->count);
    check_add_counter(c, CHECK_USE_INODES_LEFT, 0, l->inodes_left, l->inodes_should_left);
    check_add_counter(c, CHECK_USE_BYTES_LEFT, 0, l->bytes_left, l->bytes_should_left);
}

/* ---- the check ---- */

static int walk(struct look *l, enum meta_kind kind, walk_visit *visit, struct error *err)
{
    const struct walk w = {.m = l->m, .visit = visit, .context = l};
    return meta_kind_shape(kind) == META_QUEUE ? walk_queue(&w, kind, err)
                                               : walk_points(&w, kind, err);
}

static int walk_of_type(struct look *l, uint32_t type, enum meta_kind kind, walk_visit *visit,
                        struct error *err)
{
    const struct walk w = {.m = l->m, .visit = visit, .context = l};
    uint64_t *inodes = xmalloc((l->count + 1) * sizeof *inodes);
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if ((l->inodes[i].mode & S_IFMT) == type)
            inodes[count++] = l->inodes[i].ino;
    }
    int rc = walk_children(&w, kind, inodes, count, err);
    free(inodes);
    return rc;
}

static int see_all(struct look *l, struct error *err)
{
    int rc = walk(l, META_ATTR, see_attr, err);
    if (rc == 0 && l->count > 0)
        qsort(l->inodes, l->count, sizeof *l->inodes, by_ino);
    if (rc == 0)
        rc = walk_of_type(l, S_IFDIR, META_ENTRY, see_entry, err);
    if (rc == 0)
        rc = walk_of_type(l, S_IFREG, META_CHUNK, see_chunk, err);
    if (rc == 0 && l->check->slice_count > 0)
        qsort(l->check->slices, l->check->slice_count, sizeof *l->check->slices, by_slice);
    if (rc == 0)
        rc = walk(l, META_SHARED, see_shared, err);
    if (rc == 0 && l->shared_count > 0)
        qsort(l->shared, l->shared_count, sizeof *l->shared, by_shared);
    if (rc == 0)
        rc = walk(l, META_UNLINKED, see_unlinked, err);
    if (rc == 0)
        rc = walk(l, META_GARBAGE, see_garbage, err);
    if (rc == 0)
        rc = walk(l, META_QUOTA, see_quota, err);
    return rc == 0 ? see_use(l, err) : rc;
}

int check_run(struct check *c, struct meta *m, const struct volume_format *f, struct error *err)
{
    struct look l = {.check = c, .m = m, .format = f, .arena = arena_new(4096)};
    *c = (struct check){0};
    int rc = see_all(&l, err);
    const struct check_inodes inodes = {l.inodes, l.count};
    for (size_t i = 0; i < l.count && rc == 0; i++)
        judge_inode(&l, &l.inodes[i]);
    if (rc == 0) /* their repairs give inodes new stamps, so they come later */
        check_quotas_judge(&l.quotas, &inodes, c);
    check_quotas_done(&l.quotas);
    if (rc == 0) {
        judge_slices(&l);
        judge_use(&l);
    }
    c->inodes = l.count;
    free(l.inodes);
    free(l.shared);
    arena_free(l.arena);
    return rc;
}
