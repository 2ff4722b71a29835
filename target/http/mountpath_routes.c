#include "target/http/mountpath_routes.h"

#include <assert.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "target/copies/copies.h"
#include "target/http/daemon_routes.h"
#include "target/node/state_sync.h"
#include "target/disk/mountpath_roots.h"
#include "target/copies/staged.h"
#include "target/store/sweep.h"
#include "target/node/target.h"

#define CHANGE_MAGIC 0x0b1ec77e

enum { WAIT_MS = 50 };

/* A change that was asked for: made by a worker, since it waits for disks. */
struct change_call {
    unsigned magic;
    struct http_request *req;
    const struct change_action *action;
    const char *path;
    bool lost;
    bool create;
    json_t *doc;
};

struct change_action {
    const char *name;
    const char *alias; /* DFC's */
    int (*make)(struct mountpaths *m, const struct change_call *call, struct error *err);
};

/* What others have staged here would keep the disk's earlier life open. */
static void let_go(const struct change_call *call)
{
    const struct target *t = http_user(call->req);
    staged_leave_mountpaths(t->copies->staged);
}

static int attach(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    const struct target *t = http_user(call->req);
    _cleanup_free_ char *real = NULL;
    int code =
        mountpath_roots_check(t->params.mountpath_roots, call->path, call->create, &real, err);
    if (code != 0)
        return code;
    let_go(call);
    return mountpaths_attach(m, real, err);
}

static bool is_absent(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *self = smap_node(&s->smap, t->id);
    return self != NULL && self->absent_since != 0;
}

/* Who may have lost copies must not answer from what it has until they are brought back: the map
 * has to say so first (cluster/placement/lag.h), which it does when the mountpath is disabled. */
static int wait_absent(const struct change_call *call, struct error *err)
{
    struct target *t = http_user(call->req);
    for (uint64_t until_ms = clock_ms() + t->params.call_timeout; !is_absent(t);) {
        if (clock_ms() >= until_ms || !job_stop_pause(&t->copies->stop, WAIT_MS))
            return error_set(
                err, E_NOT_READY,
                "'%s' is disabled, and the cluster map does not say so yet, so that it "
                "cannot be given up; repeat it",
                call->path);
    }
    return 0;
}

static int give_up(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    const struct target *t = http_user(call->req);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    int code = 0;
    if (bmd_has_copies(&s->bmd)) {
        code = mountpaths_disable(m, call->path, "given up", false, err);
        if (code == 0)
            code = wait_absent(call, err);
    }
    return code != 0 ? code : mountpaths_detach(m, call->path, true, err);
}

static int detach(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    return call->lost ? give_up(m, call, err) : mountpaths_detach(m, call->path, false, err);
}

static int enable(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    let_go(call);
    return mountpaths_enable(m, call->path, err);
}

static int disable(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    return mountpaths_disable(m, call->path, "by request", false, err);
}

static int resilver(struct mountpaths *m, const struct change_call *call, struct error *err)
{
    (void)call;
    return mountpaths_ask_resilver(m, err);
}

static const struct change_action actions[] = {
    {"attach", "add", attach},  {"detach", "remove", detach}, {"enable", NULL, enable},
    {"disable", NULL, disable}, {"resilver", NULL, resilver},
};

static int find_action(const char *name, const struct change_action **out, struct error *err)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const struct change_action *a = &actions[i];
        *out = a;
        if (strcmp(a->name, name) == 0 || (a->alias != NULL && strcmp(a->alias, name) == 0))
            return 0;
    }
    return error_set(err, E_INVALID,
                     "field 'action': '%.64s' is none of attach, detach, enable, disable, resilver",
                     name);
}

static int parse_fields(json_t *value, struct change_call *call, struct error *err)
{
    static const char *const fields[] = {"path", "lost", "create", NULL};
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0)
        code = json_get_str(value, "value", "path", &call->path, err);
    if (code == 0)
        code = json_get_bool(value, "value", "lost", &call->lost, err);
    if (code == 0)
        code = json_get_bool(value, "value", "create", &call->create, err);
    return code;
}

