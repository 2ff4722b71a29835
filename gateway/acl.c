#include "gateway/acl.h"

#include "cluster/access/identity.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "gateway/collect.h"
#include "gateway/forward.h"
#include "gateway/reply.h"
#include "s3/acl.h"

enum { BODY_MAX = 64 * 1024 };

/* --- reading ---------------------------------------------------------------------------------- */

/* A bucket without an owner is everybody's: the caller is as good as any. */
static struct s3_owner owner_of(struct http_request *req, const struct cluster_state *s,
                                const struct bucket *b)
{
    const struct http_actor *actor = http_actor(req);
    if (b->owner == NULL)
        return (struct s3_owner){actor->id != NULL ? actor->id : actor->name, actor->name};
    const struct user *user = access_user_by_id(&s->access, b->owner);
    return (struct s3_owner){b->owner, user != NULL ? user->name : b->owner};
}

void s3_get_bucket_acl(struct http_request *req, const struct gateway_call *call)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    _cleanup_buf_ struct buf document = BUF_INIT;
    struct s3_failure why;
    if (b == NULL) {
        s3_fail(&why, S3_NO_BUCKET, NULL);
        gateway_fail(req, &why);
        return;
    }
    const struct s3_owner owner = owner_of(req, s, b);
    s3_acl_document(&owner, &document);
    gateway_reply_xml(req, &document);
}

/* --- of an object that is there --------------------------------------------------------------- */

static void if_there(struct http_request *req, const struct gateway_call *call,
                     void (*reply)(struct http_request *req, const struct gateway_call *call,
                                   const struct forward_reply *r))
{
    const char **none = arena_alloc(http_arena(req), sizeof none[0]);
    none[0] = NULL;
    const struct forward_plan plan = {.method = HTTP_HEAD, .headers = none, .reply = reply};
    forward_start(req, call, &plan);
}

static void reply_object_acl(struct http_request *req, const struct gateway_call *call,
                             const struct forward_reply *r)
{
    if (r->err.code != 0)
        http_reply_error(req, &r->err);
    else
        s3_get_bucket_acl(req, call);
}

void s3_get_object_acl(struct http_request *req, const struct gateway_call *call)
{
    if_there(req, call, reply_object_acl);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* The entry lets through a canned ACL that changes nothing (s3/headers.def); of documents that of
 * the bucket's owner changes nothing. */
static enum s3_error check_acl(struct http_request *req, const struct gateway_call *call,
                               const char *data, size_t len, struct s3_failure *why)
{
    _cleanup_state_ const struct cluster_state *s =
        state_current(gateway_config_of(call->gateway)->state);
    const struct bucket *b = bmd_bucket(&s->bmd, call->s3.bucket);
    if (b == NULL)
        return s3_fail(why, S3_NO_BUCKET, NULL);
    if (len > 0)
        return s3_acl_check(data, len, owner_of(req, s, b).id, why);
    return s3_header(&call->head, "x-amz-acl") != NULL ? S3_OK
                                                       : s3_fail(why, S3_ACL_NOT_SUPPORTED, NULL);
}

static void put_bucket_acl(struct http_request *req, const struct gateway_call *call,
                           const char *data, size_t len)
{
    struct s3_failure why;
    if (check_acl(req, call, data, len, &why) != S3_OK)
        gateway_fail(req, &why);
    else
        http_reply_empty(req, 200);
}

void s3_put_bucket_acl(struct http_request *req, const struct gateway_call *call)
{
    gateway_collect(req, call, BODY_MAX, put_bucket_acl);
}

static void reply_put(struct http_request *req, const struct gateway_call *call,
                      const struct forward_reply *r)
{
    (void)call;
    if (r->err.code != 0)
        http_reply_error(req, &r->err);
    else
        http_reply_empty(req, 200);
}

static void put_object_acl(struct http_request *req, const struct gateway_call *call,
                           const char *data, size_t len)
{
    struct s3_failure why;
    if (check_acl(req, call, data, len, &why) != S3_OK)
        gateway_fail(req, &why);
    else
        if_there(req, call, reply_put);
}

void s3_put_object_acl(struct http_request *req, const struct gateway_call *call)
{
    gateway_collect(req, call, BODY_MAX, put_object_acl);
}
