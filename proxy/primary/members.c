#include "proxy/primary/members.h"

#include <pthread.h>
#include <string.h>

#include "cluster/members/quota_sums.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/primary/proxy.h"
#include "proxy/watch/events.h"

enum { TICK_MAX_MS = 250 };

/* Who waits to hear that all know of a node that it stops. */
struct stopping {
    struct stopping *next;
    char *id;
    void (*done)(void *arg, const struct error *err);
    void *arg;
};

struct members {
    struct proxy *proxy;
    struct loop_timer *timer;
    pthread_mutex_t lock; /* of what follows; held for no more than a join takes */
    struct membership *membership;
    struct quota_sums *quotas;
    struct stopping *stopping;
};

/* A verdict on its way. */
struct judging {
    struct proxy *proxy;
    char *id;
    bool gives_up;
    struct stopping *waits; /* for the verdict, or NULL */
};

static void stopping_end(struct stopping *list, const struct error *err)
{
    for (struct stopping *w; (w = list) != NULL;) {
        list = w->next;
        w->done(w->arg, err);
        free(w->id);
        free(w);
    }
}

/* All that a primary has begun ends before it does: these are the members that gave the verdict. */
static void verdict_committed(void *arg, const struct error *err)
{
    struct judging *j = arg;
    struct members *m = j->proxy->members;
    if (err != NULL)
        log_warn("node's state not changed", lstr("node", j->id), lerr(err));
    if (m != NULL && j->gives_up) {
        _cleanup_state_ const struct cluster_state *s = state_current(j->proxy->state);
        pthread_mutex_lock(&m->lock);
        membership_judged(m->membership, &s->smap, j->id, err != NULL);
        pthread_mutex_unlock(&m->lock);
    }
    stopping_end(j->waits, err);
    free(j->id);
    free(j);
}

/* Those who wait for this node, out of *list. */
static struct stopping *stopping_of(struct stopping **list, const char *id)
{
    struct stopping *found = NULL;
    for (struct stopping **at = list; *at != NULL;) {
        struct stopping *w = *at;
        if (strcmp(w->id, id) != 0) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = found;
        found = w;
    }
    return found;
}

/* `waits`: is answered when every active proxy knows of it. */
static void commit_verdict(struct proxy *p, const struct verdict *v, struct stopping *waits)
{
    const struct command cmd = verdict_command(v, clock_wall_ms());
    if (v->stopping)
        log_info("node stops", lstr("node", v->id));
    else if (v->stays)
        log_warn(v->absent ? "node's copies are passed over" : "node's copies count again",
                 lstr("node", v->id), lu64("silent_ms", v->silent_ms));
    else if (v->state == NODE_ACTIVE)
        log_info("node is back", lstr("node", v->id));
    else
        log_warn("node unreachable", lstr("node", v->id), lu64("silent_ms", v->silent_ms));
    struct judging *j = xcalloc(1, sizeof *j);
    *j = (struct judging){
        .proxy = p, .id = xstrdup(v->id), .gives_up = verdict_gives_up(v), .waits = waits};
    if (waits != NULL)
        proxy_commit_settled(p, &cmd, verdict_committed, j);
    else
        proxy_commit(p, &cmd, verdict_committed, j);
}

static void tick(void *arg)
{
    struct members *m = arg;
    _cleanup_state_ const struct cluster_state *s = state_current(m->proxy->state);
    _cleanup_free_ struct verdict *verdicts = xcalloc(s->smap.count, sizeof verdicts[0]);
    pthread_mutex_lock(&m->lock);
    size_t count = membership_tick(m->membership, &s->smap, clock_ms(), verdicts);
    struct stopping *stopping = steal(m->stopping);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < count; i++)
        commit_verdict(m->proxy, &verdicts[i], stopping_of(&stopping, verdicts[i].id));
    stopping_end(stopping, NULL); /* the map says so already, or the cluster stops as a whole */
}

struct members *members_start(struct proxy *p)
{
    const struct membership_rules rules = {.self = p->id,
                                           .timeout_ms = p->params.keepalive_timeout};
    struct members *m = xcalloc(1, sizeof *m);
    m->proxy = p;
    pthread_mutex_init(&m->lock, NULL);
    m->membership = membership_new(&rules, clock_ms());
    m->quotas = quota_sums_new();
    m->timer = loop_timer_new(p->loop, tick, m);
    uint64_t period = rules.timeout_ms / 20;
    if (period > TICK_MAX_MS)
        period = TICK_MAX_MS;
    loop_timer_start(m->timer, period, period);
    return m;
}

