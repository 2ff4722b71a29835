/* Locks of files, flock(2) and fcntl(2), between all clients.
 *
 *     set      read the list of the inode, look for a conflict, put the list; expects its stamp
 *     conflict with a session that is not there: its locks are dropped, then the same again
 *     conflict with a session without a heartbeat: it is ended as by a cleaning
 *
 * Nobody is woken: a caller that waits asks again.  A client that was given up can keep no lock by
 * mistake, because its commits are refused. */
#include "mount/volume/locks.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "mount/volume/lock_list.h"
#include "mount/volume/sessions.h"
#include "mount/volume/txn.h"

/* ---- inodes with locks of this client ---- */

static size_t find(const struct volume *v, uint64_t ino)
{
    size_t at = 0;
    while (at < v->locked_count && v->locked[at] != ino)
        at++;
    return at;
}

static void note(struct volume *v, uint64_t ino, bool locked)
{
    pthread_mutex_lock(&v->lock);
    const size_t at = find(v, ino);
    if (locked && at == v->locked_count) {
        if (v->locked_count == v->locked_room) {
            v->locked_room = v->locked_room > 0 ? 2 * v->locked_room : 16;
            v->locked = xrealloc(v->locked, v->locked_room * sizeof *v->locked);
        }
        v->locked[v->locked_count++] = ino;
    } else if (!locked && at < v->locked_count) {
        v->locked[at] = v->locked[--v->locked_count];
    }
    pthread_mutex_unlock(&v->lock);
}

bool volume_haslocks(struct volume *v, uint64_t ino)
{
    pthread_mutex_lock(&v->lock);
    bool has = find(v, ino) < v->locked_count;
    pthread_mutex_unlock(&v->lock);
    return has;
}

enum { RECOVER_PAGE = 500 };

static int note_page(struct volume *v, struct arena *arena, const struct meta_item *page,
                     struct error *err)
{
    struct lock_list list;
    for (size_t i = 0; i < page->count; i++) {
        const struct meta_row *row = &page->rows[i];
        if (!lock_list_decode(arena, row->value.data, row->value.size, &list))
            return error_set(err, E_CORRUPT, "the locks of inode %llu are damaged",
                             (unsigned long long)row->key.id);
        if (lock_list_has_session(&list, v->session))
            note(v, row->key.id, true);
    }
    return 0;
}

int locks_recover(struct volume *v, struct error *err)
{
    struct arena *arena = arena_new(65536);
    struct meta_item page = {.ask = META_PAGE, .key.kind = META_LOCK, .limit = RECOVER_PAGE};
    int rc = 0;
    do {
        arena_reset(arena);
        struct meta_read r = {.arena = arena, .items = &page, .count = 1};
        rc = v->meta->ops->read(v->meta, &r, err);
        if (rc == 0)
            rc = note_page(v, arena, &page, err);
        if (page.count > 0)
            page.key = page.rows[page.count - 1].key;
        page.after = true;
    } while (rc == 0 && page.more);
    arena_free(arena);
    return rc;
}

/* ---- set ---- */

struct lock_op {
    uint64_t ino;
    struct held_lock wanted;
    struct held_lock conflict; /* session 0: none */
    bool silent;               /* its session has no heartbeat */
    bool locked;               /* this client has locks of the inode */
};

static int read_list(struct txn *t, const struct lock_op *op, struct meta_key *key,
                     struct meta_value *value, struct lock_list *list)
{
    *key = meta_key_point(META_LOCK, op->ino);
    int rc = txn_get(t, key, value);
    if (rc == 0 && !lock_list_decode(t->arena, value->data, value->size, list))
        rc = -EIO;
    return rc;
}

/* Is the session there?  One that is not never comes back, so nothing needs to be expected. */
static int look_at_session(struct txn *t, uint64_t session, bool *there, bool *silent)
{
    struct meta_key key = meta_key_point(META_SESSION, session);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    const int64_t oldest_ms = t->now_ns / 1000000 - (int64_t)t->v->format.session_ms;
    *there = value.found;
    *silent = value.found && meta_field(&value, 0) < oldest_ms;
    return rc;
}

