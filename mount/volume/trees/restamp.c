#include "mount/volume/trees/restamp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"

enum { PAGE = 64 };

/* ---- a batch ---- */

struct batch {
    const struct restamp *r;
    uint64_t directory;
    bool of_trash; /* the directory itself has no quota */
    const struct volume_name *names;
    size_t count;
    uint64_t below[PAGE]; /* filled: directories */
    size_t below_count;
    uint64_t changed;
    int64_t inodes, bytes;
};

static bool is_repeated(const struct meta_item *items, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (items[k].value.found &&
            meta_entry_inode(&items[k].value) == meta_entry_inode(&items[i].value))
            return true;
    }
    return false;
}

/* Not `quota set`: what has come to the trash, or leaves it. */
static bool is_about_trash(const struct restamp *r)
{
    return r->limited || r->quota == 0;
}

/* Does an inode with this quota keep it?  EBUSY: so does its tree, which is in the way.  EXDEV: so
 * does a file with another name, which would come to a place with another quota. */
static int keeps(const struct batch *b, const struct attr *a, uint64_t ino, const struct quota *old,
                 bool *out)
{
    const struct restamp *r = b->r;
    const bool own = old->id != 0 && old->directory == ino;
    const bool others = old->id != 0 && !is_about_trash(r);
    const bool named_elsewhere = !attr_is_directory(a) && a->nlink > 1 && is_about_trash(r);
    *out = own || others || named_elsewhere;
    if (named_elsewhere && r->limited && old->id != r->quota)
        return -EXDEV;
    return attr_is_directory(a) && *out && r->quota != 0 ? -EBUSY : 0;
}

static int change(struct txn *t, struct batch *b, const struct meta_item *item,
                  const struct attr *a)
{
    const uint64_t ino = meta_entry_inode(&item->value);
    const struct meta_key inode = meta_key_point(META_ATTR, ino);
    struct quota old;
    bool kept;
    int rc = quotas_get(t, a->quota, &old);
    if (rc == 0)
        rc = keeps(b, a, ino, &old, &kept);
    if (rc != 0 || kept)
        return rc;
    txn_expect(t, &item->key, &item->value);
    quotas_expect(t, &inode, a);
    if (!attr_is_directory(a) && is_about_trash(b->r))
        txn_expect_equal(t, &inode, ATTR_NLINK, a->nlink); /* still its only name */
    else
        txn_expect_at_least(t, &inode, ATTR_NLINK, 1);
    if (S_ISREG(a->mode))
        txn_expect_equal(t, &inode, ATTR_LENGTH, a->length);
    txn_set_number(t, &inode, attr_quota_at(a->mode), (int64_t)b->r->quota);
    quotas_count(t, &old, -1, -quotas_bytes(a));
    b->inodes++;
    b->bytes = quotas_sum(b->bytes, quotas_bytes(a));
    b->changed++;
    if (attr_is_directory(a))
        b->below[b->below_count++] = ino;
    return 0;
}

static int take_name(struct txn *t, struct batch *b, const struct meta_item *items, size_t i)
{
    struct attr a;
    if (!items[i].value.found || is_repeated(items, i))
        return 0;
    if (!attr_decode(&items[i].attr, &a))
        return -EIO;
    if (a.quota != b->r->quota)
        return change(t, b, &items[i], &a);
    if (attr_is_directory(&a)) /* perhaps an earlier walk did not come to its end */
        b->below[b->below_count++] = meta_entry_inode(&items[i].value);
    return 0;
}

