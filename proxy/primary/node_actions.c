#include "proxy/primary/node_actions.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/primary/leave.h"
#include "proxy/primary/proxy.h"

static const struct action {
    const char *name;
    enum node_state state;
} actions[] = {
    {"startmaintenance", NODE_MAINTENANCE},
    {"stopmaintenance", NODE_ACTIVE},
    {"decommission", NODE_DECOMMISSIONING},
};

static void changed(void *arg, const struct error *err)
{
    struct proxy *p = http_user(arg);
    if (err != NULL) {
        proxy_reply_error(arg, err);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = state_part_to_json(s, "smap");
    http_reply_json(arg, 200, doc);
}

static int parse_force(json_t *value, bool *force, struct error *err)
{
    static const char *const fields[] = {"force", NULL};
    *force = false;
    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_is_object(value))
        return error_set(err, E_JSON, "field 'value' must be an object: {\"force\": true}");
    int r = json_only_fields(value, "value", fields, err);
    return r != 0 ? r : json_get_bool(value, "value", "force", force, err);
}

/* What may be asked of this node?  Only targets hold objects. */
static int check_node(const struct cluster_state *s, const char *name, const struct action *a,
                      const struct node **n, struct error *err)
{
    *n = smap_node(&s->smap, name);
    if (*n == NULL)
        return error_set(err, E_NODE_NOT_FOUND, "no node is called '%.64s'", name);
    if ((*n)->role != NODE_TARGET)
        return error_set(err, E_INVALID,
                         "node '%s' is a proxy, which holds no objects: stop it, then node rm",
                         name);
    if (a->state == NODE_ACTIVE && (*n)->state == NODE_UNREACHABLE)
        return error_set(err, E_NODE_STATE, "target '%s' is unreachable, not in maintenance", name);
    return 0;
}

static int commit_action(struct http_request *req, const struct action *a, const char *name,
                         bool force, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n;
    int r = check_node(s, name, a, &n, err);
    if (r != 0)
        return r;
    bool given_up = a->state == NODE_DECOMMISSIONING && force && n->state != NODE_ACTIVE;
    const struct command cmd = {.kind = given_up ? CMD_NODE_REMOVE : CMD_NODE_STATE,
                                .name = name,
                                .node_state = a->state,
                                .force = force,
                                .wall_ms = clock_wall_ms()};
    if (leave_moves(s, &cmd))
        leave_begin(p, req, n, &cmd, changed);
    else
        proxy_commit_settled(p, &cmd, changed, req);
    return 0;
}

bool node_action(struct http_request *req, const char *action, const char *name, json_t *value,
                 int *code, struct error *err)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        bool force;
        if (strcmp(actions[i].name, action) != 0)
            continue;
        *code = parse_force(value, &force, err);
        if (*code == 0)
            *code = commit_action(req, &actions[i], name, force, err);
        return true;
    }
    return false;
}
