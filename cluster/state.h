/* The cluster's documents, as one immutable snapshot.
 *
 *   smap     the nodes: who they are, where they listen, how they are
 *   bmd      the buckets and their properties
 *   config   cluster-wide settings (name -> text), changed at run time
 *   jobs     background jobs: spec, state, participants, outcome
 *
 * The whole has a state version (term, version): the term grows with each election (each start of
 * the one primary), the version with each change, also from term to term.  The term's upper bits
 * are the epoch, which grows when an operator decides what is true (--import); see
 * state_check_history() and state_next_term().
 *
 * A snapshot never changes once built; holders count references.  A change is a command
 * (cluster/command.h) applied by a pure function to the previous snapshot; only the primary proxy
 * does that.  Everybody else gets snapshots as JSON and keeps the greatest it has seen.
 *
 * JSON form (state_to_json / state_from_json; also the form on disk; "format" is its version):
 *
 *   {"format": 1, "cluster": "c-9f…", "term": 1, "version": 7, "term_version": 1,
 *    "next_bucket_id": 3, "primary": "p1",
 *    "smap": {"version": 4, "nodes": [{"id": "t1", "role": "target", "state": "active",
 *             "public_url": "http://127.0.0.1:8081", "control_url": …, "data_url": …,
 *             "weight": 1024, "boot": "…", "since": 1700000000000,
 *             "lag": "missed", "missed_since": 6, "gone_since": 6, "absent_since": 7}],
 *             "placed": 3, "earlier": [ … see cluster/layout.h … ], "lagged": 6},
 *    "bmd": {"version": 2, "buckets": [{"id": 1, "name": "b", "created": …, "props": {…}}]},
 *    "config": {"version": 1, "values": {…}},
 *    "jobs": {"version": 5, "jobs": [ … see cluster/job.h … ]}}
 *
 * Unknown fields are kept out but do not fail (a node one release newer sends them).  "format" is 2
 * where a bucket keeps more than one copy, and 1 otherwise: a release that knows of one owner only
 * must not serve such a bucket, nor change the map without its lags, and refuses 2. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/error.h"

enum node_role { NODE_PROXY, NODE_TARGET };
/* active: takes part.  unreachable: committed as not answering; an owner in this state gives 503
 * for its objects.  maintenance: owns nothing, what it has is moved off, and it may come back.
 * decommissioning: the same, and when it has nothing any more it leaves the map. */
enum node_state { NODE_ACTIVE, NODE_UNREACHABLE, NODE_MAINTENANCE, NODE_DECOMMISSIONING };
/* How far a target's copies may be behind those of others: cluster/owners.h says what follows from
 * it, cluster/lag.h how it comes and goes. */
enum node_lag { LAG_NONE, LAG_RESTARTED, LAG_MISSED };

struct node {
    const char *id; /* "t1": unique, permanent; [a-zA-Z0-9_.-]{1,63} */
    enum node_role role;
    enum node_state state;
    const char *public_url; /* "http://127.0.0.1:8081", without a trailing slash */
    const char *control_url;
    const char *data_url;
    uint32_t weight;  /* capacity weight for HRW; 1024 is one unit */
    uint64_t seed;    /* HRW seed: xxh3-64 of the id */
    const char *boot; /* id of this run of the daemon */
    int64_t since_ms; /* wall time of the last change of state */
    enum node_lag lag;
    uint64_t missed_since; /* with LAG_MISSED: the state's version from which on writes went without
                            * it; 0: it may lack anything */
    uint64_t gone_since;   /* while it is not active: the state's version that made it so */
    /* 0, or the version since which buckets with several copies pass it over though its state does
     * not say so: some of its mountpaths are not to be had, or it left in order and does not
     * answer. */
    uint64_t absent_since;
};

struct document; /* the memory of one sub-document, shared by the snapshots that hold it */

/* Who owned by an earlier map, as far as HRW must know: cluster/layout.h. */
struct layout_member {
    const char *id;
    uint32_t weight;
    uint64_t seed;
};
struct layout {
    uint64_t number; /* smap.placed of that map */
    size_t count;
    struct layout_member *members; /* sorted by id */
};

struct smap {
    uint64_t version;
    size_t count;
    struct node *nodes;   /* sorted by id */
    uint64_t placed;      /* the version with which the present set of owners began */
    size_t earlier_count; /* sets of owners by which objects may still lie, oldest first */
    struct layout *earlier;
    uint64_t lagged; /* the state's version with which a target last fell behind, or came back so */
    struct document *memory;
};