/* "/d3", or {"path": "/d3", "lost": true, "create": true}. */
static int parse_value(json_t *value, struct change_call *call, struct error *err)
{
    int code = 0;
    call->path = "";
    if (json_is_string(value)) {
        call->path = json_string_value(value);
    } else if (json_is_object(value)) {
        code = parse_fields(value, call, err);
    } else if (value != NULL) {
        code = error_set(err, E_JSON, "field 'value' must be a path, or an object with one");
    }
    if (code != 0)
        return code;
    if (*call->path == '\0' && call->action->make != resilver)
        return error_set(err, E_INVALID, "field 'value': a mountpath's path or id is missing");
    if (call->lost && call->action->make != detach)
        return error_set(err, E_INVALID, "field 'value.lost' is detach's");
    if (call->create && call->action->make != attach)
        return error_set(err, E_INVALID, "field 'value.create' is attach's");
    return 0;
}

static int parse(const char *data, size_t len, struct change_call *call, struct error *err)
{
    static const char *const fields[] = {"action", "value", NULL};
    const char *action = NULL;
    int code = json_parse(data, len, &call->doc, err);
    if (code == 0)
        code = json_only_fields(call->doc, "", fields, err);
    if (code == 0)
        code = json_need_str(call->doc, "", "action", &action, err);
    if (code == 0)
        code = find_action(action, &call->action, err);
    return code == 0 ? parse_value(json_object_get(call->doc, "value"), call, err) : code;
}

static void make_change(void *arg)
{
    const struct change_call *call = arg;
    assert(call->magic == CHANGE_MAGIC);
    struct target *t = http_user(call->req);
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    if (call->action->make(t->mountpaths, call, &err) == 0) {
        /* Buckets may have been destroyed, and jobs have ended, while one was away. */
        sweeper_wake(t->sweeper);
        state_sync_tell_again(t->state_sync);
        _cleanup_json_ json_t *doc = daemon_mountpaths_json(t);
        http_reply_json(call->req, 200, doc);
    } else {
        error_recode(&err, err.code, "%s", call->action->name);
        log_warn("mountpaths not changed", lerr(&err));
        http_reply_error(call->req, &err);
    }
    log_set_request(NULL);
}

static void drop_doc(void *arg)
{
    json_decref(arg);
}

static void change_body(struct http_request *req, const char *data, size_t len)
{
    struct target *t = http_user(req);
    struct change_call *call = arena_alloc(http_arena(req), sizeof *call);
    *call = (struct change_call){.magic = CHANGE_MAGIC, .req = req};
    struct error err = ERROR_INIT;
    int code = parse(data, len, call, &err);
    if (call->doc != NULL)
        http_on_end(req, drop_doc, call->doc);
    if (code == 0)
        code = pool_submit(t->workers, make_change, call, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

static void change_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    http_collect_body(req, t->params.body_max, change_body);
}

const struct http_route mountpath_routes[] = {
    {.name = "mountpath_action",
     .method = HTTP_PUT,
     .pattern = "/v1/daemon/mountpaths",
     .nets = NET_CONTROL,
     .right = RIGHT_OPERATE,
     .changes = true,
     .admin = true,
     .begin = change_begin,
     .summary = "attach adds a mountpath (an absent directory with create only), detach moves all "
                "objects off and releases it, disable "
                "takes it out at once (its objects give 503 unless other targets have copies), "
                "enable takes it back, resilver moves objects to where they belong.",
     .body = "`{\"action\": \"attach\\|detach\\|enable\\|disable\\|resilver\", \"value\": path or "
             "id}`; to give up a mountpath with its objects: `{\"action\": \"detach\", \"value\": "
             "{\"path\": …, \"lost\": true}}`; to make an absent directory: `{\"action\": "
             "\"attach\", \"value\": {\"path\": …, \"create\": true}}`",
     .reply = "200 and the mountpaths, as GET /v1/daemon?what=mountpaths gives them",
     .errors = "invalid_argument not_found exists mountpath_state no_space io_error not_ready"},
    {.name = NULL},
};
