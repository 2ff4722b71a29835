#include "proxy/primary/push.h"

#include <string.h>

#include "common/backoff.h"
#include "common/log.h"
#include "common/mem.h"

static const struct backoff after_failure = {.first_ms = 100, .max_ms = 5000};

struct version {
    uint64_t term;
    uint64_t version;
};

struct peer {
    struct pusher *pusher;
    struct peer *next;
    char *id;
    char *boot;
    struct version has;  /* what it said that it holds */
    struct version sent; /* in the last message */
    bool asking;         /* it is under way */
    bool gone;           /* out of the map while a message was under way */
    unsigned failures;   /* in a row, of this run of the peer */
    bool failing;
    uint64_t retry_ms; /* not before */
};

struct settling {
    struct settling *next;
    struct version version;
    uint64_t deadline_ms;
    void (*fn)(void *arg);
    void *arg;
};

struct pusher {
    struct pusher_env env;
    char *self;
    bool closed;
    uint64_t now_ms;
    struct peer *peers;
    struct settling *settling;
};

struct pusher *pusher_new(const struct pusher_env *env, const char *self)
{
    struct pusher *ps = xcalloc(1, sizeof *ps);
    ps->env = *env;
    ps->self = xstrdup(self);
    return ps;
}

static void peer_free(struct peer *peer)
{
    free(peer->id);
    free(peer->boot);
    free(peer);
}

static void settle(struct settling **at)
{
    struct settling *w = *at;
    *at = w->next;
    w->fn(w->arg);
    free(w);
}

void pusher_close(struct pusher *ps)
{
    ps->closed = true;
    while (ps->settling != NULL)
        settle(&ps->settling);
}

void pusher_free(struct pusher *ps)
{
    if (ps == NULL)
        return;
    while (ps->peers != NULL) {
        struct peer *peer = ps->peers;
        ps->peers = peer->next;
        peer_free(peer);
    }
    free(ps->self);
    free(ps);
}

static bool is_older(struct version a, struct version b)
{
    return a.term != b.term ? a.term < b.term : a.version < b.version;
}

static struct version version_of(const struct cluster_state *s)
{
    return (struct version){s->term, s->version};
}

/* --- who ------------------------------------------------------------------------------------- */

static struct peer *peer_find(const struct pusher *ps, const char *id)
{
    struct peer *peer = ps->peers;
    while (peer != NULL && (peer->gone || strcmp(peer->id, id) != 0))
        peer = peer->next;
    return peer;
}

static void peer_add(struct pusher *ps, const struct node *n)
{
    struct peer *peer = xcalloc(1, sizeof *peer);
    *peer = (struct peer){
        .pusher = ps,
        .next = ps->peers,
        .id = xstrdup(n->id),
        .boot = xstrdup(n->boot),
    };
    ps->peers = peer;
}

/* A run that has just begun knows nothing, and what failed for the last one may work now. */
static void peer_renew(struct peer *peer, const struct node *n)
{
    if (strcmp(peer->boot, n->boot) == 0)
        return;
    free(peer->boot);
    peer->boot = xstrdup(n->boot);
    peer->has = (struct version){0};
    peer->failures = 0;
    peer->retry_ms = 0;
}

static void drop_departed(struct pusher *ps, const struct smap *m)
{
    for (struct peer **at = &ps->peers; *at != NULL;) {
        struct peer *peer = *at;
        peer->gone = peer->gone || smap_node(m, peer->id) == NULL;
        if (peer->gone && !peer->asking) {
            *at = peer->next;
            peer_free(peer);
        } else {
            at = &peer->next;
        }
    }
}

static void follow_map(struct pusher *ps, const struct smap *m)
{
    drop_departed(ps, m);
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (strcmp(n->id, ps->self) == 0)
            continue;
        struct peer *peer = peer_find(ps, n->id);
        if (peer == NULL)
            peer_add(ps, n);
        else
            peer_renew(peer, n);
    }
}

/* --- who waits to hear that all know ---------------------------------------------------------- */

static bool all_proxies_have(const struct pusher *ps, const struct smap *m, struct version v)
{
    for (const struct peer *peer = ps->peers; peer != NULL; peer = peer->next) {
        const struct node *n = peer->gone ? NULL : smap_node(m, peer->id);
        if (n != NULL && n->role == NODE_PROXY && n->state == NODE_ACTIVE && !peer->failing &&
            is_older(peer->has, v))
            return false;
    }
    return true;
}

static void settle_due(struct pusher *ps, const struct smap *m)
{
    for (struct settling **at = &ps->settling; *at != NULL;) {
        if (ps->closed || ps->now_ms >= (*at)->deadline_ms ||
            all_proxies_have(ps, m, (*at)->version))
            settle(at);
        else
            at = &(*at)->next;
    }
}

void pusher_settle(struct pusher *ps, const struct cluster_state *s, uint64_t deadline_ms,
                   void (*fn)(void *arg), void *arg)
{
    struct settling *w = xcalloc(1, sizeof *w);
    *w = (struct settling){
        .version = version_of(s), .deadline_ms = deadline_ms, .fn = fn, .arg = arg};
    struct settling **end = &ps->settling;
    while (*end != NULL)
        end = &(*end)->next;
    *end = w;
    settle_due(ps, &s->smap);
}

/* --- messages -------------------------------------------------------------------------------- */

static void note_failure(struct peer *peer, const struct error *err)
{
    if (!peer->failing)
        log_warn("state not pushed", lstr("node", peer->id), lerr(err));
    peer->failing = true;
    peer->retry_ms = peer->pusher->now_ms + backoff_ms(&after_failure, ++peer->failures);
}

static void note_success(struct peer *peer, struct version has)
{
    if (peer->failing)
        log_info("state pushed again", lstr("node", peer->id));
    peer->failing = false;
    peer->failures = 0;
    peer->has = has;
}

static void send_where_due(struct pusher *ps, const struct cluster_state *s);

static void sent(void *arg, uint64_t term, uint64_t version, const struct error *err)
{
    struct peer *peer = arg;
    struct pusher *ps = peer->pusher;
    struct version has = {term, version};
    struct error behind;
    if (err == NULL && is_older(has, peer->sent)) {
        error_set(&behind, E_STALE_MAP, "it took state %llu.%llu and holds %llu.%llu",
                  (unsigned long long)peer->sent.term, (unsigned long long)peer->sent.version,
                  (unsigned long long)term, (unsigned long long)version);
        err = &behind;
    }
    peer->asking = false;
    if (err != NULL)
        note_failure(peer, err);
    else
        note_success(peer, has);
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    drop_departed(ps, &s->smap);
    send_where_due(ps, s);
    settle_due(ps, &s->smap);
}

static void send_where_due(struct pusher *ps, const struct cluster_state *s)
{
    for (struct peer *peer = ps->peers; peer != NULL && !ps->closed; peer = peer->next) {
        const struct node *n = peer->gone ? NULL : smap_node(&s->smap, peer->id);
        if (n == NULL || peer->asking || ps->now_ms < peer->retry_ms ||
            !is_older(peer->has, version_of(s)))
            continue;
        peer->asking = true;
        peer->sent = version_of(s);
        ps->env.send(ps->env.ctx, n, s, sent, peer);
    }
}

void pusher_publish(struct pusher *ps, uint64_t now_ms)
{
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    ps->now_ms = now_ms;
    follow_map(ps, &s->smap);
    send_where_due(ps, s);
    settle_due(ps, &s->smap);
}

void pusher_tick(struct pusher *ps, uint64_t now_ms)
{
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    ps->now_ms = now_ms;
    send_where_due(ps, s);
    settle_due(ps, &s->smap);
}
