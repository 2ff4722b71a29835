#include "target/copies/hidden.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/pool.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/copies/object_copy.h"
#include "target/node/target.h"
#include "xaction/xaction.h"

enum { PAUSE_MS = 100 };

#define DROP_MAGIC 0x41dde401

/* --- the maker's side ------------------------------------------------------------------------- */

typedef int owner_fn(const struct hidden_job *h, const char *name, const struct cluster_state *s,
                     const struct node *owner, struct error *err);

static int send_one(const struct hidden_job *h, const char *name, const struct cluster_state *s,
                    const struct node *owner, struct error *err)
{
    struct object o;
    (void)s;
    int code = object_open_marked(h->target->store, h->bucket_id, name, h->job->id, &o, err);
    if (code != 0)
        return code;
    const struct object_copy copy = {.from = &o,
                                     .bucket_id = h->bucket_id,
                                     .name = name,
                                     .moves = true,
                                     .to = owner->id,
                                     .job_id = h->job->id,
                                     .attempt = h->job->attempt};
    code = object_copy(h->target->copier, &copy, err);
    close(o.fd);
    return code;
}

static int drop_one(const struct hidden_job *h, const char *name, const struct cluster_state *s,
                    const struct node *owner, struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/hidden/%llu/", owner->data_url, (unsigned long long)h->bucket_id);
    buf_put_url_escaped(&url, name, strlen(name), "");
    buf_printf(&url, "?dfcv=%llu.%llu&job=%s&attempt=%llu", (unsigned long long)s->term,
               (unsigned long long)s->version, h->job->id, (unsigned long long)h->job->attempt);
    return http_json_wait(h->target->data_client, owner->id, HTTP_DELETE, buf_str(&url), NULL,
                          h->target->params.call_timeout, NULL, err);
}

/* The owners by the state in force; the state is the caller's to let go of. */
static size_t find_owners(const struct hidden_job *h, const char *name,
                          const struct cluster_state *s, const struct node **nodes)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, h->bucket_id);
    return b != NULL ? smap_owners(&s->smap, b->id, name, b->props.copies, nodes) : 0;
}

static int try_owner(const struct hidden_job *h, const char *name, const char *id, owner_fn *fn,
                     struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(h->target->state);
    const struct node *owner = smap_node(&s->smap, id);
    if (owner == NULL || owner->state != NODE_ACTIVE)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s', an owner of '%s', is %s", id, name,
                         owner != NULL ? node_state_name(owner->state) : "gone");
    return fn(h, name, s, owner, err);
}

/* What may be different a moment later is tried again for a while; then the owner counts as lost.
 */
static int tell_owner(const struct hidden_job *h, const char *name, const char *id, owner_fn *fn,
                      struct error *err)
{
    uint64_t until_ms = clock_ms() + h->target->params.call_timeout;
    for (;;) {
        int code = error_forgive(err, try_owner(h, name, id, fn, err), E_NOT_MODIFIED);
        if (!object_copy_may_pass(code))
            return code;
        if (atomic_load(h->stopped))
            return error_set(err, E_ABORTED, "job '%s' was stopped", h->job->id);
        if (clock_ms() >= until_ms || !job_stop_pause(&h->target->copies->stop, PAUSE_MS))
            return error_recode(err, E_NET, "copy of '%s' on target '%s'", name, id);
        *err = ERROR_INIT;
    }
}

static int tell_owners(const struct hidden_job *h, const char *name, owner_fn *fn,
                       const struct hidden_choice *choice, struct error *err)
{
    const struct node *nodes[OWNERS_MAX];
    _cleanup_state_ const struct cluster_state *s = state_current(h->target->state);
    size_t count = find_owners(h, name, s, nodes);
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        bool meant = !job_leaves_out(h->job, nodes[i]->id) &&
                     (choice == NULL || choice->fn(choice->ctx, nodes[i]));
        if (meant && strcmp(nodes[i]->id, h->target->id) != 0)
            code = tell_owner(h, name, nodes[i]->id, fn, err);
    }
    return code;
}

int hidden_send(const struct hidden_job *h, const char *name, const struct hidden_choice *choice,
                struct error *err)
{
    return tell_owners(h, name, send_one, choice, err);
}

int hidden_drop(const struct hidden_job *h, const char *name, struct error *err)
{
    return tell_owners(h, name, drop_one, NULL, err);
}

/* --- the other owners' ------------------------------------------------------------------------ */

/* The job runs here, in this attempt, and neither ends nor begins another one before it is
 * released. */
static int hold_attempt(struct target *t, const char *job_id, const char *attempt_text,
                        struct error *err)
{
    uint64_t attempt;
    int code = attempt_text != NULL ? parse_u64(attempt_text, &attempt, err)
                                    : error_set(err, E_INVALID, "the attempt's number is missing");
    if (code != 0)
        return code;
    if (xactions_hold_attempt(t->xactions, job_id, "sort", attempt))
        return 0;
    return error_set(err, E_JOB_NOT_FOUND, "target '%s' does not run job '%s', attempt %llu", t->id,
                     job_id, (unsigned long long)attempt);
}

int hidden_check(void *ctx, const struct attr *current, struct error *err)
{
    const struct http_request *req = ctx;
    struct target *t = http_user(req);
    const char *job_id = http_header(req, HIDDEN_JOB_HEADER);
    (void)current;
    int code = hold_attempt(t, job_id, http_header(req, HIDDEN_ATTEMPT_HEADER), err);
    if (code == 0)
        xactions_release(t->xactions, job_id);
    return code;
}

/* In the request's arena. */
struct drop {
    unsigned magic;
    struct http_request *req;
    uint64_t bucket_id;
};

/* In a worker. */
static void drop_run(void *arg)
{
    const struct drop *d = arg;
    assert(d->magic == DROP_MAGIC);
    struct target *t = http_user(d->req);
    struct error err = ERROR_INIT;
    const char *job_id = http_query(d->req, "job");
    int code = hold_attempt(t, job_id, http_query(d->req, "attempt"), &err);
    if (code == 0) {
        code =
            object_discard(t->store, d->bucket_id, http_path_param(d->req, "object"), job_id, &err);
        xactions_release(t->xactions, job_id);
    }
    if (code != 0)
        http_reply_error(d->req, &err);
    else
        http_reply_empty(d->req, 204);
}

static void drop_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct drop *d = arena_alloc(http_arena(req), sizeof *d);
    struct error err = ERROR_INIT;
    const char *name = http_path_param(req, "object");
    *d = (struct drop){.magic = DROP_MAGIC, .req = req};
    int code = parse_u64(http_path_param(req, "bucket_id"), &d->bucket_id, &err);
    if (code == 0)
        code = object_name_check(name, strlen(name), &err);
    if (code == 0 && http_query(req, "job") == NULL)
        code = error_set(&err, E_INVALID, "parameter 'job' is missing");
    if (code == 0)
        code = pool_submit(t->workers, drop_run, d, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

const struct http_route hidden_routes[] = {
    {.name = "hidden_drop",
     .method = HTTP_DELETE,
     .pattern = "/v1/hidden/{bucket_id}/{object...}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = drop_begin,
     .summary = "Drops a job's hidden output, which its builder builds again.",
     .query = HTTP_PARAMETERS({"job", "its id"}, {"attempt", "of the job, from 0"},
                              {"dfcv", "the sender's state version"}),
     .body = "",
     .reply = "204, also where it is not here",
     .errors = "invalid_argument job_not_found io_error"},
    {.name = NULL},
};
