#include "proxy/push/push.h"

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
    struct version has;  /* what it said that it holds … */
    struct version base; /* … and what a difference may begin with; 0: it takes none */
    struct version sent; /* in the last message … */
    bool difference;     /* … which was one */
    bool unmatched;      /* the last one did not begin with what the node holds */
    bool other_run;      /* a new run has begun while the message was under way */
    bool active;         /* pusher_settle() waits for it … */
    bool is_proxy;       /* … or for these alone */
    bool asking;         /* it is under way */
    bool gone;           /* out of the map while a message was under way */
    unsigned failures;   /* in a row, of this run of the peer */
    bool failing;
    uint64_t retry_ms; /* not before */
};

struct settling {
    struct settling *next;
    struct version version;
    enum settle_scope scope;
    uint64_t deadline_ms;
    void (*fn)(void *arg);
    void *arg;
};

struct pusher {
    struct pusher_env env;
    char *self;
    bool closed;
    uint64_t now_ms;
    const struct cluster_state *before; /* the state before this pusher's first one, until then */
    struct peer *peers;                 /* in the order of the map; those that are gone anywhere */
    const struct cluster_state *recent[PUSH_HISTORY]; /* the newest first */
    struct settling *settling;
};

struct pusher *pusher_new(const struct pusher_env *env, const char *self,
                          const struct cluster_state *before)
{
    struct pusher *ps = xcalloc(1, sizeof *ps);
    ps->env = *env;
    ps->self = xstrdup(self);
    if (before != NULL && before->version > 0)
        ps->before = state_ref(before);
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
    for (size_t i = 0; i < PUSH_HISTORY; i++)
        state_unref(ps->recent[i]);
    state_unref(ps->before);
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

/* --- states ---------------------------------------------------------------------------------- */

static void remember(struct pusher *ps, const struct cluster_state *s)
{
    if (ps->recent[0] != NULL && state_compare(ps->recent[0], s) == 0)
        return;
    state_unref(ps->recent[PUSH_HISTORY - 1]);
    memmove(&ps->recent[1], &ps->recent[0], (PUSH_HISTORY - 1) * sizeof ps->recent[0]);
    ps->recent[0] = state_ref(s);
}

size_t pusher_kept(const struct pusher *ps)
{
    size_t count = 0;
    while (count < PUSH_HISTORY && ps->recent[count] != NULL)
        count++;
    return count;
}

static const struct cluster_state *recall(const struct pusher *ps, struct version v)
{
    for (size_t i = 0; i < PUSH_HISTORY && ps->recent[i] != NULL; i++) {
        if (ps->recent[i]->term == v.term && ps->recent[i]->version == v.version)
            return ps->recent[i];
    }
    return NULL;
}

/* The older of the two, unless `v` is older than what is kept. */
static struct version needs(struct version needed, struct version v, struct version last)
{
    return is_older(v, needed) && !is_older(v, last) ? v : needed;
}

/* A state is kept while a message to some node may begin with it: what the node has, or was sent
 * last. */
static void forget_old(struct pusher *ps)
{
    size_t count = pusher_kept(ps);
    struct version last = version_of(ps->recent[count - 1]);
    struct version needed = version_of(ps->recent[0]);
    for (const struct peer *peer = ps->peers; peer != NULL; peer = peer->next) {
        needed = needs(needed, peer->base, last);
        needed = needs(needed, peer->sent, last);
    }
    for (size_t i = count; is_older(version_of(ps->recent[i - 1]), needed); i--)
        state_unref(steal(ps->recent[i - 1]));
}

/* --- who ------------------------------------------------------------------------------------- */

/* A run that is older than this pusher most likely holds what the last primary has left. */
static struct version guess(const struct pusher *ps, const struct node *n)
{
    const struct node *then = ps->before != NULL ? smap_node(&ps->before->smap, n->id) : NULL;
    return then != NULL && strcmp(then->boot, n->boot) == 0 ? version_of(ps->before)
                                                            : (struct version){0};
}

static struct peer *peer_new(struct pusher *ps, const struct node *n)
{
    struct peer *peer = xcalloc(1, sizeof *peer);
    *peer = (struct peer){
        .pusher = ps, .id = xstrdup(n->id), .boot = xstrdup(n->boot), .base = guess(ps, n)};
    return peer;
}

/* A run that has just begun knows nothing, and what failed for the last one may work now. */
static void peer_renew(struct peer *peer, const struct node *n)
{
    peer->active = n->state == NODE_ACTIVE;
    peer->is_proxy = n->role == NODE_PROXY;
    if (strcmp(peer->boot, n->boot) == 0)
        return;
    free(peer->boot);
    peer->boot = xstrdup(n->boot);
    peer->has = (struct version){0};
    peer->base = (struct version){0};
    peer->unmatched = false;
    peer->other_run = peer->asking;
    peer->failures = 0;
    peer->failing = false;
    peer->retry_ms = 0;
}

static void peer_drop(struct pusher *ps, struct peer *peer)
{
    struct peer **at = &ps->peers;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    peer_free(peer);
}

/* Frees the peer at *at, or steps over it while its message is under way. */
static struct peer **depart(struct peer **at)
{
    struct peer *peer = *at;
    peer->gone = true;
    if (peer->asking)
        return &peer->next;
    *at = peer->next;
    peer_free(peer);
    return at;
}

/* Map and peers are both sorted by id: one walk over both. */
static void follow_map(struct pusher *ps, const struct smap *m)
{
    struct peer **at = &ps->peers;
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (strcmp(n->id, ps->self) == 0)
            continue;
        while (*at != NULL && ((*at)->gone || strcmp((*at)->id, n->id) < 0))
            at = depart(at);
        if (*at == NULL || strcmp((*at)->id, n->id) > 0) {
            struct peer *peer = peer_new(ps, n);
            peer->next = *at;
            *at = peer;
        }
        peer_renew(*at, n);
        at = &(*at)->next;
    }
    while (*at != NULL)
        at = depart(at);
}

