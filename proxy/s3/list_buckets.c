#include "proxy/s3/list_buckets.h"

#include "access/guard.h"
#include "common/arena.h"
#include "gateway/reply.h"
#include "proxy/primary/proxy.h"
#include "s3/list.h"

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
    (void)call;
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_(buf_done)
    struct buf document = BUF_INIT;
    struct s3_list_bucket *buckets =
        arena_alloc(http_arena(req), (s->bmd.count + 1) * sizeof buckets[0]);
    size_t count = collect(req, s, buckets);
    const struct http_actor *actor = http_actor(req);
    s3_list_buckets_document(buckets, count, actor->id != NULL ? actor->id : actor->name,
                             actor->name, &document);
    gateway_reply_xml(req, &document);
}