/* The conflict that counts, after locks of sessions that are over were dropped. */
static int find_conflict(struct txn *t, struct lock_op *op, struct lock_list *list)
{
    const struct held_lock *held;
    op->conflict = (struct held_lock){.session = 0};
    op->silent = false;
    while ((held = lock_list_conflict(list, &op->wanted)) != NULL) {
        bool there = true;
        int rc = 0;
        if (held->session != t->v->session)
            rc = look_at_session(t, held->session, &there, &op->silent);
        if (rc != 0)
            return rc;
        if (there) {
            op->conflict = *held;
            return 0;
        }
        lock_list_drop_session(list, held->session);
    }
    return 0;
}

static int decide_set(struct txn *t, void *context)
{
    struct lock_op *op = context;
    struct meta_key key;
    struct meta_value value;
    struct lock_list list;
    int rc = read_list(t, op, &key, &value, &list);
    if (rc == 0)
        rc = find_conflict(t, op, &list);
    if (rc != 0)
        return rc;
    const bool waits = op->conflict.session != 0;
    struct held_lock set = op->wanted;
    if (waits && !set.lock.flock)
        return -EAGAIN;
    if (waits) /* flock(2): a conversion gives up the old lock before it waits */
        set.lock.type = VOLUME_LOCK_NONE;
    const bool changed = lock_list_set(&list, &set);
    op->locked = lock_list_has_session(&list, t->v->session);
    if (list.count > LOCKS_MAX)
        return -ENOLCK;
    if (changed) {
        txn_expect(t, &key, &value);
        if (list.count == 0)
            txn_delete(t, &key);
        else
            txn_put(t, &key, lock_list_encode(t->arena, &list), list.count * LOCK_BYTES);
    }
    return 0;
}

/* Noted before it is made: whatever becomes of the call, the last close looks. */
static uint64_t note_call(struct volume *v, uint64_t ino, const struct volume_lock *lock)
{
    if (lock->type != VOLUME_LOCK_NONE)
        note(v, ino, true);
    pthread_mutex_lock(&v->lock);
    uint64_t calls = v->lock_calls += lock->type != VOLUME_LOCK_NONE;
    pthread_mutex_unlock(&v->lock);
    return calls;
}

static bool no_call_since(struct volume *v, uint64_t calls)
{
    pthread_mutex_lock(&v->lock);
    bool none = v->lock_calls == calls;
    pthread_mutex_unlock(&v->lock);
    return none;
}

int volume_setlock(struct volume *v, uint64_t ino, const struct volume_lock *lock)
{
    struct lock_op op = {.ino = ino, .wanted = {*lock, v->session}};
    const uint64_t calls = note_call(v, ino, lock);
    int rc = txn_run(v, decide_set, &op);
    if ((rc == 0 || rc == -EAGAIN) && op.silent) {
        rc = sessions_expire(v);
        if (rc == 0)
            rc = txn_run(v, decide_set, &op);
    }
    if (rc == 0 && !op.locked && no_call_since(v, calls))
        note(v, ino, false);
    return rc == 0 && op.conflict.session != 0 ? -EAGAIN : rc;
}

static int decide_get(struct txn *t, void *context)
{
    struct lock_op *op = context;
    struct meta_key key;
    struct meta_value value;
    struct lock_list list;
    int rc = read_list(t, op, &key, &value, &list);
    return rc != 0 ? rc : find_conflict(t, op, &list);
}

int volume_getlock(struct volume *v, uint64_t ino, struct volume_lock *lock)
{
    struct lock_op op = {.ino = ino, .wanted = {*lock, v->session}};
    int rc = txn_run(v, decide_get, &op);
    if (rc != 0)
        return rc;
    if (op.conflict.session == 0) {
        lock->type = VOLUME_LOCK_NONE;
        return 0;
    }
    *lock = op.conflict.lock;
    if (op.conflict.session != v->session)
        lock->pid = 0; /* a process of another client */
    return 0;
}
