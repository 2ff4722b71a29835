#include "mount/meta/sqlite_db.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "common/fault.h"
#include "common/mem.h"

enum { APPLICATION = 0x64666376, FORMAT = 1 }; /* "dfcv" */

enum statement {
    GET,
    NEXT,
    PUT,
    REMOVE,
    BEGIN_READ,
    BEGIN_WRITE,
    COMMIT,
    ROLLBACK,
    GET_STAMP,
    PUT_STAMP,
    STATEMENTS,
};

static const char *const texts[STATEMENTS] = {
    [GET] = "SELECT v FROM kv WHERE k = ?1",
    [NEXT] = "SELECT k, v FROM kv WHERE k > ?1 ORDER BY k LIMIT 1",
    [PUT] = "INSERT INTO kv(k, v) VALUES(?1, ?2) ON CONFLICT(k) DO UPDATE SET v = ?2",
    [REMOVE] = "DELETE FROM kv WHERE k = ?1",
    [BEGIN_READ] = "BEGIN",
    [BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [GET_STAMP] = "SELECT last FROM stamp",
    [PUT_STAMP] = "UPDATE stamp SET last = ?1",
};

struct sqlite_db {
    sqlite3 *handle;
    sqlite3_stmt *statements[STATEMENTS];
};

static int code_of(int result)
{
    switch (result & 0xff) {
    case SQLITE_FULL:
        return E_NO_SPACE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return E_TIMEOUT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return E_CORRUPT;
    case SQLITE_NOMEM:
        return E_NOMEM;
    default:
        return E_IO;
    }
}

static int fail(const struct sqlite_db *db, int result, const char *what, struct error *err)
{
    return error_set(err, code_of(result), "metadata database: %s: %s (%d)", what,
                     sqlite3_errmsg(db->handle), result);
}

/* ---- open ---- */

static int run(struct sqlite_db *db, const char *sql, struct error *err)
{
    int result = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : fail(db, result, sql, err);
}

static int number_of(struct sqlite_db *db, const char *sql, int64_t *number, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int result = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(s);
    *number = result == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return result == SQLITE_ROW ? 0 : fail(db, result, sql, err);
}

static int make_tables(struct sqlite_db *db, struct error *err)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "CREATE TABLE kv(k BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) STRICT, WITHOUT ROWID;"
             "CREATE TABLE stamp(last INTEGER NOT NULL) STRICT;"
             "INSERT INTO stamp(last) VALUES(0);"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             APPLICATION, FORMAT);
    return run(db, sql, err);
}

