/* The mark on an embedded metastore whose documents go, or went, to a shared one:
 * <dir>/metastore/moved.json.
 *
 *   {"format": 1, "metastore": "etcd://…", "prefix": "/dfc", "cluster": "c-…", "term": 7,
 *    "version": 42, "done": false}
 *
 * From the moment at which it stands there nothing is committed to the log, and no proxy starts as
 * the primary upon it.  (term, version) is the log's last state.  While `done` is false the shared
 * store may have nothing yet: a proxy that is elected there, and whose directory this is, takes the
 * documents along.  Once it is true the log is history, and nobody's source. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct moved {
    char *metastore;
    char *prefix;
    char *cluster;
    uint64_t term, version;
    bool done;
};

/* `dir` is the metastore's.  E_NOT_FOUND where there is no mark; *out needs moved_done(). */
int moved_read(const char *dir, struct moved *out, struct error *err);
int moved_write(const char *dir, const struct moved *m, struct error *err); /* durable */
int moved_remove(const char *dir, struct error *err);
void moved_done(struct moved *m);
/* E_EXISTS, with what to do instead, where there is a mark. */
int moved_refuse(const char *dir, struct error *err);
