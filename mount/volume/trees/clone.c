/* Clones: inodes of their own that name the same slices.
 *
 *     build    in the trash, where nobody sees it: batches of inodes, then what is large of each
 *     place    one rename
 *
 * What a client leaves that dies while it builds is removed with its hour of the trash.
 *
 * A file is cloned as it is at one moment if its lists come with one commit; otherwise each further
 * commit expects that it has not changed since. */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/trees/access.h"
#include "mount/volume/counters.h"
#include "mount/volume/ids.h"
#include "mount/volume/trees/place.h"
#include "mount/volume/chunks.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/rmr.h"

enum { PAGE = 64, BATCH = 16, XATTRS = 8, CHUNKS = 4, REST = 32 };
enum { ATTR, LINK, XATTR, CHUNK, READS }; /* of each inode */

struct copy {
    uint64_t from, to;
    const char *name;
    uint32_t mode;  /* as it was read; 0: it was removed meanwhile */
    uint64_t stamp; /* of the attribute; each change of the inode gives it a new one */
    bool rest;      /* its attributes and lists are not copied yet */
};

struct clone {
    struct volume *v;
    const struct volume_caller *caller;
    struct volume_tally *tally;
    uint64_t quota; /* of the place; 0: none */
    struct frame *frames;
    size_t depth, room;
};

struct frame {
    uint64_t from, to;
    char after[META_NAME_MAX + 1];
};

static bool stops(const struct clone *c)
{
    return c->caller->stops != NULL && c->caller->stops(c->caller->context);
}

/* ---- a batch ---- */

struct batch {
    const struct volume_caller *caller;
    struct volume_tally *tally;
    uint64_t directory; /* where the copies are made */
    uint64_t quota;     /* that counts them */
    int64_t bytes;      /* that count */
    struct copy *copies;
    size_t count;
};

static int check_rights(const struct volume_caller *caller, const struct attr *a)
{
    const bool is_device = S_ISBLK(a->mode) || S_ISCHR(a->mode);
    const unsigned wanted = attr_is_directory(a) ? ACCESS_READ | ACCESS_SEARCH : ACCESS_READ;
    if (S_ISLNK(a->mode))
        return 0;
    if (is_device && caller->uid != 0)
        return -EPERM;
    return access_may(a, caller, wanted) ? 0 : -EACCES;
}

/* Root's clones keep the owner. */
static struct attr attr_of_copy(const struct txn *t, const struct batch *b, const struct attr *a)
{
    struct attr copy = *a;
    copy.nlink = attr_is_directory(a) ? 2 : 1;
    copy.entries = 0;
    copy.changes = 0;
    copy.ctime_ns = t->now_ns;
    copy.parent = b->directory;
    copy.quota = b->quota;
    if (b->caller->uid != 0) {
        copy.uid = b->caller->uid;
        copy.gid = b->caller->gid;
        if (!attr_is_directory(a))
            copy.mode &= ~(uint32_t)(S_ISUID | S_ISGID);
    }
    return copy;
}

/* Capabilities and labels are of the owner's program, as the set-id bits are. */
static bool is_dropped(const struct volume_caller *caller, const struct meta_key *key)
{
    static const char kept[] = "user.";
    const size_t len = sizeof kept - 1;
    return caller->uid != 0 && key->kind == META_XATTR &&
           (key->name_size < len || memcmp(key->name, kept, len) != 0);
}

static int copy_children(struct txn *t, const struct volume_caller *caller,
                         const struct meta_item *page, uint64_t to, struct releases *r)
{
    int rc = 0;
    for (size_t i = 0; i < page->count && rc == 0; i++) {
        const struct meta_row *row = &page->rows[i];
        struct meta_key key = row->key;
        if (is_dropped(caller, &key))
            continue;
        key.id = to;
        txn_put(t, &key, row->value.data, row->value.size);
        if (key.kind != META_CHUNK)
            continue;
        struct chunk c = {.key = row->key, .value = row->value};
        rc = chunks_parse(t, &c);
        releases_share(r, &c.list);
    }
    return rc;
}

static void put_inode(struct txn *t, const struct batch *b, const struct copy *one,
                      const struct attr *a)
{
    uint8_t entry[ENTRY_BYTES], attr[ATTR_BYTES];
    const struct attr copy = attr_of_copy(t, b, a);
    const struct meta_key inode = meta_key_point(META_ATTR, one->to);
    const struct meta_key name = steps_entry(b->directory, one->name);
    attr_encode(&copy, attr);
    entry_encode(copy.mode, one->to, entry);
    txn_put(t, &inode, attr, sizeof attr);
    txn_put(t, &name, entry, sizeof entry);
}

