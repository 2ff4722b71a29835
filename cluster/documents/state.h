/* The cluster's documents, as one immutable snapshot.
 *
 *   smap     the nodes: who they are, where they listen, how they are
 *   bmd      the buckets and their properties
 *   config   cluster-wide settings (name -> text), changed at run time
 *   jobs     background jobs: spec, state, participants, outcome
 *   access   users, their keys, roles and grants; not there before the first of them
 *
 * The whole has a state version (term, version): the term grows with each election (each start of
 * the one primary), the version with each change, also from term to term.  The term's upper bits
 * are the epoch, which grows when an operator decides what is true (--import); see
 * state_check_history() and state_next_term().
 *
 * A snapshot never changes once built; holders count references.  A change is a command
 * (cluster/command/command.h) applied by a pure function to the previous snapshot; only the primary
 * proxy does that.  Everybody else gets snapshots as JSON and keeps the greatest it has seen.
 *
 * JSON form (state_to_json / state_from_json; also the form on disk; "format" is its version):
 *
 *   {"format": 1, "cluster": "c-9f…", "term": 1, "version": 7, "term_version": 1,
 *    "next_bucket_id": 3, "primary": "p1",
 *    "smap": {"version": 4, "nodes": [{"id": "t1", "role": "target", "state": "active",
 *             "public_url": "http://127.0.0.1:8081", "control_url": …, "data_url": …,
 *             "weight": 1024, "boot": "…", "since": 1700000000000,
 *             "lag": "missed", "missed_since": 6, "gone_since": 6, "absent_since": 7}],
 *             "placed": 3, "earlier": [ … see cluster/documents/layout.h … ], "lagged": 6},
 *    "bmd": {"version": 2, "buckets": [{"id": 1, "name": "b", "created": …, "props": {…}}]},
 *    "config": {"version": 1, "values": {…}},
 *    "jobs": {"version": 5, "jobs": [ … see cluster/documents/job.h … ]},
 *    "access": {"version": 2, "users": [ … see cluster/access/identity.h … ], "roles": […]}}
 *
 * Unknown fields are kept out but do not fail (a node one release newer sends them).  "format" is 3
 * where `access` is there: a release that does not know it would drop it, and refuses 3.  Otherwise
 * it is 2 where a bucket keeps more than one copy, and 1 where none does: a release that knows of
 * one owner only must not serve such a bucket, nor change the map without its lags, and refuses
 * 2. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/access/identity.h"
#include "cluster/documents/bmd.h"
#include "cluster/documents/bucket_refuse.h"
#include "cluster/documents/config.h"
#include "cluster/documents/jobs.h"
#include "cluster/documents/names.h"
#include "cluster/documents/smap.h"
#include "common/cleanup.h"
#include "common/error.h"

struct cluster_state {
    char *cluster_id;
    uint64_t term;
    uint64_t version;
    uint64_t term_version; /* the version with which the term began; 0: not known */
    uint64_t next_bucket_id;
    char *primary;     /* node id of the proxy that wrote this */
    uint64_t given_by; /* in memory alone: of the primary's build, see push_body.h; 0: not known */
    struct smap smap;
    struct bmd bmd;
    struct cluster_config config;
    struct jobs jobs;
    struct access access;
};

/* Does the bucket take no objects, since it is about to be destroyed?  A new term opens what an
 * earlier primary has closed. */
static inline bool state_bucket_is_closed(const struct cluster_state *s, const struct bucket *b)
{
    return b->closed != 0 && b->closed == s->term;
}

/* Was there such a bucket, and is there none any more?  A bucket of a later id is one that this
 * state does not know yet. */
static inline bool state_bucket_is_gone(const struct cluster_state *s, uint64_t id)
{
    return id < s->next_bucket_id && bmd_bucket_by_id(&s->bmd, id) == NULL;
}

struct cluster_state *state_new(const char *cluster_id); /* empty, version 0 of term 0 */
struct cluster_state *state_ref(const struct cluster_state *s);
void state_unref(const struct cluster_state *s);
static inline void state_unrefp(const struct cluster_state **s)
{
    if (*s != NULL)
        state_unref(*s);
}
#define _cleanup_state_ _cleanup_(state_unrefp)

/* A snapshot that begins as `s` with a version one greater.  It shares the sub-documents; a command
 * replaces those that it changes before the snapshot is published. */
struct cluster_state *state_next(const struct cluster_state *s);

int state_format(const struct cluster_state *s); /* "format" of its JSON */
/* E_UNSUPPORTED for a "format" of a later release, E_JSON where there is none. */
int state_format_check(json_t *doc, struct error *err);
json_t *state_to_json(const struct cluster_state *s);
int state_from_json(json_t *doc, struct cluster_state **out, struct error *err);
/* One of "state", "smap", "bmd", "config", "jobs", "access", for anybody who may see documents: as
 * above, but without the users' secrets and hashes of passwords.  NULL for another name. */
json_t *state_part_to_json(const struct cluster_state *s, const char *part);
/* <0, 0, >0: by term, then version. */
int state_compare(const struct cluster_state *a, const struct cluster_state *b);
/* Can a node that holds (term, version) have it from the past of `s`?  E_STALE_MAP, with what to
 * do, where it cannot: the primary's directory was put back to an earlier time, and what has
 * happened since would silently be undone.  A new epoch declares all that was before it past. */
int state_check_history(const struct cluster_state *s, uint64_t term, uint64_t version,
                        struct error *err);
/* Shall a node that holds `now` put `s` in its place?  0 and *newer; where that is false it has
 * this state already, or a later one.  E_WRONG_CLUSTER; E_STALE_MAP as above. */
int state_accept(const struct cluster_state *now, const struct cluster_state *s, bool *newer,
                 struct error *err);
/* The term of a primary that begins now, in the same epoch or the next one.  It holds the time in
 * milliseconds, so that no two lives of a directory have the same term, also when it is put back to
 * an earlier time in between; and it is greater than the last one whatever the clock says. */
uint64_t state_next_term(const struct cluster_state *s, int64_t wall_ms, bool next_epoch);

/* What must hold across the documents of any snapshot that comes from outside. */
int state_check(const struct cluster_state *s, struct error *err);
