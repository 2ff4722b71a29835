/* Removal of trees: files of one directory a batch at a time, directories when they are empty.
 *
 * The stack has directories that are to be removed.  The top one is read from its beginning: its
 * files are unlinked, its directories become the new top.  One without names is removed. */
#include "mount/volume/trees/rmr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/trees/access.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/restamp.h"
#include "mount/volume/trees/rights.h"

enum {
    PAGE = 64,       /* names of one commit */
    STUCK_TRIES = 10 /* looks that find what the one before found */
};

/* ---- files of a directory ---- */

struct batch {
    uint64_t directory;
    const char *const *names;
    size_t count;
    uint64_t removed;
};

static bool is_repeated(const struct meta_item *items, size_t i)
{
    const uint64_t ino = meta_entry_inode(&items[i].value);
    for (size_t k = 0; k < i; k++) {
        if (items[k].value.found && meta_entry_inode(&items[k].value) == ino)
            return true;
    }
    return false;
}

static int take_name(struct txn *t, struct batch *b, const struct meta_item *items, size_t i)
{
    const struct meta_item *item = &items[i];
    struct attr a;
    txn_expect(t, &item->key, &item->value);
    if (!item->value.found)
        return 0;
    if (!attr_decode(&item->attr, &a))
        return -EIO;
    if (attr_is_directory(&a) || is_repeated(items, i))
        return 0;
    txn_delete(t, &item->key);
    steps_drop_name(t, meta_entry_inode(&item->value), &a);
    b->removed++;
    return quotas_drop(t, meta_entry_inode(&item->value), &a);
}

static int decide(struct txn *t, void *op)
{
    struct batch *b = op;
    struct attr directory;
    struct meta_item *items = arena_alloc(t->arena, (b->count + 1) * sizeof *items);
    struct meta_item *of_directory = &items[b->count];
    for (size_t i = 0; i < b->count; i++)
        items[i] =
            (struct meta_item){.ask = META_FOLLOW, .key = steps_entry(b->directory, b->names[i])};
    *of_directory = (struct meta_item){.key = meta_key_point(META_ATTR, b->directory)};
    b->removed = 0;
    int rc = txn_read(t, items, b->count + 1);
    if (rc == 0)
        rc = steps_check_directory(&of_directory->value, &directory);
    for (size_t i = 0; i < b->count && rc == 0; i++)
        rc = take_name(t, b, items, i);
    if (rc == 0 && b->removed > 0) {
        txn_add(t, &of_directory->key, ATTR_ENTRIES, -(int64_t)b->removed);
        steps_touch(t, &of_directory->key);
    }
    return rc;
}

int volume_unlink_many(struct volume *v, uint64_t directory, const char *const *names, size_t count,
                       uint64_t *removed)
{
    struct batch b = {directory, names, count, 0};
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = steps_check_name(names[i]);
    if (rc == 0)
        rc = txn_run(v, decide, &b);
    *removed = rc == 0 ? b.removed : 0;
    return rc;
}

/* ---- the tree ---- */

struct frame {
    uint64_t parent, ino;
    unsigned stuck_tries; /* in a row */
    uint64_t inodes;      /* the tally of the last look */
    struct attr parent_attr, attr;
    char name[META_NAME_MAX + 1];
    char first[META_NAME_MAX + 1]; /* name of the last look; "": none */
};

struct removal {
    struct volume *v;
    const struct volume_caller *caller;
    struct volume_tally *tally;
    struct frame *frames;
    size_t depth, room;
    struct arena *arena; /* of a page */
};

static void push(struct removal *r, uint64_t parent, const struct attr *parent_attr,
                 const struct volume_name *n)
{
    if (r->depth == r->room) {
        r->room = 2 * r->room + 16;
        r->frames = xrealloc(r->frames, r->room * sizeof *r->frames);
    }
    struct frame *f = &r->frames[r->depth++];
    *f = (struct frame){.parent = parent, .ino = n->ino, .parent_attr = *parent_attr};
    f->inodes = r->tally->inodes;
    f->attr = n->attr;
    memcpy(f->name, n->name, strlen(n->name) + 1);
}

