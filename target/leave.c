#include "target/leave.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/daemon.h"
#include "net/notify.h"
#include "target/copies/copies.h"
#include "target/node/member.h"
#include "target/node/member_plan.h"
#include "target/node/target.h"

enum { LOOK_MS = 50, AGAIN_MS = 100 };

/* True: a signal.  What the service manager did not take is sent meanwhile. */
static bool pause_for(const struct target *t, int signals_fd, int ms)
{
    notify_flush(t->notify);
    return daemon_pause(signals_fd, ms);
}

/* Does anybody stand in for this target? */
static bool others_stand_in(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    bool is_active = false, has_copies = false;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        is_active = is_active || (n->role == NODE_TARGET && n->state == NODE_ACTIVE &&
                                  strcmp(n->id, t->id) != 0);
    }
    for (size_t i = 0; i < s->bmd.count; i++)
        has_copies = has_copies || bucket_has_copies(&s->bmd.buckets[i]);
    return is_active && has_copies;
}

static int tell_at(struct target *t, const char *proxy, struct error *err)
{
    _cleanup_free_ char *url = xprintf("%s/v1/cluster/stop", proxy);
    _cleanup_json_ json_t *doc = json_pack("{ss ss}", "id", t->id, "boot", t->boot);
    return http_json_wait(t->control_client, HTTP_ANY_NODE, HTTP_POST, url, doc,
                          t->params.connect_timeout, NULL, err);
}

/* Is another proxy worth asking, or the same once more? */
static bool may_pass(int code)
{
    return code == E_NET || code == E_TIMEOUT || code == E_NOT_PRIMARY || code == E_NOT_READY ||
           code == E_IN_DOUBT || code == E_OVERLOAD;
}

static int tell_once(struct target *t, size_t *proxies, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    char **urls;
    int code = error_set(err, E_NOT_PRIMARY, "no proxy is known");
    *proxies = member_candidates(s, t->params.join, &urls);
    for (size_t i = 0; i < *proxies; i++) {
        if (may_pass(code))
            code = tell_at(t, urls[i], err);
        free(urls[i]);
    }
    free(urls);
    return code;
}

/* One proxy that does not answer is the primary, and nobody follows it; of several another one may
 * be elected soon. */
static bool tell_primary(struct target *t, int signals_fd)
{
    struct error err = ERROR_INIT;
    size_t proxies;
    uint64_t until_ms = clock_ms() + t->params.stop_linger;
    int code = tell_once(t, &proxies, &err);
    while (may_pass(code) && proxies > 1 && clock_ms() < until_ms &&
           !pause_for(t, signals_fd, AGAIN_MS))
        code = tell_once(t, &proxies, &err);
    if (code != 0)
        log_warn("the primary does not know that this target stops", lerr(&err));
    return code == 0;
}

static const enum target_listener of_clients[] = {LISTEN_PUBLIC, LISTEN_S3, LISTEN_ADMIN};

/* False: a signal. */
static bool linger(const struct target *t, int signals_fd)
{
    uint64_t until_ms = clock_ms() + t->params.stop_linger;
    for (size_t i = 0; i < sizeof of_clients / sizeof *of_clients; i++) {
        if (t->servers[of_clients[i]] != NULL)
            http_server_leave(t->servers[of_clients[i]]);
    }
    while (clock_ms() < until_ms && others_stand_in(t)) {
        if (pause_for(t, signals_fd, LOOK_MS))
            return false;
    }
    return true;
}

static size_t requests_of_clients(const struct target *t)
{
    size_t sum = 0;
    for (size_t i = 0; i < sizeof of_clients / sizeof *of_clients; i++) {
        struct http_server *s = t->servers[of_clients[i]];
        sum += s != NULL ? http_server_requests(s) : 0;
    }
    return sum;
}

static void let_requests_end(const struct target *t, int signals_fd)
{
    uint64_t until_ms = clock_ms() + param_live(t->params.stop_drain);
    while (clock_ms() < until_ms && others_stand_in(t) && requests_of_clients(t) > 0) {
        if (pause_for(t, signals_fd, LOOK_MS))
            return;
    }
}

uint64_t target_leave_max_ms(const struct target_params *params)
{
    uint64_t tell_ms = params->stop_linger + params->connect_timeout; /* of the last try */
    return tell_ms + params->stop_linger + param_live(params->stop_drain);
}

void target_leave(struct target *t, int signals_fd)
{
    atomic_store(&t->leaving, true);
    copies_forgo_lease(t->copies);
    member_quiet(t->member);
    if (!tell_primary(t, signals_fd) || !linger(t, signals_fd))
        return;
    let_requests_end(t, signals_fd);
}
