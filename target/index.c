#include "target/index_internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/index_tree.h"

/* The marker's content names the layout of keys and records: another one is begun anew. */
static const char marker_text[] = "dfc index 1\n";
enum { READERS_MAX = 1024, FILE_MODE = 0640, DIR_MODE = 0750 };

int index_error(const struct index *x, int rc, const char *doing, struct error *err)
{
    assert(rc != 0);
    if (rc == MDB_MAP_FULL)
        return error_set(err, E_NO_SPACE, "%s '%s': the index is full (index_map_size)", doing,
                         x->dir);
    if (rc > 0)
        return error_errno(err, rc, "%s '%s'", doing, x->dir);
    return error_set(err, E_IO, "%s '%s': %s", doing, x->dir, mdb_strerror(rc));
}

static char *index_path(const struct index *x, const char *name)
{
    return xprintf("%s/%s", x->dir, name);
}

static int index_unlink(const struct index *x, const char *name, struct error *err)
{
    _cleanup_free_ char *path = index_path(x, name);
    if (unlink(path) != 0 && errno != ENOENT)
        return error_errno(err, errno, "remove '%s'", path);
    return 0;
}

/* Was the index closed with everything in it?  NULL, or why not. */
static const char *marker_missing(const struct index *x)
{
    _cleanup_free_ char *path = index_path(x, "complete");
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    int code = file_read_all(path, 64, &text, NULL);
    if (code == E_NOT_FOUND)
        return "it was not closed in order, or is new";
    if (code != 0 || strcmp(buf_str(&text), marker_text) != 0)
        return "its marker is that of another release";
    return NULL;
}

/* From here until index_close() a crash leaves an index without a marker. */
static int marker_take_away(const struct index *x, struct error *err)
{
    int code = index_unlink(x, "complete", err);
    return code != 0 ? code : file_fsync_dir(x->dir, err);
}

static int index_remove_data(const struct index *x, struct error *err)
{
    int code = index_unlink(x, "data.mdb", err);
    return code != 0 ? code : index_unlink(x, "lock.mdb", err);
}

static int env_open(struct index *x, uint64_t map_size)
{
    int rc = mdb_env_create(&x->env);
    if (rc != 0)
        return rc;
    assert(mdb_env_get_maxkeysize(x->env) >= TREE_KEY_MAX);
    rc = mdb_env_set_mapsize(x->env, map_size);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(x->env, READERS_MAX);
    if (rc == 0)
        rc = mdb_env_open(x->env, x->dir, MDB_NOSYNC | MDB_NOTLS, FILE_MODE);
    MDB_txn *txn = NULL;
    if (rc == 0)
        rc = mdb_txn_begin(x->env, NULL, 0, &txn);
    if (rc == 0)
        rc = mdb_dbi_open(txn, NULL, 0, &x->dbi);
    if (rc == 0)
        return mdb_txn_commit(txn);
    if (txn != NULL)
        mdb_txn_abort(txn);
    mdb_env_close(x->env);
    x->env = NULL;
    return rc;
}

static int index_open_data(struct index *x, uint64_t map_size, const char **fresh,
                           struct error *err)
{
    if (*fresh != NULL) {
        int code = index_remove_data(x, err);
        if (code != 0)
            return code;
    }
    int rc = env_open(x, map_size);
    if (rc < 0 && *fresh == NULL) { /* LMDB does not like the file: it is only derived */
        *fresh = "its file is damaged";
        return index_open_data(x, map_size, fresh, err);
    }
    return rc != 0 ? index_error(x, rc, "open the index", err) : 0;
}

static void index_free(struct index *x)
{
    if (x->env != NULL)
        mdb_env_close(x->env);
    pthread_mutex_destroy(&x->lock);
    free(x->dir);
    free(x);
}

