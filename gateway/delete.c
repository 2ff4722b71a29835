/* The request's body is over, and the request does not end before its reply.  From begin() on, the
 * client's loop alone touches a deletion. */
#include "gateway/delete.h"

#include <string.h>

#include "access/guard.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/mem.h"
#include "gateway/collect.h"
#include "gateway/delete_plan.h"
#include "gateway/etag.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "gateway/target_call.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "s3/delete_body.h"
#include "s3/delete_reply.h"

enum { BODY_MAX = 4 << 20 };

/* Of the request's arena. */
struct deletion {
    struct http_request *req;
    const struct gateway_call *s3;
    struct s3_delete asked;
    struct s3_delete_outcome *outcomes; /* in the order of the keys */
    struct delete_plan *plan;
};

/* The call for one key. */
struct removal {
    struct deletion *of;
    size_t index;
    const char *target; /* that was called; of `arena` */
    unsigned hops;
    struct arena *arena;
    struct http_call call;
    struct target_call_header *found;
};

static void removal_free(struct removal *r)
{
    arena_free(r->arena);
    free(r);
}

/* --- the outcome ------------------------------------------------------------------------------ */

static void note(struct deletion *d, size_t index, const struct error *err)
{
    bool is_gone = err->code == E_OBJECT_NOT_FOUND && d->asked.keys[index].etag == NULL;
    if (err->code != 0 && !is_gone)
        s3_fail(&d->outcomes[index].failure, s3_error_of(err->code), "%s", err->message);
}

/* The deletion is the request's, which may end at once after its reply. */
static void end(struct deletion *d)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    s3_delete_document(d->outcomes, d->asked.count, d->asked.is_quiet, &document);
    gateway_leave_forward(d->s3->gateway);
    gateway_reply_xml(d->req, &document);
}

/* --- one key ---------------------------------------------------------------------------------- */

static void go_on(struct deletion *d);

static void removed(void *arg, struct http_result *result);

static void start(struct removal *r)
{
    http_call_start(gateway_config_of(r->of->s3->gateway)->client, &r->call, removed, r);
}

static void take_head(void *arg, const struct http_head *head)
{
    struct removal *r = arg;
    r->found = target_call_headers(r->arena, head);
}

static void removed(void *arg, struct http_result *result)
{
    struct removal *r = arg;
    struct deletion *d = r->of;
    struct error err = ERROR_INIT;
    const char *next = target_call_next(result, r->found, r->hops);
    if (next != NULL) {
        r->hops++;
        r->call.url = next;
        start(r);
        return;
    }
    if (result->code != 0 && r->hops == 0)
        delete_plan_note_silent(d->plan, r->target);
    (void)target_call_error(result, r->call.url, &err);
    note(d, r->index, &err);
    delete_plan_ended(d->plan, r->index);
    removal_free(r);
    go_on(d);
}

/* Clients write the tag with its quotes or without. */
static void put_condition(struct native_head *head, const char *etag)
{
    _cleanup_buf_ struct buf quoted = BUF_INIT, native = BUF_INIT;
    bool is_bare = *etag != '"' && strcmp(etag, "*") != 0;
    buf_printf(&quoted, is_bare ? "\"%s\"" : "%s", etag);
    etag_put_native(buf_str(&quoted), &native);
    native_head_add(head, "If-Match", buf_str(&native));
}

static void remove_at(struct deletion *d, size_t index, const char *target, const char *url)
{
    const char *etag = d->asked.keys[index].etag;
    struct removal *r = xcalloc(1, sizeof *r);
    struct native_head head;
    *r = (struct removal){.of = d, .index = index, .arena = arena_new(512)};
    r->target = arena_strdup(r->arena, target);
    native_head_begin(&head, r->arena);
    if (etag != NULL)
        put_condition(&head, etag);
    r->call = (struct http_call){.method = HTTP_DELETE,
                                 .url = arena_strdup(r->arena, url),
                                 .headers = head.lines,
                                 .to_public = true,
                                 .once = true,
                                 .on_head = take_head,
                                 .request_id = http_request_id(d->req)};
    start(r);
}

