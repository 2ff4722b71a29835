/* Changes of the index, and the second file that is filled while it is made anew: every change goes
 * into both, and the second one takes the first one's place when it is whole. */
#include "target/index/index_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/fault.h"
#include "common/log.h"
#include "io/file.h"
#include "target/index/tree.h"

enum { SETTLE_MS = 10000 };

struct change {
    const struct index_item *items;
    size_t count;
    uint64_t bucket_id;
    const char *name;
    size_t budget;
};

static int put_one(MDB_txn *txn, MDB_dbi dbi, const struct index_item *item, unsigned flags)
{
    unsigned char bytes[INDEX_VALUE_MAX];
    size_t len = index_value_encode(item->bucket_id, item->name, &item->record, bytes);
    MDB_val value = {.mv_data = bytes, .mv_size = len};
    return tree_put(txn, dbi, item->bucket_id, item->name, &value, flags);
}

static int change_put(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    const struct change *c = ctx;
    int rc = 0;
    for (size_t i = 0; i < c->count && rc == 0; i++)
        rc = put_one(txn, dbi, &c->items[i], 0);
    return rc;
}

static int change_delete(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    const struct change *c = ctx;
    int rc = tree_delete(txn, dbi, c->bucket_id, c->name);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* In the file that is being filled: what fills it must not bring the name back. */
static int change_delete_marking(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    const struct change *c = ctx;
    int rc = change_delete(txn, dbi, ctx);
    return rc == 0 ? tree_mark_gone(txn, dbi, c->bucket_id, c->name) : rc;
}

static int change_drop(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    struct change *c = ctx;
    return tree_drop(txn, dbi, c->bucket_id, &c->budget);
}

/* A name that has changed since is already there, or marked. */
static int change_fill(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    const struct change *c = ctx;
    int rc = 0;
    for (size_t i = 0; i < c->count && rc == 0; i++) {
        const struct index_item *item = &c->items[i];
        bool gone = false;
        rc = tree_is_gone(txn, dbi, item->bucket_id, item->name, &gone);
        if (rc == 0 && !gone)
            rc = put_one(txn, dbi, item, MDB_NOOVERWRITE);
        if (rc == MDB_KEYEXIST)
            rc = 0;
    }
    return rc;
}

/* The index's own file, under x->write.  A damaged one is no reason to refuse. */
static int change_current(struct index *x, index_change_fn *fn, struct change *c, struct error *err)
{
    struct error why = ERROR_INIT;
    int rc = fault_errno("index.write");
    if (rc == 0)
        rc = index_env_change(x->cur, fn, c);
    if (rc == 0)
        return 0;
    int code = index_error(x, rc, "write the index", &why);
    if (index_rc_is_damage(rc)) {
        index_mark_stale(x, &why);
        return 0;
    }
    if (err != NULL)
        *err = why;
    return code;
}

static int change_both(struct index *x, index_change_fn *fn, index_change_fn *fn_next,
                       struct change *c, struct error *err)
{
    int code = index_make_dirty(x, err);
    if (code != 0)
        return code;
    pthread_mutex_lock(&x->write);
    size_t budget = c->budget;
    code = change_current(x, fn, c, err);
    size_t left = c->budget;
    c->budget = budget;
    if (code == 0 && x->next != NULL && index_env_change(x->next, fn_next, c) != 0)
        x->next_failed = true;
    if (x->next == NULL || left < c->budget)
        c->budget = left;
    pthread_mutex_unlock(&x->write);
    return code;
}

int index_put(struct index *x, uint64_t bucket_id, const char *name, const struct index_record *rec,
              struct error *err)
{
    const struct index_item item = {.bucket_id = bucket_id, .name = name, .record = *rec};
    struct change c = {.items = &item, .count = 1};
    session_intend(x->session, bucket_id, name);
    int code = change_both(x, change_put, change_put, &c, err);
    if (code != 0) /* nothing has changed */
        session_settle(x->session, bucket_id, name);
    else if (rec->pending)
        atomic_fetch_add(&x->pending_mark, 1);
    return code;
}

int index_delete(struct index *x, uint64_t bucket_id, const char *name, struct error *err)
{
    struct change c = {.bucket_id = bucket_id, .name = name};
    session_intend(x->session, bucket_id, name);
    int code = change_both(x, change_delete, change_delete_marking, &c, err);
    if (code != 0)
        session_settle(x->session, bucket_id, name);
    return code;
}

void index_settled(struct index *x, uint64_t bucket_id, const char *name)
{
    session_settle(x->session, bucket_id, name);
}

void index_watch(struct index *x, uint64_t number)
{
    session_watch(x->session, number);
}

uint64_t index_watched(struct index *x)
{
    return session_watched(x->session);
}

bool index_may_have_changed(struct index *x, uint64_t watch, uint64_t bucket_id, const char *name)
{
    return session_may_have_changed(x->session, watch, bucket_id, name);
}

void index_assume_changed(struct index *x, uint64_t bucket_id, const char *name)
{
    session_assume_changed(x->session, bucket_id, name);
}

int index_drop_some(struct index *x, uint64_t bucket_id, size_t max, bool *done, struct error *err)
{
    struct change c = {.bucket_id = bucket_id, .budget = max};
    session_intend(x->session, bucket_id, "");
    int code = change_both(x, change_drop, change_drop, &c, err);
    session_settle(x->session, bucket_id, "");
    *done = c.budget > 0;
    return code;
}

int index_fill(struct index *x, const struct index_item *items, size_t count, struct error *err)
{
    struct change c = {.items = items, .count = count};
    pthread_mutex_lock(&x->write);
    bool second = x->next != NULL;
    int rc = fault_errno("index.write");
    if (rc == 0)
        rc = index_env_change(second ? x->next : x->cur, second ? change_fill : change_put, &c);
    pthread_mutex_unlock(&x->write);
    return rc != 0 ? index_error(x, rc, "fill the index", err) : 0;
}

static int rebuild_open(struct index *x, struct error *err)
{
    _cleanup_free_ char *dir = index_path(x, "new");
    int code = file_remove_tree(dir, err);
    if (code == 0)
        code = file_mkdirs(dir, INDEX_DIR_MODE, err);
    if (code != 0)
        return code;
    int rc = index_env_open(dir, x->map_size, &x->next);
    return rc != 0 ? index_error(x, rc, "begin a new index in", err) : 0;
}

int index_rebuild_begin(struct index *x, struct error *err)
{
    int code;
    pthread_mutex_lock(&x->write);
    if (x->next != NULL)
        code = error_set(err, E_EXISTS, "the index '%s' is being rebuilt already", x->dir);
    else
        code = rebuild_open(x, err);
    x->next_failed = false;
    pthread_mutex_unlock(&x->write);
    /* What has changed the index before, and not its file yet, is not in the new one: whoever fills
     * that must not see the file as it was.  An intent that nobody settles has an index that is
     * stale, or a disk that hangs, and is not waited for forever. */
    if (code == 0 && !session_wait_settled(x->session, SETTLE_MS))
        log_warn("index rebuilt beside changes that do not end", lstr("index", x->dir));
    return code;
}

static int change_forget_gone(MDB_txn *txn, MDB_dbi dbi, void *ctx)
{
    struct change *c = ctx;
    return tree_drop(txn, dbi, TREE_NODE_GONE, &c->budget);
}

/* The marks have done their work. */
static int forget_gone(struct index *x, struct error *err)
{
    enum { AT_ONCE = 10000 };
    int rc = 0;
    for (bool done = false; rc == 0 && !done;) {
        struct change c = {.budget = AT_ONCE};
        rc = index_env_change(x->next, change_forget_gone, &c);
        done = c.budget > 0;
    }
    return rc != 0 ? index_error(x, rc, "finish the new index in", err) : 0;
}

/* The new file's name is the old one's from here on, for the next process, too. */
static int rebuild_publish(struct index *x, struct error *err)
{
    if (x->next_failed)
        return error_set(err, E_IO, "the new index in '%s' missed a change", x->dir);
    int code = forget_gone(x, err);
    if (code == 0)
        code = index_make_dirty(x, err);
    if (code == 0 && renameat(x->dir_fd, "new/data.mdb", x->dir_fd, "data.mdb") != 0)
        code = error_errno(err, errno, "put the new index of '%s' in place", x->dir);
    return code;
}

static struct index_env *rebuild_swap(struct index *x)
{
    pthread_mutex_lock(&x->lock);
    struct index_env *old = x->cur;
    x->cur = steal(x->next);
    x->complete = true;
    x->stale = ERROR_INIT;
    pthread_mutex_unlock(&x->lock);
    session_trust(x->session);
    session_watch(x->session, 0); /* names may have come that were not seen */
    session_set_complete(x->session, true);
    return old;
}

int index_rebuild_end(struct index *x, bool whole, struct error *err)
{
    struct index_env *old;
    int code = 0;
    pthread_mutex_lock(&x->write);
    assert(x->next != NULL);
    if (whole)
        code = rebuild_publish(x, err);
    old = whole && code == 0 ? rebuild_swap(x) : steal(x->next);
    pthread_mutex_unlock(&x->write);
    index_env_unref(x, old);
    _cleanup_free_ char *dir = index_path(x, "new");
    /* What is left of it is removed before the next one, and at the next start. */
    (void)file_remove_tree(dir, NULL);
    return code;
}