static int copy_inode(struct txn *t, struct batch *b, struct copy *one,
                      const struct meta_item *items, struct releases *r)
{
    struct attr a;
    one->mode = 0;
    if (!items[ATTR].value.found)
        return 0;
    if (!attr_decode(&items[ATTR].value, &a))
        return -EIO;
    if (a.nlink == 0)
        return 0;
    int rc = check_rights(b->caller, &a);
    if (rc != 0) {
        snprintf(b->tally->name, sizeof b->tally->name, "%s", one->name);
        return rc;
    }
    one->mode = a.mode;
    one->stamp = items[ATTR].value.stamp;
    one->rest = items[XATTR].more || items[CHUNK].more;
    txn_expect(t, &items[ATTR].key, &items[ATTR].value);
    put_inode(t, b, one, &a);
    b->bytes = quotas_sum(b->bytes, quotas_bytes(&a));
    if (items[LINK].value.found) {
        const struct meta_key link = meta_key_point(META_SYMLINK, one->to);
        txn_put(t, &link, items[LINK].value.data, items[LINK].value.size);
    }
    if (one->rest)
        return 0;
    rc = copy_children(t, b->caller, &items[XATTR], one->to, r);
    return rc == 0 ? copy_children(t, b->caller, &items[CHUNK], one->to, r) : rc;
}

static void ask_for(struct meta_item items[READS], uint64_t ino)
{
    items[ATTR] = (struct meta_item){.key = meta_key_point(META_ATTR, ino)};
    items[LINK] = (struct meta_item){.key = meta_key_point(META_SYMLINK, ino)};
    items[XATTR] = (struct meta_item){
        .ask = META_PAGE, .limit = XATTRS, .key = {.kind = META_XATTR, .id = ino}};
    items[CHUNK] = (struct meta_item){
        .ask = META_PAGE, .limit = CHUNKS, .key = {.kind = META_CHUNK, .id = ino}};
}

/* A quota that ends meanwhile counts nothing. */
static int charge(struct txn *t, const struct batch *b)
{
    struct quota quota;
    int64_t inodes = 0;
    for (size_t i = 0; i < b->count; i++)
        inodes += b->copies[i].mode != 0;
    int rc = quotas_get(t, b->quota, &quota);
    if (rc != 0)
        return rc;
    quotas_charge(t, &quota, inodes, b->bytes);
    return quotas_check(&quota, inodes, b->bytes);
}

/* The directory of the copies: it was made by this clone, or is an hour of the trash. */
static void add_names(struct txn *t, const struct batch *b)
{
    const struct meta_key key = meta_key_point(META_ATTR, b->directory);
    int64_t names = 0, directories = 0;
    for (size_t i = 0; i < b->count; i++) {
        names += b->copies[i].mode != 0;
        directories += S_ISDIR(b->copies[i].mode);
    }
    txn_expect_at_least(t, &key, ATTR_NLINK, 1);
    txn_add(t, &key, ATTR_ENTRIES, names);
    if (directories > 0)
        txn_add(t, &key, ATTR_NLINK, directories);
    steps_use(t, names, 0);
}

static int decide_batch(struct txn *t, void *op)
{
    struct batch *b = op;
    struct releases r = {0};
    const size_t reads = b->count * READS;
    struct meta_item *items = arena_alloc(t->arena, (reads + 1) * sizeof *items);
    for (size_t i = 0; i < b->count; i++)
        ask_for(&items[i * READS], b->copies[i].from);
    items[reads] = (struct meta_item){.key = counters_use_key()};
    b->bytes = 0;
    int rc = txn_read(t, items, reads + 1);
    for (size_t i = 0; i < b->count && rc == 0; i++)
        rc = copy_inode(t, b, &b->copies[i], &items[i * READS], &r);
    if (rc == 0)
        rc = steps_check_use(&items[reads].value, (int64_t)b->count, 0);
    if (rc == 0)
        rc = charge(t, b);
    if (rc == 0)
        rc = releases_apply(&r, t);
    if (rc == 0)
        add_names(t, b);
    releases_done(&r);
    return rc;
}

/* ---- the rest of an inode ---- */

struct rest {
    const struct volume_caller *caller;
    const struct copy *copy;
    struct meta_key after, last; /* of what is copied, and of this page */
    bool begun, more;
    char name[META_NAME_MAX + 1]; /* of last */
};

static int decide_rest(struct txn *t, void *op)
{
    struct rest *w = op;
    struct releases r = {0};
    struct meta_item items[] = {
        {.key = meta_key_point(META_ATTR, w->copy->from)},
        {.ask = META_PAGE, .limit = REST, .after = w->begun, .key = w->after},
    };
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    if (!items[0].value.found || items[0].value.stamp != w->copy->stamp)
        return -EBUSY;
    txn_expect(t, &items[0].key, &items[0].value);
    rc = copy_children(t, w->caller, &items[1], w->copy->to, &r);
    if (rc == 0)
        rc = releases_apply(&r, t);
    releases_done(&r);
    w->more = items[1].more;
    if (items[1].count > 0) {
        w->last = items[1].rows[items[1].count - 1].key;
        memcpy(w->name, w->last.name != NULL ? w->last.name : "", w->last.name_size);
    }
    return rc;
}