/* Two processes may make it at once: the second finds it made. */
static int check_tables(struct sqlite_db *db, bool make, const char *path, struct error *err)
{
    int64_t application = 0, tables = 0, format = 0;
    int rc = run(db, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = number_of(db, "PRAGMA application_id", &application, err);
    if (rc == 0)
        rc = number_of(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (rc == 0)
        rc = number_of(db, "PRAGMA user_version", &format, err);
    if (rc == 0 && tables == 0 && make)
        rc = make_tables(db, err);
    else if (rc == 0 && tables == 0)
        rc = error_set(err, E_NOT_FOUND, "'%s' is an empty database", path);
    else if (rc == 0 && application != APPLICATION)
        rc = error_set(err, E_INVALID, "'%s' is the database of another program; take another file",
                       path);
    else if (rc == 0 && format != FORMAT)
        rc = error_set(err, E_UNSUPPORTED, "'%s' has format %lld, this release reads %d", path,
                       (long long)format, FORMAT);
    if (rc == 0)
        return run(db, "COMMIT", err);
    run(db, "ROLLBACK", NULL);
    return rc;
}

static int prepare(struct sqlite_db *db, struct error *err)
{
    for (unsigned i = 0; i < STATEMENTS; i++) {
        int result = sqlite3_prepare_v3(db->handle, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                        &db->statements[i], NULL);
        if (result != SQLITE_OK)
            return fail(db, result, texts[i], err);
    }
    return 0;
}

int sqlite_db_open(const char *path, bool make, unsigned busy_ms, struct sqlite_db **out,
                   struct error *err)
{
    _cleanup_(sqlite_db_closep)
    struct sqlite_db *db = xcalloc(1, sizeof *db);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                      (make ? SQLITE_OPEN_CREATE : 0);
    int result = sqlite3_open_v2(path, &db->handle, flags, NULL);
    if (result != SQLITE_OK) {
        bool missing = (result & 0xff) == SQLITE_CANTOPEN && !make;
        return error_set(err, missing ? E_NOT_FOUND : code_of(result),
                         "metadata database '%s' cannot be opened: %s%s", path,
                         sqlite3_errstr(result),
                         missing ? ": give the path of a volume, or make it by 'fs format'" : "");
    }
    sqlite3_busy_timeout(db->handle, (int)busy_ms);
    int rc = run(db, "PRAGMA journal_mode = WAL", err);
    if (rc == 0)
        rc = run(
            db, fault_skips("meta.sync") ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = FULL",
            err);
    if (rc == 0)
        rc = run(db, "PRAGMA cache_size = -16384", err); /* KiB */
    if (rc == 0)
        rc = run(db, "PRAGMA journal_size_limit = 67108864", err);
    if (rc == 0)
        rc = check_tables(db, make, path, err);
    if (rc == 0)
        rc = prepare(db, err);
    if (rc == 0)
        *out = steal(db);
    return rc;
}

void sqlite_db_close(struct sqlite_db *db)
{
    if (db == NULL)
        return;
    for (unsigned i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->handle);
    free(db);
}

/* ---- keys ---- */

/* What the last get and next gave out ends here. */
static sqlite3_stmt *take(struct sqlite_db *db, enum statement which)
{
    sqlite3_reset(db->statements[GET]);
    sqlite3_reset(db->statements[NEXT]);
    return db->statements[which];
}

static void bind(sqlite3_stmt *s, int at, struct kv_bytes bytes)
{
    int result = sqlite3_bind_blob64(s, at, bytes.data, bytes.size, SQLITE_STATIC);
    assert(result == SQLITE_OK);
}

static struct kv_bytes column(sqlite3_stmt *s, int at)
{
    const void *data = sqlite3_column_blob(s, at);
    return (struct kv_bytes){data, (size_t)sqlite3_column_bytes(s, at)};
}

static int step_row(struct sqlite_db *db, sqlite3_stmt *s, bool *found, struct error *err)
{
    int result = sqlite3_step(s);
    *found = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? 0 : fail(db, result, "read", err);
}

static int step_done(struct sqlite_db *db, sqlite3_stmt *s, const char *what, struct error *err)
{
    int result = sqlite3_step(s);
    int rc = result == SQLITE_DONE ? 0 : fail(db, result, what, err);
    sqlite3_reset(s);
    return rc;
}

static int db_get(void *context, struct kv_bytes key, bool *found, struct kv_bytes *value,
                  struct error *err)
{
    struct sqlite_db *db = context;
    sqlite3_stmt *s = take(db, GET);
    bind(s, 1, key);
    int rc = step_row(db, s, found, err);
    if (rc == 0 && *found)
        *value = column(s, 0);
    return rc;
}

static int db_next(void *context, struct kv_bytes key, bool *found, struct kv_bytes *next,
                   struct kv_bytes *value, struct error *err)
{
    struct sqlite_db *db = context;
    sqlite3_stmt *s = take(db, NEXT);
    bind(s, 1, key);
    int rc = step_row(db, s, found, err);
    if (rc == 0 && *found) {
        *next = column(s, 0);
        *value = column(s, 1);
    }
    return rc;
}

static int db_put(void *context, struct kv_bytes key, struct kv_bytes value, struct error *err)
{
    struct sqlite_db *db = context;
    sqlite3_stmt *s = take(db, PUT);
    bind(s, 1, key);
    bind(s, 2, value);
    return step_done(db, s, "write", err);
}

static int db_remove(void *context, struct kv_bytes key, struct error *err)
{
    struct sqlite_db *db = context;
    sqlite3_stmt *s = take(db, REMOVE);
    bind(s, 1, key);
    return step_done(db, s, "delete", err);
}

static const struct kv_ops db_ops = {
    .get = db_get,
    .next = db_next,
    .put = db_put,
    .remove = db_remove,
};

struct kv sqlite_db_kv(struct sqlite_db *db)
{
    return (struct kv){&db_ops, db};
}

/* ---- transactions ---- */

int sqlite_db_begin_read(struct sqlite_db *db, struct error *err)
{
    return step_done(db, take(db, BEGIN_READ), "begin", err);
}

void sqlite_db_end(struct sqlite_db *db)
{
    sqlite3_stmt *s = take(db, ROLLBACK);
    if (sqlite3_get_autocommit(db->handle) == 0) { /* an error may have ended it */
        sqlite3_step(s);
        sqlite3_reset(s);
    }
}

int sqlite_db_begin_write(struct sqlite_db *db, uint64_t *stamp, struct error *err)
{
    bool found;
    int rc = step_done(db, take(db, BEGIN_WRITE), "begin", err);
    if (rc != 0)
        return rc;
    sqlite3_stmt *s = take(db, GET_STAMP);
    rc = step_row(db, s, &found, err);
    if (rc == 0 && !found)
        rc = error_set(err, E_CORRUPT, "metadata database: its last stamp is missing");
    *stamp = rc == 0 ? (uint64_t)sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    if (rc != 0)
        sqlite_db_end(db);
    return rc;
}

int sqlite_db_commit(struct sqlite_db *db, uint64_t stamp, struct error *err)
{
    sqlite3_stmt *s = take(db, PUT_STAMP);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)stamp);
    int rc = step_done(db, s, "stamp", err);
    if (rc == 0) {
        rc = step_done(db, take(db, COMMIT), "commit", err);
        /* The log may have it, although it could not be synced. */
        if (rc == E_IO)
            rc = error_recode(err, E_IN_DOUBT, "commit");
    }
    if (rc != 0)
        sqlite_db_end(db);
    return rc;
}
