#include "target/index_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <xxhash.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/file.h"
#include "target/index_tree.h"

/* The marker's content names the layout of keys and records: another one is begun anew. */
static const char marker_text[] = INDEX_FORMAT;
enum { READERS_MAX = 1024, FILE_MODE = 0640, DIR_MODE = 0750, SETTLE_MS = 10000 };

int index_error(const struct index *x, int rc, const char *doing, struct error *err)
{
    assert(rc != 0);
    if (rc == MDB_MAP_FULL)
        return error_set(err, E_NO_SPACE, "%s '%s': the index is full (index_map_size)", doing,
                         x->dir);
    if (rc == MDB_READERS_FULL)
        return error_set(err, E_OVERLOAD, "%s '%s': %d readers are at it", doing, x->dir,
                         READERS_MAX);
    if (rc > 0)
        return error_errno(err, rc, "%s '%s'", doing, x->dir);
    return error_set(err, E_IO, "%s '%s': %s", doing, x->dir, mdb_strerror(rc));
}

bool index_rc_is_damage(int rc)
{
    return rc < 0 && rc != MDB_MAP_FULL && rc != MDB_READERS_FULL && rc != MDB_TXN_FULL;
}

/* --- one file --------------------------------------------------------------------------------- */

int index_env_open(const char *dir, uint64_t map_size, struct index_env **out)
{
    struct index_env *e = xcalloc(1, sizeof *e);
    MDB_txn *txn = NULL;
    e->refs = 1;
    int rc = mdb_env_create(&e->env);
    if (rc == 0) {
        assert(mdb_env_get_maxkeysize(e->env) >= TREE_KEY_MAX);
        rc = mdb_env_set_mapsize(e->env, map_size);
    }
    if (rc == 0)
        rc = mdb_env_set_maxreaders(e->env, READERS_MAX);
    if (rc == 0)
        rc = mdb_env_open(e->env, dir, MDB_NOSYNC | MDB_NOTLS, FILE_MODE);
    if (rc == 0)
        rc = mdb_txn_begin(e->env, NULL, 0, &txn);
    if (rc == 0 && (rc = mdb_dbi_open(txn, NULL, 0, &e->dbi)) != 0)
        mdb_txn_abort(txn);
    else if (rc == 0)
        rc = mdb_txn_commit(txn);
    if (rc != 0)
        index_env_close(e);
    else
        *out = e;
    return rc;
}

void index_env_close(struct index_env *e)
{
    if (e == NULL)
        return;
    if (e->env != NULL)
        mdb_env_close(e->env);
    free(e);
}

struct index_env *index_env_ref(struct index *x)
{
    pthread_mutex_lock(&x->lock);
    struct index_env *e = x->cur;
    e->refs++;
    pthread_mutex_unlock(&x->lock);
    return e;
}

void index_env_unref(struct index *x, struct index_env *e)
{
    pthread_mutex_lock(&x->lock);
    bool last = --e->refs == 0;
    pthread_mutex_unlock(&x->lock);
    if (last)
        index_env_close(e);
}

