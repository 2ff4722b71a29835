#include "proxy/primary/leave.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/members.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/room.h"

struct leave {
    struct http_request *req;
    struct command *cmd;
    void (*done)(void *arg, const struct error *err);
};

bool leave_moves(const struct cluster_state *s, const struct command *cmd)
{
    const struct node *n = smap_node(&s->smap, cmd->name);
    return cmd->kind == CMD_NODE_STATE && !cmd->force && s->bmd.count > 0 && n != NULL &&
           (cmd->node_state == NODE_MAINTENANCE || cmd->node_state == NODE_DECOMMISSIONING) &&
           node_owns(n) && n->state == NODE_ACTIVE;
}

static bool room_of(void *ctx, const char *target, uint64_t *bytes)
{
    struct keepalive last;
    if (!members_last(ctx, target, &last) || last.room_bytes == ROOM_UNKNOWN)
        return false;
    *bytes = last.room_bytes;
    return true;
}

/* Of all buckets, as the target counts them. */
static int parse_summary(const struct buf *body, uint64_t *bytes, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *buckets = NULL;
    int r;
    *bytes = 0;
    if ((r = json_parse(body->data, body->len, &doc, err)) != 0 ||
        (r = json_get_array(doc, "", "buckets", &buckets, err)) != 0)
        return r;
    for (size_t i = 0; i < json_array_size(buckets); i++) {
        uint64_t part = 0;
        if ((r = json_get_u64(json_array_get(buckets, i), "buckets", "bytes", &part, err)) != 0)
            return r;
        *bytes += part;
    }
    return 0;
}

static void summary_came(void *arg, struct http_result *result)
{
    struct leave *l = arg;
    struct proxy *p = http_user(l->req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct error err = ERROR_INIT;
    uint64_t bytes;
    int r = http_result_error(result, l->cmd->name, &err);
    if (r == 0)
        r = parse_summary(&result->body, &bytes, &err);
    if (r != 0)
        error_wrap(&err, "what target '%s' has, to see whether the others have room for it",
                   l->cmd->name);
    else
        r = room_check(&s->smap, l->cmd->name, bytes, room_of, p, &err);
    if (r != 0)
        proxy_reply_error(l->req, &err);
    else
        proxy_commit_settled(p, l->cmd, l->done, l->req);
    command_free(l->cmd);
    free(l);
}

void leave_begin(struct proxy *p, struct http_request *req, const struct node *n,
                 const struct command *cmd, void (*done)(void *arg, const struct error *err))
{
    _cleanup_free_ char *url = xprintf("%s/v1/daemon?what=summary", n->control_url);
    struct leave *l = xcalloc(1, sizeof *l);
    *l = (struct leave){.req = req, .cmd = command_copy(cmd), .done = done};
    const struct http_call call = {.method = HTTP_GET,
                                   .url = url,
                                   .node = n->id,
                                   .reply_max = p->params.state_max,
                                   .total_timeout_ms = p->params.stall_timeout,
                                   .request_id = http_request_id(req)};
    http_call_start(p->client, &call, summary_came, l);
}