enum durability { DURABILITY_SYNC, DURABILITY_ASYNC };
/* Of the owners that the map does not pass over, who must have a write before it is acknowledged.
 */
enum write_quorum { WRITE_ALL, WRITE_MAJORITY };
/* Who answers reads: the acting owner alone, or whichever has all that was acknowledged. */
enum read_from { READ_ACTING, READ_ANY };

enum { COPIES_MAX = 8, EC_DATA_SLICES_MAX = 32 };
#define EC_MIN_SIZE_DEFAULT (UINT64_C(1) << 20)

/* What becomes of writes to a bucket with a backend. */
enum write_policy {
    WRITE_POLICY_NONE,    /* they are refused */
    WRITE_POLICY_THROUGH, /* the backend has them before they are answered */
    WRITE_POLICY_BACK,    /* they are uploaded later */
};

/* When is the backend asked whether it still has what is kept here? */
enum validate_mode { VALIDATE_NEVER, VALIDATE_OPEN, VALIDATE_INTERVAL, VALIDATE_MODES };

/* Does a ranged read of what is not here bring the whole, too? */
enum range_fetch { RANGE_FETCH_SIZE, RANGE_FETCH_NEVER, RANGE_FETCH_ALWAYS, RANGE_FETCHES };

struct bucket_props {
    uint32_t copies; /* 1 … COPIES_MAX, on as many targets */
    uint32_t ec_data,
        ec_parity; /* 0, or objects above ec_min_size are in slices, `copies` of what says so */
    uint64_t ec_min_size;
    enum write_quorum write_quorum;
    enum read_from read_from;
    enum durability durability;
    enum checksum_type checksum; /* computed for every object; default xxh3 */
    bool verify_on_read;
    const char
        *backend; /* NULL, or where what is not here is read from: a URL (cluster/backend.h) */
    bool lru_off; /* with a backend: its objects are not evicted … */
    uint64_t lru_min_age_ms;        /* … or not before they have been unused for so long */
    enum write_policy write_policy; /* with a backend */
    enum validate_mode validate;
    uint64_t validate_interval_ms;
    bool stale_off; /* what the backend cannot be asked about is not served … */
    enum range_fetch range_fetch;
};

struct bucket {
    uint64_t id;      /* never used twice in the life of the cluster */
    const char *name; /* [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62} */
    int64_t created_ms;
    struct bucket_props props;
    /* How many of the owners, in rank, have what was there when `copies` was raised: all, but until
     * a repair has filled the others.  `raised`: the bmd's version of that. */
    uint32_t filled;
    uint64_t raised;
    /* From how many `copies` was lowered, where targets may still have what they do not own any
     * more, or 0; `lowered`: the bmd's version of that (cluster/lower.h). */
    uint32_t lowered_from;
    uint64_t lowered;
};

struct bmd {
    uint64_t version;
    size_t count;
    struct bucket *buckets; /* sorted by name */
    struct document *memory;
};

struct config_value {
    const char *name;
    const char *text;
};
struct cluster_config {
    uint64_t version;
    size_t count;
    struct config_value *values; /* sorted by name */
    struct document *memory;
};

struct job; /* cluster/job.h */
struct jobs {
    uint64_t version;
    size_t count;
    struct job **jobs; /* in order of creation; each reference-counted and immutable */
    struct document *memory;
};

struct cluster_state {
    char *cluster_id;
    uint64_t term;
    uint64_t version;
    uint64_t term_version; /* the version with which the term began; 0: not known */
    uint64_t next_bucket_id;
    char *primary; /* node id of the proxy that wrote this */
    struct smap smap;
    struct bmd bmd;
    struct cluster_config config;
    struct jobs jobs;
};

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
json_t *state_to_json(const struct cluster_state *s);
int state_from_json(json_t *doc, struct cluster_state **out, struct error *err);
/* One of "state", "smap", "bmd", "config", "jobs", in the form that it has there; NULL for another
 * name. */
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

const struct node *smap_node(const struct smap *m, const char *id); /* or NULL */
size_t smap_count(const struct smap *m, enum node_role role, enum node_state state);
/* Is it one of those that objects are placed on? */
bool node_owns(const struct node *n);
/* Does it take part, or can it at least be asked, where others have the same (buckets with several
 * copies)? */
