#include "access/exposure_gate.h"

#include <stdatomic.h>

#include "common/mem.h"

struct exposure_gate {
    struct http_guard hook;
    char *node;
    atomic_bool shut;
};

static int open_route(void *ctx, struct http_request *req, struct error *err)
{
    const struct exposure_gate *g = ctx;
    const struct http_route *route = http_route(req);
    if (!atomic_load(&g->shut) || (route != NULL && route->right == RIGHT_NONE))
        return 0;
    return error_set(err, E_NOT_READY,
                     "node '%s' was started without --public-auth, and no primary without it has "
                     "taken the node",
                     g->node);
}

struct exposure_gate *exposure_gate_new(const char *node, bool shut)
{
    struct exposure_gate *g = xcalloc(1, sizeof *g);
    g->hook = (struct http_guard){.open = open_route, .ctx = g};
    g->node = xstrdup(node);
    atomic_init(&g->shut, shut);
    return g;
}

void exposure_gate_free(struct exposure_gate *g)
{
    if (g == NULL)
        return;
    free(g->node);
    free(g);
}

const struct http_guard *exposure_gate_hook(const struct exposure_gate *g)
{
    return g != NULL ? &g->hook : NULL;
}

void exposure_gate_hear(struct exposure_gate *g, int code)
{
    if (g != NULL && (code == 0 || code == E_NODE_STATE))
        atomic_store(&g->shut, code != 0);
}
