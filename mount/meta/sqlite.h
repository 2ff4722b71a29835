/* The engine "sqlite3": a database file of this machine.
 *
 * One thread writes.  It puts all commits that wait into one transaction of SQLite, looks at the
 * expectations of each by itself, and syncs once for all of them.  Reads have connections of their
 * own and do not wait for it.  Any number of processes may use the file at once. */
#pragma once

#include "mount/meta/meta.h"

enum {
    META_SQLITE_GROUP = 256,     /* commits in one transaction at most */
    META_SQLITE_READERS = 8,     /* reads at once */
    META_SQLITE_BUSY_MS = 30000, /* wait for another process */
};

extern const struct meta_ops meta_sqlite_ops;
