/* A target: what its parts need of one another.
 *
 *   public listener ──▶ objects ──▶ store ──▶ mountpaths: files, indexes, disk threads
 *   data listener ────▶ list, sort's streams
 *   control listener ─▶ state pushes, orders to jobs
 *   control loop: member (register, keepalive, fetch) ──▶ workers: state_sync (take a state in)
 *   data loop: streams to other targets      sweeper: what was destroyed
 *
 * Rooms of target/ use what is theirs and what is below them: tests/layers.py knows the fields that
 * belong to rooms above this one (REACHED).  A new one is added there.
 *
 * Fields are set by target_start() in the order in which they stand here and do not change until
 * target_free(); what changes has a lock or a thread of its own. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "access/exposure.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/metrics.h"
#include "ec/read.h"
#include "io/loop.h"
#include "io/pool.h"
#include "net/client/client.h"
#include "net/http/server.h"
#include "target/disk/mountpaths.h"
#include "target/disk/space_refusals.h"
#include "target/store/object.h"
#include "target/node/params.h"

struct address_list;
struct appends;
struct archives;
struct batches;
struct unpackers;
struct auth;
struct last_use;
struct backend_endpoints;
struct back;
struct visitor_rules;
struct cold;
struct copies;
struct cold_fresh;
struct ec;
struct evictor;
struct exposure_gate;
struct daemon_sources;
struct direct_reader;
struct gateway;
struct guard;
struct witness;
struct health;
struct state_sync;
struct member;
struct notify;
struct quotas;
struct readiness;
struct renames;
struct rings;
struct sweeper;
struct tls;
struct upload_sweep;
struct uploads;
struct xactions;

struct target;

/* What rooms below that of slices ask of it. */
struct slices_hooks {
    /* The bytes of an object whose file is a manifest, in order: object_bytes.h. */
    int (*each)(struct target *t, uint64_t bucket_id, const struct object *o, ec_take_fn *take,
                void *ctx, struct error *err);
    /* A slice that was here is damaged, and moved aside. */
    void (*wanted)(struct target *t, uint64_t slices_bucket_id, const char *slice);
};

enum target_listener {
    LISTEN_PUBLIC,
    LISTEN_CONTROL,
    LISTEN_DATA,
    LISTEN_S3,
    LISTEN_ADMIN,
    LISTENERS
};

struct target {
    struct target_params params;
    const char *id; /* params.id */
    char boot[16];  /* id of this run, or of the first that asked to be let in (entry.h) */
    int ready_fd;   /* an eventfd: readable when target_readiness() may have changed */
    int lock_fd;    /* of params.dir: no other daemon uses it */
    metric_t *reads, *read_bytes, *reads_beside;
    struct daemon_sources *sources; /* of `params` */
    struct notify *notify;          /* main()'s, or NULL: no service manager listens */
    struct mountpaths *mountpaths;
    struct state_sync *state_sync; /* takes in the cluster's documents */
    struct state_holder *state;    /* the last one seen; state_sync's */
    struct auth *auth;             /* proof of membership, asked for and given */
    struct tls *tls;               /* of the public listener; NULL: plain HTTP */
    struct witness *witness;       /* NULL: no audit log */
    struct guard *guard;           /* of the public listener, with EXPOSURE_AUTH; else NULL, … */
    struct exposure_gate *gate;    /* … and this */
    struct space_limits space;
    struct space_refusals space_refusals;
    struct address_list *allow;          /* params.backend_allow */
    struct backend_endpoints *endpoints; /* params.backend_endpoints */
    struct visitor_rules *visitors;      /* params.allowed_hosts, allowed_origins */
    enum exposure exposure;              /* params.public_auth, anonymous */
    struct object_env object_env;
    struct object_store *store;
    struct quotas *quotas; /* of buckets */
    struct pool *workers;  /* for requests that wait for something */
    struct loop *control;  /* membership; never bulk data */
    struct loop *data;     /* streams between targets */
    struct http_client *control_client;
    struct http_client *data_client;
    struct hashers *hashers;      /* MD5 of what is being written (store/file_md5.h) */
    struct pool *movers;          /* renames, which may take long */
    struct renames *renames;      /* one of a name at a time */
    struct pool *handers;         /* uploads that another owner takes by now (hand_on.h) */
    struct pool *sort_readers;    /* records of sorts for other targets */
    struct object_copier *copier; /* of renames */
    struct copies *copies;        /* of buckets with several */
    struct unrecoverable *unrecoverable;
    struct ec *ec;                          /* of those with objects in slices */
    const struct slices_hooks *slices;      /* its own */
    struct cold *cold;                      /* reads from the backends of buckets */
    struct back *back;                      /* uploads to them what was written here */
    struct cold_fresh *fresh;               /* asks them whether what is here is theirs still */
    struct archives *archives;              /* indexes of their members */
    struct appends *appends;                /* members that are put into archives */
    struct batches *batches;                /* many objects in one reply */
    struct unpackers *unpackers;            /* members of compressed archives */
    struct last_use *last_use;              /* when objects of buckets with a backend were used */
    struct evictor *evictor;                /* makes room for them */
    struct xactions *xactions;              /* background jobs */
    struct health *health;                  /* takes bad disks out */
    struct sweeper *sweeper;                /* removes destroyed buckets and old tombstones */
    struct uploads *uploads;                /* in parts */
    struct upload_sweep *upload_sweep;      /* removes those that nobody completes */
    struct rings *rings;                    /* of samples */
    struct gateway *gateway;                /* for S3 requests … */
    struct direct_reader *direct;           /* … which read at other targets */
    struct http_server *servers[LISTENERS]; /* LISTEN_S3, LISTEN_ADMIN may be NULL … */
    char *urls[LISTENERS];                  /* … and so its URL; as others reach them */
    struct member *member;                  /* registration, keepalives, fetching the state */
    _Atomic uint64_t shown_roster;          /* the generation that the gauges have (gauges.h) */
    atomic_bool serving;                    /* all of the above stands */
    atomic_bool is_full;                    /* a disk takes no more, said the last look */
    atomic_bool leaving;                    /* it stops, and is not to be sent anything new */
};

/* Checks the parameters that have rules among themselves.  Takes what `params` holds. */
int target_new(struct target_params *params, struct target **out, struct error *err);
/* Opens the mountpaths (which may rebuild indexes), listens, begins to register.  Objects are
 * served from the moment that there is a state: t->ready_fd. */
int target_start(struct target *t, struct error *err);
/* `synced`: and has what it missed (readiness.h). */
void target_readiness(struct target *t, bool synced, struct readiness *out);
void target_ready_changed(struct target *t); /* it may have: t->ready_fd */
/* Lets requests that are under way end, stops jobs, closes everything.  Also after a failed
 * start. */
void target_free(struct target *t);

/* The target's route tables: NULL-terminated. */
extern const struct http_route *const target_routes[];