static int decide(struct txn *t, void *op)
{
    struct batch *b = op;
    struct attr directory;
    struct quota q;
    struct meta_item items[PAGE + 1];
    for (size_t i = 0; i < b->count; i++)
        items[i] = (struct meta_item){.ask = META_FOLLOW,
                                      .key = steps_entry(b->directory, b->names[i].name)};
    struct meta_item *of = &items[b->count];
    *of = (struct meta_item){.ask = META_GET, .key = meta_key_point(META_ATTR, b->directory)};
    b->below_count = 0;
    b->changed = 0;
    b->inodes = b->bytes = 0;
    int rc = txn_read(t, items, b->count + 1);
    if (rc == 0)
        rc = steps_check_directory(&of->value, &directory);
    if (rc == 0 && !b->of_trash && directory.quota != b->r->quota)
        rc = -ENOENT; /* it has moved away */
    if (rc == 0)
        rc = quotas_get(t, b->r->quota, &q);
    if (rc == 0 && q.id != b->r->quota)
        rc = -ENODATA;
    if (rc != 0)
        return rc;
    quotas_expect(t, &of->key, &directory);
    for (size_t i = 0; i < b->count && rc == 0; i++)
        rc = take_name(t, b, items, i);
    if (rc != 0)
        return rc;
    if (!b->r->limited)
        return quotas_count_past(t, &q, b->inodes, b->bytes);
    quotas_charge(t, &q, b->inodes, b->bytes);
    return quotas_check(&q, b->inodes, b->bytes);
}

/* ---- the tree ---- */

struct stack {
    uint64_t *directories;
    size_t count, room;
};

static void push(struct stack *s, uint64_t directory)
{
    if (s->count == s->room) {
        s->room = 2 * s->room + 64;
        s->directories = xrealloc(s->directories, s->room * sizeof *s->directories);
    }
    s->directories[s->count++] = directory;
}

/* Commands without a mount have no other heart. */
static int beat(struct restamp *r)
{
    const int64_t now_ns = volume_now(r->v);
    const int64_t pause_ms = (int64_t)volume_format(r->v)->session_ms / BEATS_IN_SESSION;
    if (r->caller != NULL && r->caller->stops != NULL && r->caller->stops(r->caller->context))
        return -EINTR;
    if (now_ns - r->beat_ns < pause_ms * 1000000)
        return 0;
    r->beat_ns = now_ns;
    return volume_beat(r->v);
}

static int do_batch(struct restamp *r, struct batch *b, struct stack *s)
{
    int rc = beat(r);
    if (rc == 0)
        rc = txn_run(r->v, decide, b);
    if (rc != 0)
        return rc;
    r->changed += b->changed;
    for (size_t i = 0; i < b->below_count; i++)
        push(s, b->below[i]);
    return 0;
}

static int do_directory(struct restamp *r, uint64_t directory, struct stack *s)
{
    struct arena *arena = arena_new(4096);
    char after[META_NAME_MAX + 1] = "";
    bool more = true;
    int rc = 0;
    while (more && rc == 0) {
        struct batch b = {.r = r, .directory = directory};
        struct volume_name *names;
        arena_reset(arena);
        rc = volume_readdir(r->v, directory, after, PAGE, arena, &names, &b.count, &more);
        if (rc != 0 || b.count == 0)
            break;
        snprintf(after, sizeof after, "%s", names[b.count - 1].name);
        b.names = names;
        rc = do_batch(r, &b, s);
    }
    arena_free(arena);
    return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc; /* another client moved or removed it */
}

static int do_stack(struct restamp *r, struct stack *s)
{
    int rc = 0;
    while (s->count > 0 && rc == 0)
        rc = do_directory(r, s->directories[--s->count], s);
    free(s->directories);
    return rc;
}

int restamp_tree(struct restamp *r, uint64_t directory)
{
    struct stack s = {0};
    push(&s, directory);
    return do_stack(r, &s);
}

int restamp_name(struct restamp *r, uint64_t hour, const char *name)
{
    struct stack s = {0};
    const struct volume_name n = {.name = name};
    struct batch b = {.r = r, .directory = hour, .of_trash = true, .names = &n, .count = 1};
    int rc = do_batch(r, &b, &s);
    int below = do_stack(r, &s);
    return rc != 0 ? rc : below;
}