int index_open(const char *dir, uint64_t map_size, bool begin_anew, struct index **out,
               const char **fresh, struct error *err)
{
    struct index *x = xcalloc(1, sizeof *x);
    x->dir = xstrdup(dir);
    pthread_mutex_init(&x->lock, NULL);
    int code = file_mkdirs(dir, DIR_MODE, err);
    if (code == 0) {
        *fresh = begin_anew ? "it was asked for" : marker_missing(x);
        code = marker_take_away(x, err);
    }
    if (code == 0)
        code = index_open_data(x, map_size, fresh, err);
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
    if (x->complete && x->stale.code == 0 && mdb_env_sync(x->env, 1) == 0) {
        _cleanup_free_ char *path = index_path(x, "complete");
        /* A marker that cannot be written costs the next start a rebuild, no more. */
        (void)file_replace(path, marker_text, sizeof marker_text - 1, FILE_MODE, NULL);
    }
    index_free(x);
}

void index_set_complete(struct index *x)
{
    pthread_mutex_lock(&x->lock);
    x->complete = true;
    pthread_mutex_unlock(&x->lock);
}

void index_set_stale(struct index *x, const struct error *why)
{
    assert(why->code != 0);
    pthread_mutex_lock(&x->lock);
    if (x->stale.code == 0)
        x->stale = *why;
    pthread_mutex_unlock(&x->lock);
}

int index_check(struct index *x, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&x->lock);
    if (x->stale.code != 0)
        code = error_set(err, E_IO,
                         "the index '%s' missed a change and is rebuilt at the next "
                         "start: %s",
                         x->dir, x->stale.message);
    else if (!x->complete)
        code = error_set(err, E_NOT_READY, "the index '%s' is being rebuilt", x->dir);
    pthread_mutex_unlock(&x->lock);
    return code;
}

/* --- changes: one write transaction each ------------------------------------------------------ */

static int change_begin(struct index *x, MDB_txn **txn, struct error *err)
{
    int rc = fault_errno("index.write");
    if (rc == 0)
        rc = mdb_txn_begin(x->env, NULL, 0, txn);
    return rc != 0 ? index_error(x, rc, "write the index", err) : 0;
}

static int change_end(struct index *x, MDB_txn *txn, int rc, struct error *err)
{
    if (rc == 0)
        rc = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    return rc != 0 ? index_error(x, rc, "write the index", err) : 0;
}

static int put_one(struct index *x, MDB_txn *txn, const struct index_item *item)
{
    unsigned char bytes[INDEX_RECORD_MAX];
    MDB_val value = {.mv_data = bytes, .mv_size = index_record_encode(&item->record, bytes)};
    return tree_put(txn, x->dbi, item->bucket_id, item->name, &value);
}

int index_put_many(struct index *x, const struct index_item *items, size_t count, struct error *err)
{
    MDB_txn *txn;
    int code = change_begin(x, &txn, err);
    if (code != 0)
        return code;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = put_one(x, txn, &items[i]);
    return change_end(x, txn, rc, err);
}

int index_put(struct index *x, uint64_t bucket_id, const char *name, const struct index_record *rec,
              struct error *err)
{
    struct index_item item = {.bucket_id = bucket_id, .name = name, .record = *rec};
    return index_put_many(x, &item, 1, err);
}

int index_delete(struct index *x, uint64_t bucket_id, const char *name, struct error *err)
{
    MDB_txn *txn;
    int code = change_begin(x, &txn, err);
    if (code != 0)
        return code;
    int rc = tree_delete(txn, x->dbi, bucket_id, name);
    return change_end(x, txn, rc == MDB_NOTFOUND ? 0 : rc, err);
}

int index_drop_some(struct index *x, uint64_t bucket_id, size_t max, bool *done, struct error *err)
{
    MDB_txn *txn;
    int code = change_begin(x, &txn, err);
    if (code != 0)
        return code;
    size_t budget = max;
    int rc = tree_drop(txn, x->dbi, bucket_id, &budget);
    *done = budget > 0;
    return change_end(x, txn, rc, err);
}