void members_close(struct members *m)
{
    struct error over;
    loop_timer_stop(m->timer);
    pthread_mutex_lock(&m->lock);
    struct stopping *stopping = steal(m->stopping);
    pthread_mutex_unlock(&m->lock);
    error_set(&over, E_NOT_PRIMARY, "proxy '%s' is not the primary any more", m->proxy->id);
    stopping_end(stopping, &over);
}

void members_stop(struct members *m)
{
    if (m == NULL)
        return;
    loop_timer_free(m->timer);
    membership_free(m->membership);
    quota_sums_free(m->quotas);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* The members, with the role's lock held; NULL, and no lock, where there are none. */
static struct members *members_enter(struct proxy *p, struct error *err)
{
    pthread_rwlock_rdlock(&p->role_lock);
    if (p->members != NULL)
        return p->members;
    pthread_rwlock_unlock(&p->role_lock);
    error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary any more", p->id);
    return NULL;
}

int members_register(struct proxy *p, const struct node *spec, const struct node_past *past,
                     struct command *join, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct members *m = members_enter(p, err);
    if (m == NULL)
        return E_NOT_PRIMARY;
    pthread_mutex_lock(&m->lock);
    int r =
        admission_register(s, m->membership, spec, past, clock_ms(), clock_wall_ms(), join, err);
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return r;
}

/* The map is read under the lock: a verdict that has ended is in it. */
int members_keepalive(struct proxy *p, const struct keepalive *k, uint64_t *lease_ms,
                      struct error *err)
{
    struct members *m = members_enter(p, err);
    *lease_ms = 0;
    if (m == NULL)
        return E_NOT_PRIMARY;
    pthread_mutex_lock(&m->lock);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct keepalive before;
    bool known = membership_last(m->membership, k->id, &before);
    int r = admission_keepalive(s, m->membership, k, clock_ms(), err);
    if (r == 0)
        *lease_ms = membership_lease_ms(m->membership, &s->smap, k->id);
    if (r == 0 && known)
        events_keepalive(p->events, k->id, &before, k);
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    if (!proxy_is_primary(p))
        *lease_ms = 0;
    return r;
}

int members_take_quotas(struct proxy *p, const struct cluster_state *s, const char *id,
                        json_t *list, json_t **reply, struct error *err)
{
    struct members *m = members_enter(p, err);
    *reply = NULL;
    if (m == NULL)
        return E_NOT_PRIMARY;
    pthread_mutex_lock(&m->lock);
    int r = quota_sums_take(m->quotas, s, id, list, err);
    if (r == 0)
        *reply = quota_sums_reply(m->quotas, s, id);
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return r;
}

struct quota_amount members_quota_used(struct proxy *p, uint64_t bucket_id)
{
    struct members *m = members_enter(p, NULL);
    if (m == NULL)
        return (struct quota_amount){0};
    pthread_mutex_lock(&m->lock);
    struct quota_amount used = quota_sums_of(m->quotas, bucket_id);
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return used;
}

int members_stop_node(struct proxy *p, const char *id, const char *boot,
                      void (*done)(void *arg, const struct error *err), void *arg,
                      struct error *err)
{
    struct members *m = members_enter(p, err);
    if (m == NULL)
        return E_NOT_PRIMARY;
    pthread_mutex_lock(&m->lock);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    int r = membership_stop(m->membership, &s->smap, id, boot, err);
    if (r == 0) {
        struct stopping *w = xcalloc(1, sizeof *w);
        *w = (struct stopping){.next = m->stopping, .id = xstrdup(id), .done = done, .arg = arg};
        m->stopping = w;
    }
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return r;
}

bool members_last(struct proxy *p, const char *id, struct keepalive *out)
{
    struct members *m = members_enter(p, NULL);
    if (m == NULL)
        return false;
    pthread_mutex_lock(&m->lock);
    bool found = membership_last(m->membership, id, out);
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return found;
}

uint64_t members_silent_ms(struct proxy *p, const char *id)
{
    struct members *m = members_enter(p, NULL);
    if (m == NULL)
        return 0;
    pthread_mutex_lock(&m->lock);
    uint64_t silent_ms = membership_silent_ms(m->membership, id, clock_ms());
    pthread_mutex_unlock(&m->lock);
    pthread_rwlock_unlock(&p->role_lock);
    return silent_ms;
}
