/* The engine "postgres": a database of a PostgreSQL server, for mounts of many machines.
 *
 *     postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?PARAMETER=VALUE…]      as libpq has it;
 *     the password may be in $DFC_META_PASSWORD or in ~/.pgpass
 *
 * Commits.  One thread of each process writes.  It sends all commits that wait as one transaction,
 * in one round trip, and the server looks at the expectations of each by itself (postgres_sql.h).
 * One transaction at a time commits, whoever sends it.
 *
 * There are up to META_POSTGRES_LINKS connections.  A read of several questions is one
 * transaction of one snapshot, in one round trip.
 *
 * A server that is away.  A call waits for it up to META_AWAY_MS, counted from the moment when it
 * went away, and then fails.  So does a call that the server refuses for so long.  A commit that
 * was sent and has no reply is in doubt, and is not sent again.
 *
 * A server that has lost commits, by a restored backup or a failover, is refused: all calls fail
 * with E_CORRUPT until the engine is opened anew.  The database has a list of the server's starts,
 * each with the number of transactions until then.  A new connection compares it with the last
 * number that was acknowledged here. */
#pragma once

#include "mount/meta/meta.h"

enum {
    META_POSTGRES_LINKS = 16,
    META_POSTGRES_GROUP = 128,     /* commits in one transaction at most */
    META_POSTGRES_PAGE = 5000,     /* rows of one page at most */
    META_POSTGRES_SNAPSHOT = 500,  /* rows of one round trip */
    META_POSTGRES_CALL_MS = 20000, /* until a reply */
};

extern const struct meta_ops meta_postgres_ops;
