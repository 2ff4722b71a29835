#include "gateway/buckets.h"

#include <assert.h>
#include <string.h>

#include "access/guard.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "gateway/collect.h"
#include "gateway/proxy_call.h"
#include "gateway/reply.h"
#include "s3/list.h"
#include "s3/location.h"
#include "s3/none.h"

enum { CREATE_BODY_MAX = 64 * 1024 };

static const struct cluster_state *state_of(const struct gateway_call *call)
{
    return state_current(gateway_config_of(call->gateway)->state);
}

/* --- ListBuckets ------------------------------------------------------------------------------ */

static size_t collect(struct http_request *req, const struct cluster_state *s,
                      struct s3_list_bucket *out)
{
    size_t count = 0;
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        if (guard_sees(req, b->name))
            out[count++] = (struct s3_list_bucket){b->name, (int64_t)b->created_ms};
    }
    return count;
}

void s3_list_buckets(struct http_request *req, const struct gateway_call *call)
{
    _cleanup_state_ const struct cluster_state *s = state_of(call);
    _cleanup_buf_ struct buf document = BUF_INIT;
    struct s3_list_bucket *buckets =
        arena_alloc(http_arena(req), (s->bmd.count + 1) * sizeof buckets[0]);
    size_t count = collect(req, s, buckets);
    const struct http_actor *actor = http_actor(req);
    s3_list_buckets_document(buckets, count, actor->id != NULL ? actor->id : actor->name,
                             actor->name, &document);
    gateway_reply_xml(req, &document);
}

/* --- of a bucket that is there ---------------------------------------------------------------- */

typedef void there_fn(struct http_request *req, const struct gateway_call *call,
                      const struct bucket *b);

static void if_there(struct http_request *req, const struct gateway_call *call, there_fn *then)
{
    struct s3_failure why;
    _cleanup_state_ const struct cluster_state *s = state_of(call);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    if (b != NULL) {
        then(req, call, b);
        return;
    }
    s3_fail(&why, S3_NO_BUCKET, NULL);
    gateway_fail(req, &why);
}

static void reply_there(struct http_request *req, const struct gateway_call *call,
                        const struct bucket *b)
{
    (void)b;
    http_reply_header(req, "x-amz-bucket-region", gateway_region(call->gateway));
    http_reply_empty(req, 200);
}

void s3_head_bucket(struct http_request *req, const struct gateway_call *call)
{
    if_there(req, call, reply_there);
}

static void reply_location(struct http_request *req, const struct gateway_call *call,
                           const struct bucket *b)
{
    (void)b;
    _cleanup_buf_ struct buf document = BUF_INIT;
    s3_location_document(gateway_region(call->gateway), &document);
    gateway_reply_xml(req, &document);
}

void s3_bucket_location(struct http_request *req, const struct gateway_call *call)
{
    if_there(req, call, reply_location);
}

static void reply_none(struct http_request *req, const struct gateway_call *call,
                       const struct bucket *b)
{
    (void)b;
    _cleanup_buf_ struct buf document = BUF_INIT;
    bool is_written = s3_none_document(call->s3.op, &document);
    assert(is_written); /* the handler has rows for these operations alone */
    gateway_reply_xml(req, &document);
}

void s3_bucket_none(struct http_request *req, const struct gateway_call *call)
{
    if_there(req, call, reply_none);
}

/* --- CreateBucket ----------------------------------------------------------------------------- */

static bool is_own(const struct http_request *req, const struct gateway_call *call)
{
    _cleanup_state_ const struct cluster_state *s = state_of(call);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    const char *id = http_actor(req)->id;
    if (b == NULL || !gateway_config_of(call->gateway)->asks_rights)
        return b != NULL;
    return b->owner != NULL && id != NULL && strcmp(b->owner, id) == 0;
}

static void reply_created(struct http_request *req, const struct gateway_call *call)
{
    http_reply_header(req, "Location", arena_printf(http_arena(req), "/%s", call->s3.bucket));
    http_reply_empty(req, 200);
}

static void reply_exists(struct http_request *req, const struct gateway_call *call)
{
    struct error err = ERROR_INIT;
    if (is_own(req, call)) {
        reply_created(req, call);
        return;
    }
    error_set(&err, E_BUCKET_EXISTS, "bucket '%s' exists", call->s3.bucket);
    http_reply_error(req, &err);
}

static void found(struct http_request *req, const struct gateway_call *call, void *arg,
                  const struct error *err, const struct buf *text)
{
    (void)arg;
    if (err->code != 0)
        http_reply_error(req, err);
    else
        proxy_call_when_known(req, call, text, reply_exists);
}

/* Whose it is, where it exists, this node may not know yet. */
static void created(struct http_request *req, const struct gateway_call *call, void *arg,
                    const struct error *err, const struct buf *text)
{
    const struct proxy_call look = {
        .method = HTTP_GET, .bucket = call->s3.bucket, .rest = "/state", .done = found};
    (void)arg;
    if (err->code == 0)
        proxy_call_when_known(req, call, text, reply_created);
    else if (err->code == E_BUCKET_EXISTS)
        proxy_call_start(req, call, &look);
    else
        http_reply_error(req, err);
}

static void create(struct http_request *req, const struct gateway_call *call, const char *data,
                   size_t len)
{
    struct s3_failure why;
    const struct proxy_call spec = {
        .method = HTTP_POST, .bucket = call->s3.bucket, .rest = "", .done = created};
    if (s3_location_check(data, len, gateway_region(call->gateway), &why) != S3_OK)
        gateway_fail(req, &why);
    else
        proxy_call_start(req, call, &spec);
}

void s3_create_bucket(struct http_request *req, const struct gateway_call *call)
{
    struct s3_failure why;
    if (s3_bucket_name_check(call->s3.bucket, &why) != S3_OK)
        gateway_fail(req, &why);
    else
        gateway_collect(req, call, CREATE_BODY_MAX, create);
}

/* --- DeleteBucket ----------------------------------------------------------------------------- */

static void reply_destroyed(struct http_request *req, const struct gateway_call *call)
{
    (void)call;
    http_reply_empty(req, 204);
}

static void destroyed(struct http_request *req, const struct gateway_call *call, void *arg,
                      const struct error *err, const struct buf *text)
{
    (void)arg;
    if (err->code != 0)
        http_reply_error(req, err);
    else
        proxy_call_when_known(req, call, text, reply_destroyed);
}

static void delete_bucket(struct http_request *req, const struct gateway_call *call,
                          const struct bucket *b)
{
    const struct proxy_call spec = {
        .method = HTTP_DELETE,
        .bucket = call->s3.bucket,
        .rest = arena_printf(http_arena(req), "?id=%llu", (unsigned long long)b->id),
        .done = destroyed};
    proxy_call_start(req, call, &spec);
}

void s3_delete_bucket(struct http_request *req, const struct gateway_call *call)
{
    if_there(req, call, delete_bucket);
}