bool node_is_present(const struct node *n);
/* The owners of (bucket, object): the `n` highest-weighted targets that are active or unreachable
 * (those in maintenance or decommissioning own nothing), best first.  Returns how many there are
 * (<= n). */
size_t smap_owners(const struct smap *m, uint64_t bucket_id, const char *object, size_t n,
                   const struct node **out);
const struct bucket *bmd_bucket(const struct bmd *b, const char *name); /* or NULL */
const struct bucket *bmd_bucket_by_id(const struct bmd *b, uint64_t id);
#define BUCKET_PROPS_DEFAULT \
    ((struct bucket_props){.copies = 1, .durability = DURABILITY_SYNC, .checksum = CHECKSUM_XXH3})
json_t *bucket_props_to_json(const struct bucket_props *p);
/* Fields that are absent keep their value in *p, so that it can be a default or the old value.
 * p->backend is borrowed from the document; given as an object it becomes a URL there. */
int bucket_props_from_json(json_t *doc, struct bucket_props *p, struct error *err);
/* What this release does not do: E_UNSUPPORTED; what no release does: E_INVALID. */
int bucket_props_check(const struct bucket_props *p, struct error *err);
/* E_UNSUPPORTED where the bucket has a backend: `what` cannot be done with such a one yet. */
int bucket_refuse_cold(const struct bucket *b, const char *what, struct error *err);
/* Is what is written to it kept here first, and sent to its backend later? */
bool bucket_is_written_back(const struct bucket *b);
/* E_UNSUPPORTED for what jobs make: of buckets with a backend those take it that are written back.
 */
int bucket_refuse_made(const struct bucket *b, const char *what, struct error *err);
/* E_UNSUPPORTED where a majority of the owners is enough for a write: `what` takes one target's
 * word for what there is. */
int bucket_refuse_majority(const struct bucket *b, const char *what, struct error *err);
/* E_UNSUPPORTED where the bucket has a backend that is only read from. */
int bucket_refuse_write(const struct bucket *b, const char *what, struct error *err);
const char *write_policy_name(enum write_policy p);
json_t *bucket_to_json(const struct bucket *b);
/* One node, as it stands in the smap and as it registers; `path` goes before the fields' names in
 * messages ("" at the top).  Texts are copied into the arena. */
json_t *node_to_json(const struct node *n);
int node_from_json(json_t *doc, const char *path, struct arena *a, struct node *out,
                   struct error *err);
/* Everything but state and since: what a node says of itself. */
bool node_same_spec(const struct node *a, const struct node *b);
const char *config_get(const struct cluster_config *c, const char *name); /* or NULL */
const struct job *jobs_find(const struct jobs *j, const char *id);        /* or NULL */

int bucket_name_check(const char *name, struct error *err);
/* 1..1024 bytes of UTF-8 without NUL.  Nothing else is special: "..", "/", "a//b" are names. */
int object_name_check(const char *name, size_t len, struct error *err);
int node_id_check(const char *id, struct error *err);
int node_join_check(const char *join, struct error *err); /* URLs of --join, none, one or several */

/* Does it keep more than one copy of each object, or may there be more than it keeps?  Then its
 * objects are written and read through the owner that acts. */
bool bucket_has_copies(const struct bucket *b);
/* Does any bucket? */
bool bmd_has_copies(const struct bmd *b);
const char *node_lag_name(enum node_lag l);
int node_lag_from_name(const char *name, enum node_lag *l, struct error *err);
const char *write_quorum_name(enum write_quorum q);
const char *read_from_name(enum read_from f);
const char *node_role_name(enum node_role r);
int node_role_from_name(const char *name, enum node_role *r, struct error *err);
const char *node_state_name(enum node_state s);
int node_state_from_name(const char *name, enum node_state *s, struct error *err);
const char *durability_name(enum durability d);
int durability_from_name(const char *name, enum durability *d, struct error *err);

/* The holder of the current snapshot in a daemon: readers take a reference without waiting for a
 * writer's work; the writer swaps. */
struct state_holder;
struct state_holder *state_holder_new(struct cluster_state *initial); /* takes the reference */
void state_holder_free(struct state_holder *h);
const struct cluster_state *state_current(struct state_holder *h); /* a reference; unref it */
/* Swaps if `s` is greater than the current one (takes a reference then). */
bool state_advance(struct state_holder *h, const struct cluster_state *s);
