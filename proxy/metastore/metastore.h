/* Where the primary keeps the cluster's documents: one seam, two drivers.
 *
 *   embedded   a durable log in this proxy's own directory.  This proxy is the primary, always.
 *   etcd       several proxies share it.  One of them is elected primary, under a lease.
 *
 * commit() returns only when the new state is durable (embedded: record appended and fdatasync'ed,
 * every so often the log is folded into a snapshot; etcd: a majority of the members has it).  After
 * a crash load() gives the last state whose commit returned, or one later that was being committed.
 *
 * Embedded: a torn tail is cut; a record or snapshot with a wrong checksum elsewhere is refused
 * with the way out in the message.  A commit that failed may yet be found after a crash (the disk
 * did not say what it has), but never once a later one has succeeded.
 *
 * etcd: a commit is made only while the election under which the state was loaded is the one that
 * etcd knows.  E_NOT_PRIMARY: it was not made and will not be.  E_IN_DOUBT: nobody could be asked
 * any more; then this proxy has given up being the primary before commit() returns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/state.h"

struct metastore;

struct metastore_config {
    const char *dir;     /* embedded: made where it is absent */
    uint64_t fold_bytes; /* embedded: a log longer than this is folded into a new snapshot */
    bool moved_ok;       /* embedded: only to load; open it although it is marked (moved.h) */
    const struct etcd_store_config *etcd;
};

/* A proxy as the election shows it to others. */
struct metastore_primary {
    char *id;
    char *public_url;
    char *control_url;
};

enum metastore_known { PRIMARY_UNKNOWN, PRIMARY_NONE, PRIMARY_KNOWN };

struct metastore_ops {
    const char *scheme; /* "embedded" */
    int (*open)(const struct metastore_config *config, struct metastore **out, struct error *err);
    /* The last state (a new reference); NULL where the store is new. */
    int (*load)(struct metastore *m, struct cluster_state **out, struct error *err);
    /* `from` is the state of the last commit, or of load(); NULL for the first commit of all.
     * Blocks; one at a time.  0 leaves *err empty, whatever came before. */
    int (*commit)(struct metastore *m, const struct cluster_state *from,
                  const struct cluster_state *to, struct error *err);
    void (*close)(struct metastore *m); /* resigns where it is primary */

    /* Of a shared one; NULL in the table of another. */

    /* Takes part in elections (where `self` is NULL: only looks on) until close().  changed()
     * comes, in a thread of the store, when election() or primary() may say something new. */
    int (*campaign)(struct metastore *m, const struct metastore_primary *self,
                    void (*changed)(void *arg), void *arg, struct error *err);
    /* The revision with which this proxy was elected; 0 while it is not the primary.  Goes back to
     * 0 before the lease ends, by this machine's own clock: whoever has seen 0 may rely on that
     * nothing is committed any more under the election that was.  Any thread. */
    uint64_t (*election)(struct metastore *m);
    /* Who is.  Fills *out (metastore_primary_done) where it says PRIMARY_KNOWN.  Any thread. */
    enum metastore_known (*primary)(struct metastore *m, struct metastore_primary *out);
    /* Gives the lease back, and does not stand again for a time.  Any thread. */
    void (*resign)(struct metastore *m);
    /* Gives the lease back, and stands in no later election; primary() goes on.  Any thread. */
    void (*withdraw)(struct metastore *m);
};

struct metastore {
    const struct metastore_ops *ops;
};

extern const struct metastore_ops metastore_embedded;
extern const struct metastore_ops metastore_etcd;

static inline void metastore_primary_done(struct metastore_primary *p)
{
    free(p->id);
    free(p->public_url);
    free(p->control_url);
    *p = (struct metastore_primary){0};
}