static int copy_rest(const struct clone *c, const struct copy *one, enum meta_kind kind)
{
    struct rest w = {
        .caller = c->caller, .copy = one, .after = {.kind = kind, .id = one->from}, .more = true};
    char name[META_NAME_MAX + 1];
    while (w.more) {
        if (stops(c))
            return -EINTR;
        int rc = txn_run(c->v, decide_rest, &w);
        if (rc != 0)
            return rc;
        memcpy(name, w.name, sizeof name);
        w.after = w.last;
        w.after.name = name;
        w.begun = true;
    }
    return 0;
}

/* Rights were looked at by the batch. */
static int copy_all(const struct clone *c, struct copy *copies, size_t count, uint64_t directory)
{
    struct batch b = {.caller = c->caller,
                      .tally = c->tally,
                      .directory = directory,
                      .quota = c->quota,
                      .copies = copies,
                      .count = count};
    int rc = stops(c) ? -EINTR : 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = copies[i].to != 0 ? 0 : ids_inode(c->v, &copies[i].to);
    if (rc == 0)
        rc = txn_run(c->v, decide_batch, &b);
    for (size_t i = 0; i < count && rc == 0; i++) {
        c->tally->inodes += copies[i].mode != 0;
        if (copies[i].mode == 0 || !copies[i].rest)
            continue;
        rc = copy_rest(c, &copies[i], META_XATTR);
        if (rc == 0)
            rc = copy_rest(c, &copies[i], META_CHUNK);
        if (rc != 0)
            snprintf(c->tally->name, sizeof c->tally->name, "%s", copies[i].name);
    }
    return rc;
}

/* ---- the tree ---- */

static void push(struct clone *c, uint64_t from, uint64_t to)
{
    if (c->depth == c->room) {
        c->room = 2 * c->room + 16;
        c->frames = xrealloc(c->frames, c->room * sizeof *c->frames);
    }
    c->frames[c->depth++] = (struct frame){.from = from, .to = to};
}

/* A page of the top directory; its directories are on top then. */
static int step(struct clone *c, struct arena *arena)
{
    struct frame *top = &c->frames[c->depth - 1];
    const uint64_t to = top->to;
    struct volume_name *names;
    struct copy copies[BATCH];
    size_t count;
    bool more;
    int rc = volume_readdir(c->v, top->from, top->after, PAGE, arena, &names, &count, &more);
    if (rc == -ENOENT) /* another client removed it */
        c->depth--;
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    if (count > 0)
        snprintf(top->after, sizeof top->after, "%s", names[count - 1].name);
    if (!more)
        c->depth--;
    for (size_t done = 0, n; done < count && rc == 0; done += n) {
        n = count - done < BATCH ? count - done : BATCH;
        for (size_t i = 0; i < n; i++)
            copies[i] = (struct copy){.from = names[done + i].ino, .name = names[done + i].name};
        rc = copy_all(c, copies, n, to);
        for (size_t i = 0; i < n && rc == 0; i++) {
            if (S_ISDIR(copies[i].mode))
                push(c, copies[i].from, copies[i].to);
        }
    }
    return rc;
}

static int build(struct clone *c, struct copy *top, uint64_t hour)
{
    int rc = copy_all(c, top, 1, hour);
    if (rc == 0 && top->mode == 0)
        rc = -ENOENT;
    if (rc != 0 || !S_ISDIR(top->mode))
        return rc;
    struct arena *arena = arena_new(4096);
    push(c, top->from, top->to);
    while (c->depth > 0 && rc == 0) {
        arena_reset(arena);
        rc = step(c, arena);
    }
    arena_free(arena);
    return rc;
}

/* ---- the place ---- */

int volume_clone(struct volume *v, uint64_t ino, uint64_t directory, const char *name,
                 const struct volume_caller *caller, struct volume_tally *tally)
{
    struct clone c = {.v = v, .caller = caller, .tally = tally};
    struct volume_tally removed;
    char beside[32];
    uint64_t hour;
    *tally = (struct volume_tally){0};
    int rc = trash_has(ino) ? -EINVAL : place_check(v, directory, name, caller);
    if (rc == 0)
        rc = volume_quota_id(v, directory, &c.quota);
    if (rc == 0)
        rc = trash_need_hour(v, &hour);
    if (rc != 0)
        return rc;
    struct copy top = {.from = ino, .name = beside};
    rc = ids_inode(v, &top.to);
    snprintf(beside, sizeof beside, "clone-%llu", (unsigned long long)top.to);
    if (rc == 0)
        rc = build(&c, &top, hour);
    if (rc == 0)
        rc = volume_rename(v, hour, beside, directory, name, RENAME_NOREPLACE);
    const int cleaned = rc != 0 ? remove_tree(v, hour, beside, NULL, &removed) : 0;
    if (cleaned != 0 && cleaned != -ENOENT)
        log_info("a part of a clone stays until its hour of the trash is removed",
                 lstr("volume", v->format.name), lstr("name", beside));
    free(c.frames);
    return rc;
}
