/* Copying one object to another name: the bytes go to the new name's owner, over the intra-data
 * network where that is another target, are verified there with the checksum that the original was
 * stored with, and get the version that the owner decides.  Content type and user metadata go
 * along. What is in slices is read from them (object_bytes.h), and is cut anew where the new name's
 * bucket does so.
 *
 *   owner is this target:    a put of the store, which shares the original's bytes where the file
 *                            system can (XFS, btrfs)
 *   another:                 PUT /v1/objects/{bucket}/{object} at its data listener, with
 *                              Dfc-Copy: <term>.<version>   the rule (copy_rule.h), or
 *                              Dfc-Copy: durable            on the disk before the reply, always
 *                              Dfc-Copy: move               the object itself, with its version
 *                                                           (rebalance.h)
 *                              Dfc-Copy: hollow             the same without its bytes (hollow.h)
 *                              Dfc-Copy: stage              bytes not visible yet (staged.h)
 *                              Dfc-Copy: upload             a client's, which came in parts
 *                              Dfc-Copy: made               of no other object (object_make.h)
 *                              Dfc-Copy: made-durable       the same, and on the disks before the
 *                                                           reply, always; earlier builds refuse
 *                              Dfc-Copy: ring               a head (target/ring/keep.h)
 *
 * The owner of a bucket with several copies is the one that acts (cluster/placement/owners.h); it
 * gets its copy by a call, too, where it is this target.
 *
 * Whatever may be different a moment later (the owner does not answer, or has another map) is said
 * by object_copy_may_pass(): the caller tries again.
 *
 * Any thread that may wait.  A copier is shared by any number of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "ec/read.h"
#include "target/store/object.h"

#define OBJECT_COPY_HEADER "Dfc-Copy"
#define OBJECT_COPY_DURABLE "durable"
#define OBJECT_COPY_MOVE "move"     /* with Dfc-Version, and: */
#define OBJECT_COPY_HOLLOW "hollow" /* a move without its bytes (hollow.h) */
#define OBJECT_COPY_STAGE "stage"   /* with Dfc-Stage */
#define OBJECT_COPY_UPLOAD "upload" /* the end of an upload in parts (uploads/complete.h) */
#define OBJECT_COPY_MADE "made"     /* an object that a job makes (object_make.h) */
#define OBJECT_COPY_MADE_DURABLE "made-durable"
#define OBJECT_COPY_RING "ring" /* a ring's head, by its keeper */
#define OBJECT_STAGE_HEADER "Dfc-Stage"
/* With it: the leader computes ATTR_MD5, and so does the other owner. */
#define OBJECT_STAGE_MD5_HEADER "Dfc-Stage-Md5"
/* The same of OBJECT_SUM: which one. */
#define OBJECT_STAGE_SUM_HEADER "Dfc-Stage-Sum"
/* With it: the bytes are on the disk when they are committed, whatever the bucket's durability. */
#define OBJECT_STAGE_DURABLE_HEADER "Dfc-Stage-Durable"
#define OBJECT_MODIFIED_HEADER "Dfc-Modified"   /* milliseconds since 1970 */
#define OBJECT_TOMBSTONE_HEADER "Dfc-Tombstone" /* "true", or it is not there */
#define OBJECT_PENDING_HEADER "Dfc-Pending"     /* the same: the backend does not have it yet */
#define HIDDEN_JOB_HEADER "Dfc-Job"             /* with a move: hidden by this job's attempt … */
#define HIDDEN_ATTEMPT_HEADER "Dfc-Attempt"     /* … and which (hidden.h) */

struct arena;
struct http_call;
struct object_copier;
struct target;

struct object_copier *object_copier_new(struct target *t);
/* Ends all copies that are under way, and later ones, with E_ABORTED. */
void object_copier_stop(struct object_copier *c);
void object_copier_free(struct object_copier *c); /* none is under way */

struct object_copy {
    const struct object *from; /* open */
    uint64_t from_bucket_id;   /* of it; where it moves nobody asks */
    uint64_t bucket_id;        /* of the new name, … */
    const char *name;          /* … the new name */
    /* With a rule E_NOT_MODIFIED or E_PRECONDITION may come of it; without, the copy always takes
     * the name's place, and is on the disk afterwards whatever the bucket's durability. */
    bool has_rule;
    uint64_t term, version; /* the rule's */
    bool
        moves; /* to the name's owner, another target, as it is: E_NOT_MODIFIED where that has it */
    bool is_new;    /* no other object's copy: all of its metadata is its own */
    const char *to; /* NULL, or to this target */
    const char
        *job_id; /* with `moves`: NULL, or hidden there, too, by this job's attempt (hidden.h) */
    uint64_t attempt;
};

/* E_BUCKET_NOT_FOUND; E_CHECKSUM where the original's bytes are damaged; E_NO_SPACE,
 * E_OBJECT_RESERVED, E_HASH_COLLISION of the new name. */
int object_copy(struct object_copier *c, const struct object_copy *copy, struct error *err);
bool object_copy_may_pass(int code);

/* The header line (http_call.headers) of an object's type; NULL: it was stored without one. */
const char *object_type_line(struct arena *a, const char *content_type);

/* Would the bucket's backend take the metadata that a copy of this object has?  There may be some
 * that it has got by other ways. */
bool object_copy_is_taken(const struct bucket *b, const struct attr *a);

/* The target to which a name's copies go.  E_NO_TARGETS, E_NODE_UNREACHABLE. */
int object_copy_owner(const struct cluster_state *s, const struct bucket *b, const char *name,
                      const struct node **owner, struct error *err);
/* What another target has answered, beside the outcome. */
struct copier_reply {
    int status; /* 0: nothing */
    struct buf body;
    char etag[80]; /* "": none */
};

/* A call to another target, or this one, that ends with the copies; waiting.  reply: or NULL.
 * E_STALE_MAP: the target redirects to another owner. */
int object_copier_call(struct object_copier *c, const struct http_call *call,
                       struct copier_reply *reply, struct error *err);
/* Gives the body to take(), piece by piece, and ends where that fails. */
typedef int copier_feed_fn(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err);
/* The same with call->upload_length bytes of feed(). */
int object_copier_stream(struct object_copier *c, struct http_call *call, copier_feed_fn *feed,
                         void *ctx, struct copier_reply *reply, struct error *err);
