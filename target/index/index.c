#include "target/index/index_parts.h"

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
#include "target/index/tree.h"

/* The marker's content names the layout of keys and records: another one is begun anew. */
static const char marker_text[] = INDEX_FORMAT;
enum { READERS_MAX = 1024, FILE_MODE = 0640 };

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

static void reader_free(struct index_reader *r)
{
    if (r->at != NULL)
        mdb_cursor_close(r->at);
    if (r->txn != NULL)
        mdb_txn_abort(r->txn);
    *r = (struct index_reader){0};
}

void index_env_close(struct index_env *e)
{
    if (e == NULL)
        return;
    reader_free(&e->spare);
    if (e->env != NULL)
        mdb_env_close(e->env);
    free(e);
}

void index_env_unref(struct index *x, struct index_env *e)
{
    pthread_mutex_lock(&x->lock);
    bool last = --e->refs == 0;
    pthread_mutex_unlock(&x->lock);
    if (last)
        index_env_close(e);
}

int index_reader_begin(struct index *x, struct index_env **e, struct index_reader *r)
{
    pthread_mutex_lock(&x->lock);
    *e = x->cur;
    (*e)->refs++;
    *r = (*e)->spare;
    (*e)->spare = (struct index_reader){0};
    pthread_mutex_unlock(&x->lock);
    bool is_used = r->txn != NULL;
    int rc = is_used ? mdb_txn_renew(r->txn) : mdb_txn_begin((*e)->env, NULL, MDB_RDONLY, &r->txn);
    if (rc == 0)
        rc = is_used ? mdb_cursor_renew(r->txn, r->at) : mdb_cursor_open(r->txn, (*e)->dbi, &r->at);
    if (rc != 0)
        reader_free(r);
    return rc;
}

void index_reader_end(struct index *x, struct index_env *e, struct index_reader *r)
{
    if (r->txn != NULL)
        mdb_txn_reset(r->txn);
    pthread_mutex_lock(&x->lock);
    if (e == x->cur && e->spare.txn == NULL) {
        e->spare = *r;
        *r = (struct index_reader){0};
    }
    pthread_mutex_unlock(&x->lock);
    reader_free(r);
    index_env_unref(x, e);
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

char *index_path(const struct index *x, const char *name)
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
    _cleanup_buf_ struct buf text = BUF_INIT;
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
    if (*fresh != NULL)
        session_watch(x->session, 0);
    else
        session_set_complete(x->session, true);
    return 0;
}

static int open_dir(struct index *x, struct error *err)
{
    int code = file_mkdirs(x->dir, INDEX_DIR_MODE, err);
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

void index_mark_stale(struct index *x, const struct error *why)
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
    index_mark_stale(x, why);
    pthread_mutex_lock(&x->write);
    x->next_failed = true; /* it has missed the change as well */
    pthread_mutex_unlock(&x->write);
}

int index_damaged(struct index *x, int code, const struct error *why)
{
    if (code == E_CORRUPT || code == E_IO)
        index_mark_stale(x, why);
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