/* --- who waits to hear that all know ---------------------------------------------------------- */

static bool is_awaited(const struct peer *peer, enum settle_scope scope)
{
    return peer->active && !peer->gone && !peer->failing &&
           (peer->is_proxy || scope == SETTLE_NODES);
}

/* What each of these nodes has at least. */
static struct version all_have(const struct pusher *ps, enum settle_scope scope)
{
    struct version least = {UINT64_MAX, UINT64_MAX};
    for (const struct peer *peer = ps->peers; peer != NULL; peer = peer->next) {
        if (is_awaited(peer, scope) && is_older(peer->has, least))
            least = peer->has;
    }
    return least;
}

static void settle_due(struct pusher *ps)
{
    if (ps->settling == NULL)
        return;
    const struct version have[] = {[SETTLE_PROXIES] = all_have(ps, SETTLE_PROXIES),
                                   [SETTLE_NODES] = all_have(ps, SETTLE_NODES)};
    for (struct settling **at = &ps->settling; *at != NULL;) {
        if (ps->closed || ps->now_ms >= (*at)->deadline_ms ||
            !is_older(have[(*at)->scope], (*at)->version))
            settle(at);
        else
            at = &(*at)->next;
    }
}

void pusher_settle(struct pusher *ps, const struct cluster_state *s, enum settle_scope scope,
                   uint64_t deadline_ms, void (*fn)(void *arg), void *arg)
{
    struct settling *w = xcalloc(1, sizeof *w);
    *w = (struct settling){
        .version = version_of(s), .scope = scope, .deadline_ms = deadline_ms, .fn = fn, .arg = arg};
    struct settling **end = &ps->settling;
    while (*end != NULL)
        end = &(*end)->next;
    *end = w;
    settle_due(ps);
}

/* --- messages -------------------------------------------------------------------------------- */

/* Would the node not take it?  Then the whole may be what it takes. */
static bool is_refusal(int code)
{
    return code != E_NET && code != E_TIMEOUT && code != E_OVERLOAD && code != E_CANCELLED &&
           code != E_NOT_READY;
}

/* Does the difference not fit what the node has?  The whole will: that is no failure. */
static bool is_misfit(const struct peer *peer, int code)
{
    return peer->difference && (code == E_INVALID || code == E_UNSUPPORTED || code == E_JSON);
}

static void note_misfit(struct peer *peer, const struct error *err)
{
    log_info("the whole state is pushed", lstr("node", peer->id), lerr(err));
    peer->base = (struct version){0};
    peer->failing = false;
}