static int find_target(struct deletion *d, size_t index, struct buf *target, struct buf *url,
                       struct error *err)
{
    const struct target_call call = {
        .method = HTTP_DELETE, .bucket = d->s3->s3.bucket, .key = d->asked.keys[index].key};
    int code = target_call_owner(d->s3->gateway, &call, target, err);
    if (code == 0 && delete_plan_is_silent(d->plan, buf_str(target)))
        return error_set(err, E_NODE_UNREACHABLE, "the target of the object does not answer");
    return code != 0 ? code : target_call_url(d->req, d->s3->gateway, &call, url, err);
}

/* The target is looked for when the call starts: it may be another one by now, and the proof in the
 * URL must be young.  False: no call has started. */
static bool remove_key(struct deletion *d, size_t index)
{
    _cleanup_buf_ struct buf target = BUF_INIT, url = BUF_INIT;
    struct error err = ERROR_INIT;
    int code = find_target(d, index, &target, &url, &err);
    if (code == 0)
        remove_at(d, index, buf_str(&target), buf_str(&url));
    else
        note(d, index, &err);
    return code == 0;
}

static void go_on(struct deletion *d)
{
    size_t key;
    while (delete_plan_next(d->plan, &key)) {
        if (!remove_key(d, key))
            delete_plan_ended(d->plan, key);
    }
    if (delete_plan_is_over(d->plan))
        end(d);
}

/* --- the start -------------------------------------------------------------------------------- */

static void plan_key(struct deletion *d, size_t index)
{
    _cleanup_buf_ struct buf target = BUF_INIT;
    const struct target_call call = {.bucket = d->s3->s3.bucket, .key = d->asked.keys[index].key};
    if (d->outcomes[index].failure.error != S3_OK)
        return;
    (void)target_call_owner(d->s3->gateway, &call, &target, NULL); /* at its turn it is told */
    delete_plan_add(d->plan, index, buf_str(&target));
}

static void begin(void *arg)
{
    struct deletion *d = arg;
    d->plan = delete_plan_new(http_arena(d->req), d->asked.count);
    for (size_t i = 0; i < d->asked.count; i++)
        plan_key(d, i);
    go_on(d);
}

static void check_key(struct deletion *d, size_t index)
{
    const struct s3_delete_key *k = &d->asked.keys[index];
    struct s3_delete_outcome *o = &d->outcomes[index];
    struct error err = ERROR_INIT;
    *o = (struct s3_delete_outcome){.key = k->key, .version = k->version};
    if (k->version != NULL && strcmp(k->version, "null") != 0)
        s3_fail(&o->failure, S3_INVALID_ARGUMENT, "The only version of an object is 'null'");
    else if (guard_ask(d->req, RIGHT_DELETE, d->s3->s3.bucket, k->key, &err) != 0)
        note(d, index, &err);
}

static enum s3_error check_bucket(const struct gateway_call *call, struct s3_failure *why)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    bool is_there = bmd_bucket(&s->bmd, call->s3.bucket) != NULL;
    return is_there ? S3_OK : s3_fail(why, S3_NO_BUCKET, NULL);
}

static void collected(struct http_request *req, const struct gateway_call *call, const char *data,
                      size_t len)
{
    struct arena *arena = http_arena(req);
    struct deletion *d = arena_alloc(arena, sizeof *d);
    struct s3_failure why;
    *d = (struct deletion){.req = req, .s3 = call};
    enum s3_error e = s3_delete_parse(data, len, arena, &d->asked, &why);
    if (e == S3_OK)
        e = check_bucket(call, &why);
    if (e == S3_OK && !gateway_enter_forward(call->gateway))
        e = s3_fail(&why, S3_SLOW_DOWN, "s3_forwards_max requests are under way");
    if (e != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    d->outcomes = arena_alloc(arena, d->asked.count * sizeof d->outcomes[0]);
    for (size_t i = 0; i < d->asked.count; i++)
        check_key(d, i);
    loop_post(gateway_config_of(call->gateway)->loop, begin, d);
}

void s3_delete_objects(struct http_request *req, const struct gateway_call *call)
{
    gateway_collect(req, call, BODY_MAX, collected);
}
