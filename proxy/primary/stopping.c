#include "proxy/primary/stopping.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/daemon.h"
#include "proxy/primary/candidate.h"
#include "proxy/primary/follower.h"
#include "proxy/primary/proxy.h"

enum { LOOK_MS = 50 };

static bool others_serve(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    bool serve = false;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        serve = serve ||
                (n->role == NODE_PROXY && n->state == NODE_ACTIVE && strcmp(n->id, p->id) != 0);
    }
    return serve;
}

static void quiet(void *arg)
{
    struct proxy *p = arg;
    if (p->follower != NULL)
        follower_quiet(p->follower);
}

static int tell_primary(struct proxy *p, struct error *err)
{
    _cleanup_(metastore_primary_done)
    struct metastore_primary primary = {0};
    if (!proxy_find_primary(p, &primary))
        return error_set(err, E_NOT_PRIMARY, "no primary is known");
    _cleanup_free_ char *url = xprintf("%s/v1/cluster/stop", primary.control_url);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "id", p->id, "boot", p->boot);
    return http_json_wait(p->client, primary.id, HTTP_POST, url, doc, p->params.connect_timeout,
                          NULL, err);
}

static bool has_begun(struct proxy *p)
{
    return atomic_load(&p->primary_calls) > 0;
}

/* True: a signal has come. */
static bool pause_while(struct proxy *p, bool (*still)(struct proxy *p), int signals_fd)
{
    uint64_t until_ms = clock_ms() + p->params.stop_linger;
    while (clock_ms() < until_ms && still(p)) {
        if (daemon_pause(signals_fd, LOOK_MS))
            return true;
    }
    return false;
}

static bool lacks_primary(struct proxy *p)
{
    _cleanup_(metastore_primary_done)
    struct metastore_primary primary = {0};
    return !proxy_find_primary(p, &primary);
}

/* What it has begun as the primary ends first; what comes meanwhile waits, and is passed on to the
 * next primary.  True: a signal has come. */
static bool hand_over(struct proxy *p, int signals_fd)
{
    bool was_primary = proxy_is_primary(p);
    atomic_store(&p->hands_over, true);
    if (pause_while(p, has_begun, signals_fd))
        return true;
    candidate_stop(p->candidate);
    if (was_primary)
        log_info("has given up being primary");
    return pause_while(p, lacks_primary, signals_fd);
}

uint64_t proxy_leave_max_ms(const struct proxy_params *params)
{
    enum { WAITS = 3 }; /* for what it has begun, for the next primary, for clients */
    return WAITS * params->stop_linger + params->connect_timeout;
}

void proxy_leave(struct proxy *p, int signals_fd)
{
    struct error err = ERROR_INIT;
    atomic_store(&p->leaving, true);
    if (!others_serve(p))
        return;
    loop_call(p->loop, quiet, p);
    if (p->is_shared && hand_over(p, signals_fd))
        return;
    if (!proxy_is_primary(p) && tell_primary(p, &err) != 0)
        log_warn("the primary does not know that this proxy stops", lerr(&err));
    http_server_leave(p->public_server);
    if (p->s3_server != NULL)
        http_server_leave(p->s3_server);
    if (p->admin_server != NULL)
        http_server_leave(p->admin_server);
    pause_while(p, others_serve, signals_fd);
}