/* A node, or this one, that has too much to do has not failed: it is waited for. */
static void note_failure(struct peer *peer, const struct error *err)
{
    if (peer->failures == 0)
        log_warn("state not pushed", lstr("node", peer->id), lerr(err));
    peer->failing = err->code != E_OVERLOAD;
    peer->unmatched = false; /* it may have taken what it was sent */
    if (is_refusal(err->code))
        peer->base = (struct version){0};
    peer->retry_ms = peer->pusher->now_ms + backoff_ms(&after_failure, ++peer->failures);
}

static void note_success(struct peer *peer, const struct push_reply *r)
{
    if (peer->failures > 0)
        log_info("state pushed again", lstr("node", peer->id));
    peer->failing = false;
    peer->unmatched = false;
    peer->failures = 0;
    peer->has = (struct version){r->term, r->version};
    peer->base = r->deltas ? peer->has : (struct version){0};
}

/* The difference did not begin with what the node holds.  The next one does, if that state is kept:
 * it may have taken a difference whose reply was lost.  The whole follows if that one does not
 * either. */
static void note_no_match(struct peer *peer, const struct push_reply *r)
{
    struct version holds = {r->term, r->version};
    bool is_news = is_older(peer->base, holds) || is_older(holds, peer->base);
    peer->base = r->deltas && is_news && !peer->unmatched ? holds : (struct version){0};
    peer->unmatched = true;
    log_debug("state is pushed again", lstr("node", peer->id), lu64("from", peer->base.version));
}

static void note_behind(struct peer *peer, const struct push_reply *r)
{
    struct error err;
    error_set(&err, E_STALE_MAP, "it took state %llu.%llu and holds %llu.%llu",
              (unsigned long long)peer->sent.term, (unsigned long long)peer->sent.version,
              (unsigned long long)r->term, (unsigned long long)r->version);
    note_failure(peer, &err);
}

static void note_reply(struct peer *peer, const struct push_reply *r, const struct error *err)
{
    if (peer->other_run)
        peer->other_run = false; /* it tells nothing of the run that there is now */
    else if (err != NULL && is_misfit(peer, err->code))
        note_misfit(peer, err);
    else if (err != NULL)
        note_failure(peer, err);
    else if (!is_older((struct version){r->term, r->version}, peer->sent))
        note_success(peer, r);
    else if (peer->difference)
        note_no_match(peer, r);
    else
        note_behind(peer, r);
}

static void send_if_due(struct peer *peer, const struct cluster_state *s);

static void sent(void *arg, const struct push_reply *r, const struct error *err)
{
    struct peer *peer = arg;
    struct pusher *ps = peer->pusher;
    peer->asking = false;
    note_reply(peer, r, err);
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    if (peer->gone)
        peer_drop(ps, peer);
    else
        send_if_due(peer, s);
    settle_due(ps);
}

static void send_if_due(struct peer *peer, const struct cluster_state *s)
{
    struct pusher *ps = peer->pusher;
    const struct node *n = peer->gone ? NULL : smap_node(&s->smap, peer->id);
    if (n == NULL || ps->closed || peer->asking || ps->now_ms < peer->retry_ms ||
        !is_older(peer->has, version_of(s)))
        return;
    const struct cluster_state *from = recall(ps, peer->base);
    peer->asking = true;
    peer->sent = version_of(s);
    peer->difference = from != NULL;
    ps->env.send(ps->env.ctx, n, from, s, sent, peer);
}

static void send_where_due(struct pusher *ps, const struct cluster_state *s)
{
    for (struct peer *peer = ps->peers; peer != NULL; peer = peer->next) {
        if (!peer->asking)
            send_if_due(peer, s);
    }
}

void pusher_publish(struct pusher *ps, uint64_t now_ms)
{
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    ps->now_ms = now_ms;
    if (ps->before != NULL)
        remember(ps, ps->before);
    remember(ps, s);
    follow_map(ps, &s->smap);
    state_unref(steal(ps->before));
    forget_old(ps);
    send_where_due(ps, s);
    settle_due(ps);
}

void pusher_tick(struct pusher *ps, uint64_t now_ms)
{
    _cleanup_state_ const struct cluster_state *s = ps->env.state(ps->env.ctx);
    ps->now_ms = now_ms;
    send_where_due(ps, s);
    settle_due(ps);
}
