/* Quotas of directories: made, changed, shown and removed. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "mount/volume/ids.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/restamp.h"

enum { PAGE = 100 };

static struct volume_quota shown(const struct quota *q)
{
    return (struct volume_quota){
        .id = q->id,
        .directory = q->directory,
        .whole = q->whole,
        .inodes = q->inodes,
        .bytes = q->bytes,
        .inodes_left = q->inodes_left,
        .bytes_left = q->bytes_left,
        .inodes_limit = q->inodes_limit,
        .bytes_limit = q->bytes_limit,
    };
}

/* ---- one ---- */

struct set {
    uint64_t directory;
    const struct volume_quota_limits *limits;
    uint64_t fresh;
    struct quota quota; /* as it is then */
    bool made;
};

static int64_t limit_of(int64_t given)
{
    return given == VOLUME_QUOTA_AS_IT_IS || given > VOLUME_QUOTA_NO_LIMIT ? VOLUME_QUOTA_NO_LIMIT
                                                                           : given;
}

static void make_quota(struct txn *t, struct set *s, const struct attr *a)
{
    uint8_t bytes[QUOTA_SIZE] = {0};
    const struct meta_key quota = quotas_key(s->fresh);
    const struct meta_key inode = meta_key_point(META_ATTR, s->directory);
    s->quota = (struct quota){
        .id = s->fresh,
        .directory = s->directory,
        .inodes_limit = limit_of(s->limits->inodes),
        .bytes_limit = limit_of(s->limits->bytes),
    };
    s->quota.inodes_left = s->quota.inodes_limit;
    s->quota.bytes_left = s->quota.bytes_limit;
    meta_field_put(bytes, QUOTA_INODES_LEFT, s->quota.inodes_left);
    meta_field_put(bytes, QUOTA_BYTES_LEFT, s->quota.bytes_left);
    meta_field_put(bytes, QUOTA_INODES_LIMIT, s->quota.inodes_limit);
    meta_field_put(bytes, QUOTA_BYTES_LIMIT, s->quota.bytes_limit);
    meta_field_put(bytes, QUOTA_DIRECTORY, (int64_t)s->directory);
    txn_put(t, &quota, bytes, sizeof bytes);
    txn_expect_at_least(t, &inode, ATTR_NLINK, 1);
    txn_expect_equal(t, &inode, ATTR_PARENT, (int64_t)a->parent); /* not in the trash */
    txn_set_number(t, &inode, attr_quota_at(a->mode), (int64_t)s->fresh);
    s->made = true;
}

/* A second call at the same time reads again: the key has another stamp. */
static void change_quota(struct txn *t, struct set *s, const struct meta_value *value)
{
    const struct meta_key key = quotas_key(s->quota.id);
    struct quota *q = &s->quota;
    const int64_t inodes =
        s->limits->inodes == VOLUME_QUOTA_AS_IT_IS ? q->inodes_limit : limit_of(s->limits->inodes);
    const int64_t bytes =
        s->limits->bytes == VOLUME_QUOTA_AS_IT_IS ? q->bytes_limit : limit_of(s->limits->bytes);
    txn_expect(t, &key, value);
    txn_set_number(t, &key, QUOTA_INODES_LIMIT, inodes);
    txn_set_number(t, &key, QUOTA_BYTES_LIMIT, bytes);
    txn_add(t, &key, QUOTA_INODES_LEFT, inodes - q->inodes_limit);
    txn_add(t, &key, QUOTA_BYTES_LEFT, bytes - q->bytes_limit);
}

static int decide_set(struct txn *t, void *op)
{
    struct set *s = op;
    struct attr a;
    struct meta_item items[2] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, s->directory)},
    };
    s->made = false;
    int rc = quotas_read(t, items, 1, 0, &s->quota);
    if (rc == 0)
        rc = steps_check_directory(&items[0].value, &a);
    if (rc == 0 && trash_has(a.parent))
        rc = -ENOENT;
    if (rc == 0 && s->quota.id != 0 && s->quota.directory != s->directory)
        rc = -EEXIST;
    if (rc != 0)
        return rc;
    quotas_expect(t, &items[0].key, &a);
    if (s->quota.id != 0)
        change_quota(t, s, &items[1].value);
    else
        make_quota(t, s, &a);
    return 0;
}

static int decide_whole(struct txn *t, void *op)
{
    const struct set *s = op;
    const struct meta_key key = quotas_key(s->quota.id);
    struct quota q;
    int rc = quotas_get(t, s->quota.id, &q);
    if (rc != 0 || q.id == 0)
        return rc != 0 ? rc : -ENODATA;
    txn_set_number(t, &key, QUOTA_WHOLE, 1);
    return 0;
}

