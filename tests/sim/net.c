#include "tests/sim/sim.h"

struct call {
    struct call *next, *before; /* of its caller's */
    unsigned refs;
    struct world *world;
    int from, to;
    uint64_t life; /* of the caller */
    enum channel channel;
    bool ended; /* done() was called, or its caller has died */
    bool answered;
    struct request req;
    struct answer answer;
    answer_fn *done;
    void *arg;
};

const struct request *call_request(const struct call *c)
{
    return &c->req;
}

int call_from(const struct call *c)
{
    return c->from;
}

uint64_t call_life(const struct call *c)
{
    return c->life;
}

struct call *call_keep(struct call *c)
{
    c->refs++;
    return c;
}

static void answer_done(struct answer *a)
{
    state_unref(a->state);
    json_decref(a->body);
    *a = (struct answer){0};
}

void call_drop(struct call *c)
{
    if (--c->refs > 0)
        return;
    pushed_drop(c->req.text);
    state_unref(c->req.from);
    state_unref(c->req.to);
    job_unref(c->req.job);
    json_decref(c->req.body);
    answer_done(&c->answer);
    free(c);
}

void call_release(void *call)
{
    call_drop(call);
}

/* --- the way --------------------------------------------------------------------------------- */

bool net_loses(struct world *w, int from, int to)
{
    return w->cut[from][to] || (!w->calm && world_draw(w, 1000) < w->loss);
}

/* Mostly quick; now and then slow, so that later ones overtake it. */
static uint64_t delay_ms(struct world *w)
{
    if (w->calm || world_draw(w, 20) != 0)
        return 1 + world_draw(w, 4);
    return world_draw(w, 4) != 0 ? world_draw(w, 200) : world_draw(w, 3000);
}

static void end(struct call *c, const struct answer *a)
{
    if (c->ended)
        return;
    c->ended = true;
    if (c->before != NULL)
        c->before->next = c->next;
    else
        c->world->places[c->from].calls = c->next;
    if (c->next != NULL)
        c->next->before = c->before;
    c->done(c->arg, a);
    call_drop(c);
}

static void end_with(struct call *c, int code)
{
    const struct answer a = {.code = code};
    end(c, &a);
}

static void answer_arrives(struct world *w, void *arg)
{
    struct call *c = arg;
    (void)w;
    end(c, &c->answer);
    call_drop(c);
}

static void refused(struct world *w, void *arg)
{
    struct call *c = arg;
    (void)w;
    end_with(c, E_NET);
    call_drop(c);
}

static void times_out(struct world *w, void *arg)
{
    struct call *c = arg;
    (void)w;
    end_with(c, E_TIMEOUT);
    call_drop(c);
}

void call_reply(struct world *w, struct call *c, const struct answer *a)
{
    struct answer answer = *a;
    bool dead = !w->places[c->to].up;
    if (dead || c->answered || c->ended || net_loses(w, c->to, c->from)) {
        answer_done(&answer);
        return;
    }
    c->answered = true;
    c->answer = answer;
    world_after(w, c->from, delay_ms(w), answer_arrives, call_keep(c), call_release);
}

void call_reply_code(struct world *w, struct call *c, int code)
{
    const struct answer a = {.code = code};
    call_reply(w, c, &a);
}

static void arrives(struct world *w, void *arg)
{
    struct call *c = arg;
    if (!w->places[c->to].up) { /* nobody listens there */
        if (!net_loses(w, c->to, c->from))
            world_after(w, c->from, 1, refused, call_keep(c), call_release);
    } else if (c->to == STORE) {
        store_serve(w, c);
    } else if (is_target(c->to)) {
        target_serve(w, target_index(c->to), c);
    } else {
        proxy_serve(w, (unsigned)c->to, c);
    }
    call_drop(c);
}

/* While it is stopped its kernel takes what comes: the process finds it later. */
static void arrives_at_host(struct world *w, void *arg)
{
    struct call *c = arg;
    const struct place *p = &w->places[c->to];
    if (p->up && p->thaw_at > w->now)
        world_after(w, c->to, p->thaw_at - w->now, arrives, c, call_release);
    else
        arrives(w, c);
}

void net_call(struct world *w, int from, int to, enum channel channel, const struct request *req,
              uint64_t timeout_ms, answer_fn *done, void *arg)
{
    struct place *p = &w->places[from];
    struct call *c = xmalloc(sizeof *c);
    *c = (struct call){.next = p->calls,
                       .refs = 1,
                       .world = w,
                       .from = from,
                       .to = to,
                       .life = p->life,
                       .channel = channel,
                       .req = *req,
                       .done = done,
                       .arg = arg};
    if (p->calls != NULL)
        p->calls->before = c;
    p->calls = c;
    /* As a sender does that repeats; but whoever repeats a change knows which answer is whose. */
    bool repeats = req->kind != ASK_CHANGE && req->kind != ASK_STORE;
    unsigned copies = repeats && world_chance(w, 60) ? 2 : 1;
    for (unsigned i = 0; i < copies; i++) {
        if (!net_loses(w, from, to))
            world_after(w, NOBODY, delay_ms(w), arrives_at_host, call_keep(c), call_release);
    }
    world_after(w, from, place_span(w, from, timeout_ms), times_out, call_keep(c), call_release);
}

void net_end(struct world *w, int from, enum channel channel)
{
    for (struct call *c = w->places[from].calls; c != NULL;) {
        if (c->channel == channel) {
            end_with(c, E_CANCELLED);
            c = w->places[from].calls; /* others may have ended, or begun, with it */
        } else {
            c = c->next;
        }
    }
}
