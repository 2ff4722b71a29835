/* The engine "redis": a database of a Redis or Valkey server, for mounts of many machines.
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]      or the password in $DFC_META_PASSWORD
 *
 * A commit is one script (redis_scripts.h), so the server makes it whole or not at all.  Each
 * caller has a connection of its own while its call runs.
 *
 * A server that is away.  A call waits for it up to META_AWAY_MS, counted from the moment when it
 * went away, and then fails.  So does a call that the server refuses for so long.  A commit that
 * was sent and has no reply is in doubt, and is not sent again.
 *
 * A server that has lost commits, by a restart with an old file or by a failover, is refused: all
 * calls fail with E_CORRUPT until the engine is opened anew.  The server keeps the run ids that it
 * had, each with the number of commits at its begin.  A new connection compares them with the last
 * commit that was acknowledged here. */
#pragma once

#include "mount/meta/meta.h"

enum { META_REDIS_PAGE = 500 }; /* entries of a directory in one reply */

extern const struct meta_ops meta_redis_ops;