int volume_quota_mark(struct volume *v, uint64_t directory,
                      const struct volume_quota_limits *limits, struct volume_quota *out,
                      bool *made)
{
    struct set s = {.directory = directory, .limits = limits};
    if (directory == VOLUME_ROOT || trash_has(directory) ||
        limits->inodes < VOLUME_QUOTA_AS_IT_IS || limits->bytes < VOLUME_QUOTA_AS_IT_IS)
        return -EINVAL;
    int rc = ids_inode(v, &s.fresh);
    if (rc == 0)
        rc = txn_run(v, decide_set, &s);
    *out = shown(&s.quota);
    *made = s.made;
    return rc;
}

/* A name that is changed within its directory may be passed by once. */
static int stamp_all(struct volume *v, const struct volume_quota *q,
                     const struct volume_caller *caller)
{
    struct set s = {.quota.id = q->id};
    struct restamp r = {
        .v = v, .quota = q->id, .caller = caller, .beat_ns = volume_now(v), .changed = 1};
    int rc = 0;
    while (rc == 0 && r.changed > 0) {
        r.changed = 0;
        rc = restamp_tree(&r, q->directory);
    }
    return rc == 0 ? txn_run(v, decide_whole, &s) : rc;
}

int volume_quota_set(struct volume *v, uint64_t directory, const struct volume_quota_limits *limits,
                     const struct volume_caller *caller, struct volume_quota *out)
{
    bool made;
    int rc = volume_quota_mark(v, directory, limits, out, &made);
    if (rc == 0 && !out->whole)
        rc = stamp_all(v, out, caller);
    if (rc == 0)
        return volume_quota_of(v, directory, out);
    const bool is_refused = rc == -EBUSY || rc == -EFBIG;
    const int gone = made && is_refused ? volume_quota_remove(v, directory) : 0;
    if (gone != 0)
        log_warn("a quota that could not be set stays: remove it",
                 lstr("volume", volume_format(v)->name), lu64("directory", directory),
                 li64("error", -gone));
    return rc;
}

static int decide_remove(struct txn *t, void *op)
{
    const uint64_t directory = *(const uint64_t *)op;
    struct attr a;
    struct quota q;
    struct meta_item items[2] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, directory)},
    };
    int rc = quotas_read(t, items, 1, 0, &q);
    if (rc == 0)
        rc = steps_check_directory(&items[0].value, &a);
    if (rc == 0 && (q.id == 0 || q.directory != directory))
        rc = -ENODATA;
    if (rc != 0)
        return rc;
    const struct meta_key key = quotas_key(q.id);
    quotas_expect(t, &items[0].key, &a);
    txn_expect(t, &key, &items[1].value);
    txn_delete(t, &key);
    txn_set_number(t, &items[0].key, attr_quota_at(a.mode), 0);
    return 0;
}

int volume_quota_remove(struct volume *v, uint64_t directory)
{
    return txn_run(v, decide_remove, &directory);
}

/* ---- shown ---- */

struct look {
    uint64_t ino;
    struct quota quota;
};

static int decide_look(struct txn *t, void *op)
{
    struct look *l = op;
    struct meta_item items[2] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, l->ino)},
    };
    int rc = quotas_read(t, items, 1, 0, &l->quota);
    if (rc == 0 && !items[0].value.found)
        rc = -ENOENT;
    return rc == 0 && l->quota.id == 0 ? -ENODATA : rc;
}

int volume_quota_of(struct volume *v, uint64_t ino, struct volume_quota *out)
{
    struct look l = {.ino = ino};
    int rc = txn_run(v, decide_look, &l);
    *out = shown(&l.quota);
    return rc;
}

int volume_quota_id(struct volume *v, uint64_t ino, uint64_t *id)
{
    struct volume_quota q;
    int rc = volume_quota_of(v, ino, &q);
    *id = rc == 0 ? q.id : 0;
    return rc == -ENODATA ? 0 : rc;
}

struct list {
    struct arena *arena;
    struct volume_quota *rows;
    size_t count;
};

static int take_page(struct list *l, const struct meta_item *page)
{
    struct volume_quota *rows = arena_alloc(l->arena, (l->count + page->count + 1) * sizeof *rows);
    if (l->count > 0)
        memcpy(rows, l->rows, l->count * sizeof *rows);
    l->rows = rows;
    for (size_t i = 0; i < page->count; i++) {
        struct quota q;
        if (!quotas_decode(&page->rows[i].value, page->rows[i].key.id, &q))
            return -EIO;
        rows[l->count++] = shown(&q);
    }
    return 0;
}

static int decide_list(struct txn *t, void *op)
{
    struct list *l = op;
    struct meta_item page = {.ask = META_PAGE, .key.kind = META_QUOTA, .limit = PAGE};
    int rc;
    l->count = 0;
    do {
        rc = txn_read(t, &page, 1);
        if (rc == 0)
            rc = take_page(l, &page);
        if (page.count > 0)
            page.key = page.rows[page.count - 1].key;
        page.after = true;
    } while (rc == 0 && page.more);
    return rc;
}

int volume_quota_list(struct volume *v, struct arena *arena, struct volume_quota **out,
                      size_t *count)
{
    struct list l = {.arena = arena};
    int rc = txn_run(v, decide_list, &l);
    *out = l.rows;
    *count = l.count;
    return rc;
}