static int fail_at(struct removal *r, const char *name, int rc)
{
    if (rc != 0)
        memcpy(r->tally->name, name, strlen(name) + 1);
    return rc;
}

/* *empty: nothing is left of the page's directory, as far as is known. */
static int remove_page(struct removal *r, const struct frame *f, struct volume_name *names,
                       size_t count, bool *empty)
{
    const char *files[PAGE];
    size_t file_count = 0, depth = r->depth;
    uint64_t removed;
    for (size_t i = 0; i < count; i++) {
        const struct volume_name *n = &names[i];
        if (!n->known)
            return fail_at(r, n->name, -EIO);
        if (!access_may_remove(&f->attr, &n->attr, r->caller))
            return fail_at(r, n->name, -EACCES);
        if (attr_is_directory(&n->attr))
            push(r, f->ino, &f->attr, n);
        else
            files[file_count++] = n->name;
    }
    *empty = r->depth == depth;
    if (file_count == 0)
        return 0;
    int rc = volume_unlink_many(r->v, f->ino, files, file_count, &removed);
    r->tally->inodes += removed;
    return rc == -ENOENT ? 0 : fail_at(r, f->name, rc);
}

/* A directory whose names or counts are damaged would be found so for ever.  Another client that
 * removes the same tree is no damage: then the first name is another one. */
static int check_progress(struct removal *r, const char *first)
{
    struct frame *f = &r->frames[r->depth - 1];
    const bool moves = f->inodes != r->tally->inodes || strcmp(f->first, first) != 0;
    f->stuck_tries = moves ? 0 : f->stuck_tries + 1;
    f->inodes = r->tally->inodes;
    memcpy(f->first, first, strlen(first) + 1);
    if (f->stuck_tries < STUCK_TRIES)
        return 0;
    log_warn("a directory with a wrong count stays; 'fs fsck --repair' counts anew",
             lstr("volume", volume_format(r->v)->name), lu64("directory", f->ino));
    return fail_at(r, f->name, -EIO);
}

/* The names of the top frame.  *empty: nothing is left, as far as is known. */
static int remove_names(struct removal *r, const struct frame *f, bool *empty)
{
    struct volume_name *names;
    size_t count = 0;
    bool more = false;
    arena_reset(r->arena);
    int rc = volume_readdir(r->v, f->ino, "", PAGE, r->arena, &names, &count, &more);
    if (rc == 0)
        rc = check_progress(r, count > 0 ? names[0].name : "");
    if (rc == 0 && count > 0)
        rc = remove_page(r, f, names, count, empty);
    *empty &= !more;
    return rc;
}

/* The top frame: its names, and itself as soon as there are none. */
static int step(struct removal *r)
{
    const struct frame f = r->frames[r->depth - 1]; /* the stack may move */
    bool empty = true;
    const bool may_read =
        access_may(&f.attr, r->caller, ACCESS_READ | ACCESS_WRITE | ACCESS_SEARCH);
    int rc = may_read ? remove_names(r, &f, &empty) : 0;
    if (rc != 0 || !empty)
        return rc;
    rc = remove_directory(r->v, f.parent, f.name);
    if (rc == -ENOTEMPTY && may_read)
        return 0; /* another client may have made names after the look */
    r->tally->inodes += rc == 0;
    r->depth--;
    if (rc == -ENOTEMPTY)
        rc = -EACCES;
    return rc == -ENOENT || rc == -ENOTDIR ? 0 : fail_at(r, f.name, rc);
}

static int remove_frames(struct removal *r)
{
    int rc = 0;
    while (r->depth > 0 && rc == 0) {
        if (r->caller != NULL && r->caller->stops != NULL && r->caller->stops(r->caller->context))
            return -EINTR;
        rc = step(r);
    }
    return rc;
}

