/* One connection to a metadata database of SQLite: its table of keys, and transactions.
 *
 *     kv(k BLOB PRIMARY KEY, v BLOB)    keys and stamped values, as mount/meta/kv.h has them
 *     stamp(last)                       the last stamp that was given
 *
 * The journal is a write-ahead log, and each commit is synced (synchronous=FULL).  A connection
 * belongs to one thread at a time. */
#pragma once

#include "mount/meta/kv.h"

struct sqlite_db;

/* make: a database where there is none; otherwise E_NOT_FOUND.  E_INVALID: it is another program's.
 * busy_ms: how long a call waits for another process. */
int sqlite_db_open(const char *path, bool make, unsigned busy_ms, struct sqlite_db **out,
                   struct error *err);
void sqlite_db_close(struct sqlite_db *db);
DEFINE_CLEANUP(struct sqlite_db, sqlite_db_close);

struct kv sqlite_db_kv(struct sqlite_db *db);

/* All reads until sqlite_db_end() are of one moment. */
int sqlite_db_begin_read(struct sqlite_db *db, struct error *err);
/* No other connection changes anything until the end.  *stamp: the last one. */
int sqlite_db_begin_write(struct sqlite_db *db, uint64_t *stamp, struct error *err);
/* Durable when it returns 0.  E_IN_DOUBT: it may be found again after a crash.  Other errors: it is
 * not made. */
int sqlite_db_commit(struct sqlite_db *db, uint64_t stamp, struct error *err);
void sqlite_db_end(struct sqlite_db *db); /* of a read; or undoes what was written */