int index_env_change(struct index_env *e, index_change_fn *fn, void *ctx)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(e->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = fn(txn, e->dbi, ctx);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* --- records ---------------------------------------------------------------------------------- */

static uint32_t value_check(uint64_t bucket_id, const char *name, const void *data, size_t len)
{
    return (uint32_t)XXH3_64bits_withSeed(data, len,
                                          XXH3_64bits_withSeed(name, strlen(name), bucket_id));
}

size_t index_value_encode(uint64_t bucket_id, const char *name, const struct index_record *rec,
                          unsigned char out[static INDEX_VALUE_MAX])
{
    size_t len = index_record_encode(rec, out);
    uint32_t check = value_check(bucket_id, name, out, len);
    memcpy(out + len, &check, sizeof check);
    return len + sizeof check;
}

int index_value_decode(uint64_t bucket_id, const char *name, const void *data, size_t len,
                       struct index_record *rec, struct error *err)
{
    uint32_t check;
    if (len <= sizeof check)
        return error_set(err, E_CORRUPT, "a record of the index is cut short");
    len -= sizeof check;
    memcpy(&check, (const char *)data + len, sizeof check);
    if (check != value_check(bucket_id, name, data, len))
        return error_set(err, E_CORRUPT, "a record of the index does not have its check");
    return index_record_decode(data, len, rec, err);
}

/* --- the marker ------------------------------------------------------------------------------- */

static char *index_path(const struct index *x, const char *name)
{
    return xprintf("%s/%s", x->dir, name);
}

static int index_unlink(const struct index *x, const char *name, struct error *err)
{
    if (unlinkat(x->dir_fd, name, 0) != 0 && errno != ENOENT)
        return error_errno(err, errno, "remove '%s/%s'", x->dir, name);
    return 0;
}

/* *foreign: there is one, of another release or not to be read. */
static bool marker_stands(const char *dir, bool *foreign)
{
    _cleanup_free_ char *path = xprintf("%s/complete", dir);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    int code = file_read_all(path, 64, &text, NULL);
    bool stands = code == 0 && strcmp(buf_str(&text), marker_text) == 0;
    *foreign = !stands && code != E_NOT_FOUND;
    return stands;
}

bool index_is_marked(const char *dir)
{
    bool foreign;
    return marker_stands(dir, &foreign);
}

static int marker_write(void *ctx)
{
    struct index *x = ctx;
    _cleanup_free_ char *path = index_path(x, "complete");
    int code = file_replace(path, marker_text, sizeof marker_text - 1, FILE_MODE, NULL);
    x->clean = code == 0;
    return code;
}

int index_make_dirty(struct index *x, struct error *err)
{
    if (!x->clean)
        return 0;
    int code = 0;
    pthread_mutex_lock(&x->lock);
    if (x->clean) {
        code = index_unlink(x, "complete", err);
        if (code == 0 && fsync(x->dir_fd) != 0)
            code = error_errno(err, errno, "sync '%s'", x->dir);
        x->clean = code != 0;
    }
    pthread_mutex_unlock(&x->lock);
    return code;
}

uint64_t index_changes(struct index *x, bool *idle)
{
    return session_changes(x->session, idle);
}

uint64_t index_pending_mark(const struct index *x)
{
    return atomic_load(&x->pending_mark);
}

/* The objects' files must be on the disk as well, or the marker would promise names that a loss of
 * power takes away. */
int index_checkpoint(struct index *x, struct error *err)
{
    bool idle;
    uint64_t changes = session_changes(x->session, &idle);
    if (x->clean || !idle || index_check(x, NULL) != 0)
        return 0;
    int errnum = fault_errno("disk.sync");
    if (errnum == 0 && syncfs(x->dir_fd) != 0)
        errnum = errno;
    if (errnum != 0) { /* what is in memory may never get to the disk, and be forgotten, too */
        session_distrust(x->session);
        return error_errno(err, errnum, "sync the file system of '%s'", x->dir);
    }
    pthread_mutex_lock(&x->write);
    if (x->next == NULL) /* without a marker the next start costs more, and no more than that */
        (void)session_if_unchanged(x->session, changes, marker_write, x);
    pthread_mutex_unlock(&x->write);
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int begin_anew(struct index *x, struct error *err)
{
    int code = index_unlink(x, "complete", err);
    if (code == 0 && fsync(x->dir_fd) != 0)
        code = error_errno(err, errno, "sync '%s'", x->dir);
    session_set_complete(x->session, false);
    if (code == 0)
        code = index_unlink(x, "data.mdb", err);
    return code != 0 ? code : index_unlink(x, "lock.mdb", err);
}

static int open_data(struct index *x, const char **fresh, struct error *err)
{
    int code = *fresh != NULL ? begin_anew(x, err) : 0;
    if (code != 0)
        return code;
    int rc = index_env_open(x->dir, x->map_size, &x->cur);
    if (index_rc_is_damage(rc) && *fresh == NULL) {
        *fresh = "its file is damaged";
        x->clean = false;
        return open_data(x, fresh, err);
    }
    return rc != 0 ? index_error(x, rc, "open the index", err) : 0;
}

/* Whether what is there can be relied on; `asked`: it is not wanted. */
static int open_session(struct index *x, bool asked, const char **fresh, struct error *err)
{
    const char *broken;
    bool distrusted, foreign, stands;
    int code = session_open(x->dir, &x->session, &broken, &distrusted, err);
    if (code != 0)
        return code;
    stands = marker_stands(x->dir, &foreign);
    x->clean = stands && !distrusted && !asked;
    if (asked)
        *fresh = "it was asked for";
    else if (foreign)
        *fresh = "its marker is that of another release";
    else
        *fresh = x->clean ? NULL : broken;
    if (x->clean)
        session_set_complete(x->session, false); /* no intents: nothing was under way */
    if (*fresh == NULL)
        session_set_complete(x->session, true);
    return 0;
}

static int open_dir(struct index *x, struct error *err)
{
    int code = file_mkdirs(x->dir, DIR_MODE, err);
    if (code != 0)
        return code;
    x->dir_fd = open(x->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (x->dir_fd < 0)
        return error_errno(err, errno, "open '%s'", x->dir);
    _cleanup_free_ char *unfinished = index_path(x, "new");
    return file_remove_tree(unfinished, err);
}

static void index_free(struct index *x)
{
    index_env_close(x->next);
    index_env_close(x->cur);
    session_close(x->session);
    pthread_mutex_destroy(&x->write);
    pthread_mutex_destroy(&x->lock);
    if (x->dir_fd >= 0)
        close(x->dir_fd);
    free(x->dir);
    free(x);
}

int index_open(const char *dir, uint64_t map_size, bool begin_anew, struct index **out,
               const char **fresh, struct error *err)
{
    struct index *x = xcalloc(1, sizeof *x);
    x->dir = xstrdup(dir);
    x->dir_fd = -1;
    x->map_size = map_size;
    uint64_t mark;
    random_bytes(&mark, sizeof mark);
    atomic_init(&x->pending_mark, mark);
    pthread_mutex_init(&x->write, NULL);
    pthread_mutex_init(&x->lock, NULL);
    int code = open_dir(x, err);
    if (code == 0)
        code = open_session(x, begin_anew, fresh, err);
    if (code == 0)
        code = open_data(x, fresh, err);
    if (code != 0) {
        index_free(x);
        return code;
    }
    x->complete = *fresh == NULL;
    *out = x;
    return 0;
}

void index_close(struct index *x)
{
    if (x == NULL)
        return;
    /* Where it fails the next start looks at the session, or rebuilds. */
    (void)index_checkpoint(x, NULL);
    index_free(x);
}

int index_each_intent(struct index *x,
                      int (*fn)(void *ctx, uint64_t bucket_id, const char *name, struct error *err),
                      void *ctx, struct error *err)
{
    return session_each(x->session, fn, ctx, err);
}

/* --- what it is worth ------------------------------------------------------------------------- */

void index_set_complete(struct index *x)
{
    pthread_mutex_lock(&x->lock);
    x->complete = true;
    pthread_mutex_unlock(&x->lock);
    session_set_complete(x->session, true);
}

static void set_stale(struct index *x, const struct error *why)
{
    assert(why->code != 0);
    session_distrust(x->session);
    pthread_mutex_lock(&x->lock);
    if (x->stale.code == 0)
        x->stale = *why;
    pthread_mutex_unlock(&x->lock);
}

void index_set_stale(struct index *x, const struct error *why)
{
    set_stale(x, why);
    pthread_mutex_lock(&x->write);
    x->next_failed = true; /* it has missed the change as well */
    pthread_mutex_unlock(&x->write);
}

int index_damaged(struct index *x, int code, const struct error *why)
{
    if (code == E_CORRUPT || code == E_IO)
        set_stale(x, why);
    return code;
}

int index_check(struct index *x, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&x->lock);
    if (x->stale.code != 0)
        code = error_set(err, E_IO, "the index '%s' cannot be relied on and has to be rebuilt: %s",
                         x->dir, x->stale.message);
    else if (!x->complete)
        code = error_set(err, E_NOT_READY, "the index '%s' is being rebuilt", x->dir);
    pthread_mutex_unlock(&x->lock);
    return code;
}

/* --- changes ---------------------------------------------------------------------------------- */

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
        set_stale(x, &why);
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

int index_drop_some(struct index *x, uint64_t bucket_id, size_t max, bool *done, struct error *err)
{
    struct change c = {.bucket_id = bucket_id, .budget = max};
    session_intend(x->session, bucket_id, "");
    int code = change_both(x, change_drop, change_drop, &c, err);
    session_settle(x->session, bucket_id, "");
    *done = c.budget > 0;
    return code;
}

/* --- filling it anew -------------------------------------------------------------------------- */

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
        code = file_mkdirs(dir, DIR_MODE, err);
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
