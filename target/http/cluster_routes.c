#include "target/http/cluster_routes.h"

#include <assert.h>

#include "cluster/documents/push_body.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "target/node/state_sync.h"
#include "target/node/target.h"

#define PUSH_MAGIC 0x0b1ec770

static void get_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    if (!state_sync_has_state(t->state_sync)) {
        struct error err;
        error_set(&err, E_NOT_READY, "target '%s' has no cluster state yet", t->id);
        http_reply_error(req, &err);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    json_t *doc = state_to_json(s);
    http_reply_json(req, 200, doc);
    json_decref(doc);
}

/* A state that was pushed: taken in by a worker, for it is written to the disks. */
struct push {
    unsigned magic;
    struct http_request *req;
    const char *data;
    size_t len;
};

static void take_pushed(void *arg)
{
    struct push *p = arg;
    assert(p->magic == PUSH_MAGIC);
    struct target *t = http_user(p->req);
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(p->req));
    if (state_sync_take_push(t->state_sync, p->data, p->len, &err) != 0) {
        log_warn("pushed cluster state not taken", lerr(&err));
        http_reply_error(p->req, &err);
    } else {
        const struct push_reply reply = state_sync_reply(t->state_sync);
        _cleanup_json_ json_t *doc = push_reply_to_json(&reply);
        http_reply_json(p->req, 200, doc);
    }
    log_set_request(NULL);
}

static void push_body(struct http_request *req, const char *data, size_t len)
{
    struct target *t = http_user(req);
    struct push *p = arena_alloc(http_arena(req), sizeof *p);
    *p = (struct push){.magic = PUSH_MAGIC, .req = req, .data = data, .len = len};
    struct error err = ERROR_INIT;
    if (pool_submit(t->workers, take_pushed, p, &err) != 0)
        http_reply_error(req, &err);
}

static void push_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    http_collect_body(req, t->params.state_max, push_body);
}

const struct http_route cluster_routes[] = {
    {.name = "state_get",
     .method = HTTP_GET,
     .pattern = "/v1/cluster/state",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .any_cluster = true,
     .begin = get_begin,
     .summary = "The cluster's documents as this target knows them.",
     .body = "",
     .reply = "the state document",
     .errors = "not_ready"},
    {.name = "state_push",
     .method = HTTP_PUT,
     .pattern = "/v1/cluster/state",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .any_cluster = true,
     .begin = push_begin,
     .summary = "Brings a newer state; an older one changes nothing.",
     .body = "the state document, or the difference from an earlier one "
             "(cluster/documents/push_body.h)",
     .reply = "`{\"term\", \"version\", \"deltas\"}`: what the target holds now, and whether it "
              "reads differences",
     .errors = "wrong_cluster invalid_json too_large"},
    {.name = NULL},
};
