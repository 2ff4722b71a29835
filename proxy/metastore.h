/* Where the primary keeps the cluster's documents: the one seam behind which several proxies become
 * possible.  Drivers: embedded (a durable log in this proxy's own directory: one primary).
 *
 * commit() returns only when the new state is durable (embedded: record appended and fdatasync'ed;
 * every so often the log is folded into a snapshot).  After a crash open() gives the last state
 * whose commit returned, or one later that was being committed.  A torn tail is cut; a record or
 * snapshot with a wrong checksum elsewhere is refused with the way out in the message.
 *
 * A commit that failed may yet be found after a crash (the disk did not say what it has), but never
 * once a later one has succeeded. */
#pragma once

#include <stdint.h>

#include "cluster/state.h"

struct metastore;

struct metastore_config {
    const char *dir;     /* made where it is absent */
    uint64_t fold_bytes; /* a log longer than this is folded into a new snapshot */
};

struct metastore_ops {
    const char *scheme; /* "embedded" */
    int (*open)(const struct metastore_config *config, struct metastore **out, struct error *err);
    /* The last state (a new reference); NULL where the store is new. */
    int (*load)(struct metastore *m, struct cluster_state **out, struct error *err);
    /* `from` is the state of the last commit, or of load(); NULL for the first commit of all. */
    int (*commit)(struct metastore *m, const struct cluster_state *from,
                  const struct cluster_state *to, struct error *err);
    void (*close)(struct metastore *m);
};

struct metastore {
    const struct metastore_ops *ops;
};

extern const struct metastore_ops metastore_embedded;
