/* Cold reads: what a bucket with a backend does not have here is read from there, while the client
 * waits for it.  (Writes: cold/write.c.)
 *
 *   GET ─▶ store ── miss ─▶ cold ─┬─ whole object ─▶ fetch: one for all who want it; stored while
 *                                 │                  it comes, read from the file as it grows
 *                                 └─ range, HEAD  ─▶ asked of the backend for this client alone
 *
 * One fetch.  However many clients want an object, one of the fetchers (threads that may wait)
 * reads it from the backend and puts it into the store (cold/fetch.c); clients read the file behind
 * it (cold/stream.c), each at its own speed, from the first byte on.  A client that leaves changes
 * nothing, unless it was the last and the backend is slow (cold/pace.c).  The object is visible
 * when it is whole: its length and, where the backend gives one, its checksum are right.  Until
 * then the last COLD_HELD_BYTES are kept from the clients, so that nothing short or damaged can
 * look complete: the connection is cut instead.  A body that breaks off is carried on where it
 * ended, by a range of the very same version (If-Match).  A large object may come in several ranges
 * at once (cold/ranges.h).
 *
 * Passed through (cold/pass.c): a range of an object that is not here, and whole objects where
 * there is no room to store them.  Of the latter the last piece is held back, too.
 *
 * Requests with conditions wait until the object is here, and are then answered as for any other;
 * but a range with If-Match, which is how a reading goes on, is asked of the backend.  The entity
 * tag of an object is the backend's own, cold or not.
 *
 * Threads: fetchers and askers block, HTTP threads do not.  Locks: the table's, then a fetch's;
 * neither is held while a request is answered. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "net/http/server.h"
#include "target/format/version.h"

struct bucket;
struct cluster_state;
struct cold;
struct http_client;
struct job_pace;
struct jobs;
struct object_call;
struct object_put;
struct target;

enum { COLD_HELD_BYTES = 64 * 1024 };

extern const struct http_route cold_list_routes[]; /* a page of the backend's names: cold/list.c */

/* An object that a job wants to be here, whatever clients want. */
struct cold_wanted {
    const struct bucket *bucket;
    const char *name;
    struct version
        replaces; /* what is here, where it is to be replaced; 0: nothing is, or it stays */
    /* Where it comes from: NULL, the bucket's backend; or any http(s) URL, and then the metadata
     * that is kept of it has `source` as OBJECT_SOURCE. */
    const char *url, *source;
    /* The map's placement by which earlier owners were asked, or there were none; 0: nobody need be
     * asked.  By a later one others may have written it meanwhile: then what is read is not kept.
     */
    uint64_t placed;
    /* How slowly, and until when: NULL, or the job's (job_pace.h).  A client that comes to want it
     * does not wait for that. */
    struct job_pace *pace;
    /* NULL: it becomes visible here.  Or who brings what has come to where it belongs, and ends the
     * put in any case; blocks. */
    int (*keep)(void *ctx, struct object_put *put, struct error *err);
    void *ctx;
};
/* Blocks (a job's thread) until it is here, whoever fetches it.  *bytes: what was fetched for this.
 */
int cold_bring(struct cold *c, const struct cold_wanted *wanted, uint64_t *bytes,
               struct error *err);

/* The state has changed: what is kept of lists for jobs that are over goes.  NULL is fine. */
void cold_list_forget(struct cold *c, const struct jobs *jobs);

/* Blocks (a job's thread): has the backend an object of this name? */
int cold_find(struct cold *c, const char *backend, const char *name, bool *there,
              struct error *err);

/* Buckets whose backends fail now (target/backend/outages.h); of the first one its name, and the
 * backend's server, cut where they are longer. */
struct cold_outages {
    uint64_t buckets;
    char bucket[64];
    char endpoint[256];
};
struct cold_outages cold_outages(const struct cold *c, const struct cluster_state *s);

int cold_new(struct target *t, struct cold **out, struct error *err);
/* For GETs from hosts that clients name (target/node/outward.h). */
struct http_client *cold_client(const struct cold *c);
/* Tries no more; what is asked of backends ends soon.  Before the servers wait for their requests.
 */
void cold_stop(struct cold *c);
void cold_free(struct cold *c); /* after the servers; NULL is fine */