/* What is below a directory that has moved to the trash counts no more.  What is left of that, as
 * after a kill, counts until the trash is cleaned. */
static void end_quota(struct volume *v, const struct volume_inode *top)
{
    struct restamp r = {.v = v, .quota = 0, .beat_ns = volume_now(v)};
    const int rc = restamp_tree(&r, top->ino);
    if (rc != 0)
        log_warn("what was removed counts for its quota until the trash is cleaned",
                 lstr("volume", volume_format(v)->name), lu64("directory", top->ino),
                 li64("error", -rc));
}

static int move_to_trash(struct volume *v, uint64_t directory, const char *name,
                         const struct volume_caller *caller, uint64_t hour,
                         struct volume_tally *tally)
{
    struct attr parent;
    struct volume_inode top;
    int rc = volume_lookup(v, directory, name, &top);
    if (rc == 0)
        rc = volume_getattr(v, directory, &parent);
    if (rc == 0 && !access_may_remove(&parent, &top.attr, caller))
        rc = -EACCES;
    if (rc == 0 && attr_is_directory(&top.attr))
        rc = rights_check_below(v, &top, name, caller, tally->name);
    struct volume_quota quota;
    const bool counted = rc == 0 && attr_is_directory(&top.attr) &&
                         volume_quota_of(v, top.ino, &quota) == 0 && quota.directory != top.ino;
    if (rc == 0)
        rc = remove_whole(v, directory, name, hour);
    if (rc == 0 && counted)
        end_quota(v, &top);
    tally->inodes = rc == 0;
    tally->is_moved = rc == 0 && (attr_is_directory(&top.attr) || top.attr.nlink == 1);
    return rc;
}

int volume_rmr(struct volume *v, uint64_t directory, const char *name,
               const struct volume_caller *caller, bool for_ever, struct volume_tally *tally)
{
    uint64_t hour = 0;
    *tally = (struct volume_tally){0};
    if (directory == TRASH_INO || (directory == VOLUME_ROOT && strcmp(name, TRASH_NAME) == 0))
        return -EPERM;
    int rc = for_ever ? 0 : trash_hour_for(v, directory, &hour);
    if (rc == 0 && hour != 0)
        rc = move_to_trash(v, directory, name, caller, hour, tally);
    if (rc == -ENOSPC) /* a full volume keeps nothing */
        hour = 0;
    if (hour == 0 && (rc == 0 || rc == -ENOSPC))
        return remove_tree(v, directory, name, caller, tally);
    if (rc != 0 && tally->name[0] == '\0' && strlen(name) <= META_NAME_MAX)
        memcpy(tally->name, name, strlen(name) + 1);
    return rc;
}

int remove_tree(struct volume *v, uint64_t directory, const char *name,
                const struct volume_caller *caller, struct volume_tally *tally)
{
    struct attr parent;
    struct volume_inode top;
    struct removal r = {.v = v, .caller = caller, .tally = tally, .arena = arena_new(4096)};
    *tally = (struct volume_tally){0};
    int rc = volume_lookup(v, directory, name, &top);
    if (rc == 0)
        rc = volume_getattr(v, directory, &parent);
    if (rc == 0 && !access_may_remove(&parent, &top.attr, caller))
        rc = -EACCES;
    if (rc == 0 && attr_is_directory(&top.attr)) {
        const struct volume_name n = {.name = name, .ino = top.ino, .attr = top.attr};
        push(&r, directory, &parent, &n);
        rc = remove_frames(&r);
    } else if (rc == 0) {
        rc = volume_unlink_many(v, directory, &name, 1, &tally->inodes);
        rc = rc == 0 && tally->inodes == 0 ? -ENOENT : rc; /* another client was there */
    }
    if (rc != 0 && tally->name[0] == '\0' && strlen(name) <= META_NAME_MAX)
        fail_at(&r, name, rc);
    free(r.frames);
    arena_free(r.arena);
    return rc;
}
