#include "gateway/uploads/upload_watch.h"

#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "cluster/placement/upload_node.h"
#include "common/clock.h"
#include "common/mem.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "net/client/client.h"

enum { LOOKS = 8 }; /* within silence_ms */

struct upload_watch {
    const struct gateway_config *config;
    struct loop_timer *timer;
    char upload[UPLOAD_ID_CHARS + 1];
    uint64_t number;
    uint64_t heard_ms; /* when its target last answered, by the map */
    bool gave_up;
};

static bool answers(const struct upload_watch *w)
{
    _cleanup_state_ const struct cluster_state *s = state_current(w->config->state);
    const struct node *n;
    return upload_node_find(&s->smap, w->upload, &n, NULL) == 0;
}

static void look(void *arg)
{
    struct upload_watch *w = arg;
    uint64_t now = clock_ms();
    if (answers(w))
        w->heard_ms = now;
    if (now - w->heard_ms < w->config->silence_ms)
        return;
    w->gave_up = true;
    loop_timer_stop(w->timer);
    http_call_cancel(w->config->client, w->number);
}

struct upload_watch *upload_watch_new(const struct gateway *g, const char *upload, uint64_t number)
{
    struct upload_watch *w = xcalloc(1, sizeof *w);
    w->config = gateway_config_of(g);
    uint64_t pause_ms = w->config->silence_ms / LOOKS;
    snprintf(w->upload, sizeof w->upload, "%s", upload);
    w->number = number;
    w->heard_ms = clock_ms();
    w->timer = loop_timer_new(w->config->loop, look, w);
    loop_timer_start(w->timer, pause_ms, pause_ms);
    return w;
}

void upload_watch_follow(struct upload_watch *w, uint64_t number)
{
    w->number = number;
}

bool upload_watch_gave_up(const struct upload_watch *w)
{
    return w->gave_up;
}

void upload_watch_free(struct upload_watch *w)
{
    if (w == NULL)
        return;
    loop_timer_free(w->timer);
    free(w);
}
