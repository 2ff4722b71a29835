/* What is over: sessions, inodes without a name, slices without an entry.  Every client may clean
 * at any time: the commits expect that nobody else did. */
#include <errno.h>
#include <string.h>

#include "mount/volume/chunks.h"
#include "mount/volume/sessions.h"
#include "mount/volume/steps.h"

enum { DUE = 64, OPENS = 64, XATTRS = 128, CHUNKS = 256 }; /* rows at once */

enum { QUEUED, ATTR, OPEN, XATTR, CHUNK, READS };

struct reap {
    uint64_t due_ms, ino;
};

/* Does a session that is not over have it open?  Keys of sessions that are over go. */
static int check_opens(struct txn *t, const struct meta_item *opens, bool *open)
{
    *open = opens->more;
    for (size_t i = 0; i < opens->count; i++) {
        struct meta_key key = meta_key_point(META_SESSION, opens->rows[i].key.sub);
        struct meta_value session;
        int rc = txn_get(t, &key, &session);
        if (rc != 0)
            return rc;
        if (session.found)
            *open = true;
        else
            txn_delete(t, &opens->rows[i].key);
    }
    return 0;
}

static int drop_chunks(struct txn *t, const struct meta_item *page)
{
    struct releases r = {0};
    int rc = 0;
    for (size_t i = 0; i < page->count && rc == 0; i++) {
        struct chunk c = {.key = page->rows[i].key, .value = page->rows[i].value};
        rc = chunks_parse(t, &c);
        releases_drop(&r, &c.list);
        txn_delete(t, &c.key);
    }
    if (rc == 0)
        rc = releases_apply(&r, t);
    releases_done(&r);
    return rc;
}

/* All that belongs to the inode; of very much a part, and the rest the next time.  The attribute's
 * stamp changes with each write, and when the inode is found open. */
static int free_inode(struct txn *t, struct meta_item items[READS])
{
    const uint64_t ino = items[ATTR].key.id;
    struct meta_key link = meta_key_point(META_SYMLINK, ino);
    struct meta_key locks = meta_key_point(META_LOCK, ino);
    txn_expect(t, &items[ATTR].key, &items[ATTR].value);
    for (size_t i = 0; i < items[XATTR].count; i++)
        txn_delete(t, &items[XATTR].rows[i].key);
    int rc = drop_chunks(t, &items[CHUNK]);
    if (rc != 0 || items[XATTR].more || items[CHUNK].more)
        return rc;
    txn_delete(t, &link);
    txn_delete(t, &locks);
    txn_delete(t, &items[ATTR].key);
    txn_delete(t, &items[QUEUED].key);
    steps_use(t, -1, 0);
    return 0;
}

static int decide(struct txn *t, void *op)
{
    struct reap *r = op;
    bool open;
    struct meta_item items[READS] = {
        [QUEUED] = {.key = meta_key_number(META_UNLINKED, r->due_ms, r->ino)},
        [ATTR] = {.key = meta_key_point(META_ATTR, r->ino)},
        [OPEN] = {.ask = META_PAGE, .limit = OPENS, .key = {.kind = META_OPEN, .id = r->ino}},
        [XATTR] = {.ask = META_PAGE, .limit = XATTRS, .key = {.kind = META_XATTR, .id = r->ino}},
        [CHUNK] = {.ask = META_PAGE, .limit = CHUNKS, .key = {.kind = META_CHUNK, .id = r->ino}},
    };
    int rc = txn_read(t, items, READS);
    if (rc != 0 || !items[QUEUED].value.found) /* another client did it */
        return rc;
    txn_expect(t, &items[QUEUED].key, &items[QUEUED].value);
    if (!items[ATTR].value.found) { /* nothing is left to free */
        txn_delete(t, &items[QUEUED].key);
        return 0;
    }
    rc = check_opens(t, &items[OPEN], &open);
    if (rc != 0)
        return rc;
    if (!open)
        return free_inode(t, items);
    txn_delete(t, &items[QUEUED].key);
    steps_queue_unlinked(t, r->ino);
    return 0;
}

/* ---- queues ---- */

static int read_due(struct volume *v, enum meta_kind kind, size_t limit, struct arena *arena,
                    struct meta_item *item)
{
    struct error err = ERROR_INIT;
    int64_t now_ms;
    *item = (struct meta_item){.key.kind = kind, .limit = limit};
    int rc = v->meta->ops->now(v->meta, &now_ms, &err);
    if (rc == 0)
        rc = v->meta->ops->queue(v->meta, arena, item, (uint64_t)now_ms, &err);
    return rc == 0 ? 0 : txn_engine_error("queue", &err);
}

int volume_clean(struct volume *v, bool *more)
{
    struct arena *arena = arena_new(4096);
    struct meta_item item = {0};
    int rc = sessions_expire(v);
    if (rc == 0)
        rc = read_due(v, META_UNLINKED, DUE, arena, &item);
    int first = 0; /* a damaged file keeps nobody from the others */
    for (size_t i = 0; i < item.count && rc == 0; i++) {
        struct reap r = {item.rows[i].key.id, item.rows[i].key.sub};
        int one = txn_run(v, decide, &r);
        first = first != 0 ? first : one;
    }
    rc = rc != 0 ? rc : first;
    *more = item.more && rc == 0;
    arena_free(arena);
    return rc;
}

/* ---- garbage ---- */

int volume_garbage(struct volume *v, struct arena *arena, size_t limit, struct volume_garbage **out,
                   size_t *count)
{
    struct meta_item item;
    int rc = read_due(v, META_GARBAGE, limit, arena, &item);
    *count = 0;
    *out = arena_alloc(arena, (item.count + 1) * sizeof **out);
    for (size_t i = 0; i < item.count && rc == 0; i++)
        (*out)[(*count)++] = (struct volume_garbage){
            .due_ms = item.rows[i].key.id,
            .slice = item.rows[i].key.sub,
            .size = (uint32_t)meta_field(&item.rows[i].value, 0),
        };
    return rc;
}

struct forget {
    const struct volume_garbage *gone;
    size_t count;
};

static int decide_forget(struct txn *t, void *op)
{
    struct forget *f = op;
    for (size_t i = 0; i < f->count; i++) {
        struct meta_key key = meta_key_number(META_GARBAGE, f->gone[i].due_ms, f->gone[i].slice);
        txn_delete(t, &key);
    }
    return 0;
}

int volume_forget(struct volume *v, const struct volume_garbage *gone, size_t count)
{
    struct forget f = {gone, count};
    return count == 0 ? 0 : txn_run(v, decide_forget, &f);
}
