/* The documents of a running embedded primary go to etcd, for good:
 *
 *   1  win the election there, and see that it has no documents     nothing has happened yet
 *   2  fence: no commit begins, those under way end                 changes get 503 not_primary
 *   3  mark the log as moved (metastore/moved.h), durably          nobody starts upon it any more
 *   4  the first change there: all documents, a term of a new epoch
 *   5  end being the primary; the mark says that it is done
 *
 * A change is acknowledged before the fence, and is then in the log's last state, which goes along;
 * or it is refused.  After a crash between 3 and 5 no proxy starts upon the log; one that is
 * started in this directory with --metastore=etcd://… does the rest: it takes the documents along
 * where etcd has none, and finds them there otherwise.  A step 4 that was refused takes 3 and 2
 * back.  One in doubt leaves the fence up; the same call again, or that start, finds out.
 *
 * Blocks: not for a loop's thread or an HTTP thread. */
#pragma once

#include "cluster/documents/state.h"

struct proxy;

/* E_EXISTS where etcd has documents of another cluster, or another proxy leads there; E_IN_DOUBT:
 * repeat it. */
int migration_run(struct proxy *p, const char *to, const char *prefix, struct error *err);

/* For a proxy with a shared metastore: the last state of the marked log in its directory, to serve
 * clients from until it hears more.  *out is NULL where there is none. */
int migration_last(const struct proxy *p, struct cluster_state **out, struct error *err);
/* The same, where it may still be taken along to the prefix that this proxy was given. */
int migration_source(const struct proxy *p, struct cluster_state **out, struct error *err);
/* Its documents are in the shared store now: the mark says so. */
void migration_finished(const struct proxy *p);
