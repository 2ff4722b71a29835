/* What the files of cold reads share; nobody else includes this. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/metrics.h"
#include "net/http/body_pace.h"
#include "target/backend/exchange.h"
#include "target/node/call.h"
#include "target/cold/cold.h"
#include "target/node/outward.h"
#include "target/node/target.h"
#include "target/store/name_table.h"

enum {
    COLD_SLOTS = 1024,
    COLD_PIPE_BYTES = 1 << 20,
    COLD_PIECE_BYTES = 256 << 10,
};

/* Threads that wait for backends; those that wait for one server are a part of them (io/shares.h).
 */
struct cold_threads {
    struct pool *pool;
    struct shares *shares;
};
/* `backend`: the bucket's URL, whose server is waited for. */
int cold_submit(const struct cold_threads *t, const char *backend, void (*fn)(void *arg), void *arg,
                struct error *err);

struct cold {
    struct target *target;
    struct loop *loop;          /* of the connections to backends */
    struct outward outward;     /* where the client may connect to */
    struct http_client *client; /* of hosts that clients name */
    struct http_client *asker;  /* of those that this node's environment names: metadata services */
    struct exchange_env env;
    struct cold_threads fetchers; /* each runs one fetch at a time */
    struct cold_threads askers;   /* for ranges and HEAD: until the head of the answer has come */
    atomic_uint_fast64_t range_memory;
    struct pool *writers;     /* each runs the writes to one name (cold/write.c) */
    struct name_queue *turns; /* of the writers */
    struct list_pages *pages; /* of lists, for jobs (cold/list.c) */
    pthread_mutex_t lock;     /* of what follows */
    pthread_cond_t changed;
    bool stopping;
    struct name_table fetches; /* those under way */
    struct cold_watch *watches;
    metric_t *stored, *failed, *bytes, *passed, *written, *not_written;
};

/* Who wants to know whether a name was written, by whatever way of this target's, since it began to
 * watch: the backend's entity tag does not tell that where the same bytes came again. */
struct cold_watch {
    struct cold_watch *next;
    uint64_t bucket_id;
    const char *name;
    bool written;
};

void cold_watch_begin(struct cold *c, struct cold_watch *w);
void cold_watch_end(struct cold *c, struct cold_watch *w);
bool cold_watch_saw(struct cold *c, const struct cold_watch *w);

bool cold_is_stopping(struct cold *c);
/* As for one that is not here; the bucket has a backend. */
void cold_serve(struct object_call *call);

/* --- a fetch: cold/fetch.c -------------------------------------------------------------------- */

enum fetch_state {
    FETCH_WAITS,   /* nothing has come */
    FETCH_STORING, /* the file grows: facts, fd, reader are there */
    FETCH_WHOLE,   /* it is in the store */
    FETCH_FAILED,
    FETCH_NO_ROOM, /* it cannot be stored: everybody for himself */
};

struct cold_stream;

struct fetch {
    struct name_entry entry;
    struct cold *cold;
    atomic_uint refs;
    uint64_t bucket_id;
    char *bucket, *name, *backend;
    enum durability durability;
    enum checksum_type checksum;
    struct version replaces; /* what is here of this version or an earlier one does not count */
    uint64_t placed;         /* as wanted (cold.h) */
    char *url, *source;      /* of a download, or NULL */
    struct job_pace *pace;   /* of the job that has begun it, or NULL */
    int (*keep)(void *ctx, struct object_put *put, struct error *err); /* as wanted */
    void *ctx;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    enum fetch_state state;
    struct waiter *waiters;       /* calls that nothing was replied to */
    struct cold_stream *sleepers; /* streams that want to be woken */
    unsigned readers;             /* streams */
    struct backend_facts facts;
    int fd;
    struct reader *reader;
    uint64_t stored;
    struct error err;
    atomic_bool overtaken; /* the name is being written: what it reads is not kept */
};

/* The name is about to be written, or has just been: who reads it from the backend does not keep
 * it, and who watches it is told.  Once this has returned no such fetch becomes the object. */
void fetch_overtake(struct cold *c, uint64_t bucket_id, const char *name);

/* The call gets its answer from the fetch of its object, which may begin with this; NULL: nobody
 * waits, the object is to be here.  `patient`: when it is here. */
void fetch_join(struct cold *c, const struct object_call *names, struct object_call *call,
                bool patient);
void fetch_unref(struct fetch *f);
bool fetch_is_unwanted(struct fetch *f); /* by clients */
/* Begins the replies of those who wait and can have one. */
void fetch_serve_waiters(struct fetch *f);

/* --- how fast it comes: cold/pace.c -------------------------------------------------------------
 */

/* Of what comes: for all who wait, and where nobody does. */
struct cold_pace {
    struct body_pace least, left;
};
/* What follows is late for other reasons than the backend's. */
void cold_pace_pause(struct cold_pace *pace);
/* Of a job's: waits until so many bytes are paid for.  False: the job that wanted it has ended, and
 * nobody else wants it. */
bool cold_pace_wait(struct fetch *f, struct cold_pace *pace, size_t bytes);
/* So many bytes have come: E_BACKEND_TIMEOUT where that is too slow, the more so if nobody waits.
 */
int cold_pace_check(struct fetch *f, struct cold_pace *pace, size_t bytes, struct error *err);

/* --- a client that reads what is stored: cold/stream.c ---------------------------------------- */

/* Takes a reference over. */
void cold_stream_reply(struct fetch *f, struct object_call *call);
/* With the fetch's lock held. */
void cold_stream_wake_all(struct fetch *f);

/* --- a client for itself: cold/pass.c --------------------------------------------------------- */

void cold_pass(struct cold *c, struct object_call *call); /* submits to the askers */
/* The headers that a reply has from the backend. */
void cold_put_headers(struct http_request *req, const struct backend_facts *facts);
/* The request's conditions against what the backend has; facts NULL: nothing. */
int cold_check_conditions(const struct object_call *call, const struct backend_facts *facts,
                          struct error *err);
/* What the backend has of the call's object; 0 also where there is none: then *there is false. */
int cold_ask_head(const struct object_call *call, bool *there, struct backend_facts *facts,
                  struct error *err);
int cold_ask_head_of(struct cold *c, const char *backend, const char *name, bool *there,
                     struct backend_facts *facts, struct error *err);
/* Of writes (cold/write.c), in the turn of their name.  E_NOT_READY where what is here waits for
 * the backend; call->earlier is known. */
int cold_check_pending(const struct object_call *call, struct error *err);
/* A tombstone takes the place of what is here, on the disk when this returns.  *was: there was
 * something. */
int cold_hide(struct object_call *call, bool *was, struct error *err);

/* Is there one range, to be asked of the backend?  Its text; E_INVALID, E_RANGE. */
enum { COLD_RANGE_MAX = 64 };
int cold_pick_range(const struct object_call *call, bool *ranged, char text[static COLD_RANGE_MAX],
                    struct error *err);
