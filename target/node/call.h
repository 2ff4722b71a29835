/* A call for one object on its way through the target: who asks, for what, and whether we may
 * answer (admit.h).
 *
 * Lives in the request's arena and as long as the request. */
#pragma once

#include "cluster/documents/state.h"
#include "net/http/server.h"
#include "target/node/admit.h"
#include "target/node/quotas.h"
#include "target/store/copy_rule.h"
#include "target/store/object.h"

struct source;
struct target;
struct object_call;
struct write_path;
struct shard;

/* Of a write with conditions: see object_call_check_conditions(). */
#define OBJECT_MISSING_HEADER "Dfc-Missing"

enum { THROUGH_TRIES = 4 };

/* A GET or HEAD; also what a rename reads. */
struct call_read {
    bool validated;          /* the backend need not be asked (cold/fresh.h) */
    struct version replaces; /* what is here is this, and not what the backend has; 0: nothing is */
    bool holder;             /* of a peer: for what we hold, whoever owns it */
    bool beside; /* a read that this target answers beside the one that acts, or sends on to that */
    bool compared; /* with the other owners, of a bucket with several copies (copies.h) … */
    /* … and how often one of them was asked for its bytes, for which there is no room here … */
    unsigned through_tries;
    struct version upto; /* … who have as much, where a majority is enough for a write */
    bool doubted;        /* what is here seems damaged or lost: it is checked first … */
    bool checked;        /* … and was */
    void (*here)(struct object_call *call); /* where it goes on that found it here after all */
    size_t miss_at;                         /* nothing was found: the next source (miss.h) */
    struct shard *shard;                    /* a reference: the index that it waited for … */
    unsigned shard_tries;                   /* … so often (archive/member_read.h) */
    uint64_t member_offset, member_size;    /* of the member, in the archive; packed: offset 0 */
    bool packed;                            /* the archive is */
};

/* What sends a PUT, and as what (put_spec.h). */
enum put_kind {
    PUT_CLIENT, /* a client: a write; the end of one in parts; what a job makes (object_make.h) */
    PUT_JOB,    /* another target's job: a write */
    PUT_STAGE,  /* the leader of the name: bytes that wait for its word */
    PUT_MOVE,   /* another owner: the object as it is */
    PUT_HOLLOW, /* another owner: the object without its bytes */
};

struct call_put {
    enum put_kind kind;
    struct copy_rule rule;    /* of PUT_JOB: what it may take the place of */
    bool in_parts;            /* of PUT_CLIENT: another target has put it together */
    bool passes;              /* another target leads the name: the request is sent on */
    bool appends;             /* of PUT_CLIENT: the body has members of an archive */
    bool renames;             /* of PUT_JOB: the copy is the new name of an object */
    struct quota_claim claim; /* of what the write adds to its bucket */
    struct object_put *put;   /* all its bytes, while the write waits for its turn */
};

struct call_delete {
    bool wants_turn;   /* it met a rename of its object … */
    bool has_turn;     /* … and waited for its turn (renames.h) */
    unsigned repeated; /* since owners have changed under it */
};

struct call_rename {
    const char *new_name;
    bool copied;           /* it has what the old one had */
    struct source *source; /* of a copy within the backend (cold/rename.h) */
};

/* What every call has, and what one verb needs: the others' are zero. */
struct object_call {
    unsigned magic;
    struct http_request *req;
    struct target *target;
    const struct cluster_state *state; /* a reference, dropped when the request ends */
    const struct bucket *bucket;       /* the state's */
    const char *name;
    bool refreshed;
    bool begins_upload; /* in parts */
    void (*serve)(struct object_call *call);
    const struct write_path *path;     /* how the bucket keeps the object; set by admission */
    struct object_condition condition; /* of a PUT or DELETE: asked when it is its turn */
    object_done_fn *done;              /* … and what replies to it; arg is the call */
    bool asked;                        /* the earlier owners (earlier_owners.h) … */
    struct object_held earlier;        /* … and what they have */
    struct call_read read;
    struct call_put put;
    struct call_delete del;
    struct call_rename rename;
};

struct object_call *object_call_new(struct http_request *req);
/* Asks for admission.  Refusals and redirects have been replied to; with ADMIT_SERVE the bucket is
 * set; with ADMIT_REFRESH the caller has a newer state fetched and asks again. */
enum admit_verdict object_call_admit(struct object_call *call);

/* Does the sender of an intra-cluster request (dfcv in its query) know a later state than we do?
 * Then jobs may have begun or committed that we do not know of: member_refresh() comes first. */
int sender_is_ahead(const struct http_request *req, bool *ahead, struct error *err);
/* Does it know the present owners, or later ones?  Else E_STALE_MAP. */
int sender_knows_owners(const struct http_request *req, struct error *err);

/* begin() of calls without a body: admits (waiting for a newer state where that is needed) and
 * calls serve(), in an HTTP thread or a worker, which replies. */
void object_call_run(struct http_request *req, void (*serve)(struct object_call *call));
/* The same for a call whose body has been read, made by object_call_new(). */
void object_call_start(struct object_call *call, void (*serve)(struct object_call *call));

/* What this target has of the object: object_look(). */
int object_call_look(const struct object_call *call, struct object_held *out, struct error *err);
/* Is it a PUT of what every owner has, rather than a write? */
static inline bool object_call_is_copy(const struct object_call *call)
{
    return call->put.kind >= PUT_STAGE;
}
/* Is it a client's GET or HEAD? */
bool object_call_is_read(const struct object_call *call);
/* Does it ask for members of an archive, and not for the object? */
bool object_call_wants_members(const struct object_call *call);
/* Does it ask for what this target makes of all the bytes: members, or a digest? */
bool object_call_wants_made(const struct object_call *call);
/* Replies with a redirect to `owner`, by that state. */
void object_call_redirect(const struct object_call *call, const struct cluster_state *s,
                          const struct bucket *bucket, const struct node *owner);
/* Replies with "what 'bucket/name': error", and logs what is this node's fault. */
void object_call_fail(const struct object_call *call, const char *what, struct error *err);
struct attr;
enum { OBJECT_ETAG_MAX = 320 };
/* The entity tag, quotes included: the version's, or the one that the bucket's backend gave it. */
void object_call_etag(const struct object_call *call, const struct attr *a,
                      char out[static OBJECT_ETAG_MAX]);
/* The MD5 that S3 clients see as entity tag, in hex, or NULL: the bucket has a backend, or none was
 * computed. */
const char *object_call_md5(const struct object_call *call, const struct attr *a);
/* Have the owners been the same since the call was admitted?  Else E_STALE_MAP: what earlier owners
 * said then may hold no longer, though this target owns the name now as it did then.  For who
 * writes, under the name's lock.  0 where the call's path sees to its owners itself. */
int object_call_check_owners(const struct object_call *call, struct error *err);
/* Is no rename of the object under way?  For a DELETE, under the name's lock; else E_NOT_READY, and
 * it takes a turn: object_routes.c. */
int object_call_check_renames(struct object_call *call, struct error *err);
/* Does the request, or its bucket, say that it is done only under conditions? */
bool object_call_has_conditions(const struct object_call *call);
/* The conditional headers against what is there (NULL: nothing).  Its MD5 is a tag of it, too.
 * E_PRECONDITION; with OBJECT_MISSING_HEADER of what is not there E_OBJECT_NOT_FOUND, as S3 has it.
 * Of a write over what is there in a bucket that is write_once E_WRITE_ONCE. */
int object_call_check_conditions(const struct object_call *call, enum http_method method,
                                 const struct attr *current, struct error *err);
