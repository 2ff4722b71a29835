/* A proxy around the daemons' logic: proxy/primary/follower_plan.h, election.h, etcd_documents.h,
 * term.h, state_accept().  Its role goes round as in proxy/primary/candidate.c:
 *
 *   FOLLOWER ─ elected ─▶ LOADING ─▶ BEGINNING ─▶ PRIMARY ─ not elected ─▶ ENDING ─▶ FOLLOWER */
#include <string.h>

#include "common/jsonx.h"
#include "proxy/primary/term.h"
#include "tests/sim/proxy_sim.h"

enum { TICK = 50, SAVE_DELAY = 1000, LOAD_PAUSE = 50 };

static struct world *world_of(const struct proxy_sim *p)
{
    return p->w;
}

bool proxy_leads(const struct proxy_sim *p)
{
    return p->is_primary &&
           (p->is_sole || election_held(&p->election, place_ms(p->w, p->place)) != 0);
}

struct node proxy_node(const struct proxy_sim *p, char url[static 24])
{
    const struct place *place = &p->w->places[p->place];
    place_url(p->w, p->place, url);
    return (struct node){.id = place->name,
                         .role = NODE_PROXY,
                         .public_url = url,
                         .control_url = url,
                         .data_url = "",
                         .boot = place->boot};
}

/* --- the state ------------------------------------------------------------------------------- */

static void save(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    (void)w;
    state_unref(p->file);
    p->file = state_current(p->holder);
    p->unsaved = false;
}

/* The first one at once, others a while later. */
static void keep_on_disk(struct proxy_sim *p)
{
    if (p->file == NULL) {
        save(p->w, p);
    } else if (!p->unsaved) {
        p->unsaved = true;
        world_after(p->w, p->place, SAVE_DELAY, save, p, NULL);
    }
}

void proxy_put_in_force(struct proxy_sim *p, const struct cluster_state *s)
{
    _cleanup_state_ const struct cluster_state *before = state_current(p->holder);
    if (!state_advance(p->holder, s))
        return;
    check_in_force(p->w, p->place, before, s);
    p->ready = true;
    if (!p->is_sole)
        keep_on_disk(p);
    if (p->is_primary)
        pusher_publish(p->pusher, place_ms(p->w, p->place));
}

/* The mutant's: without a look. */
static void put_in_force_anyhow(struct proxy_sim *p, const struct cluster_state *s)
{
    _cleanup_state_ const struct cluster_state *before = state_current(p->holder);
    state_holder_free(p->holder);
    p->holder = state_holder_new(state_ref(s));
    check_in_force(p->w, p->place, before, s);
}

static int take(struct proxy_sim *p, const struct cluster_state *s)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->holder);
    bool newer;
    struct error err = ERROR_INIT;
    if (p->w->mutant == MUTANT_takes_any && now->version > 0) {
        put_in_force_anyhow(p, s);
        return 0;
    }
    int r = state_accept(now, s, &newer, &err);
    if (r != 0)
        world_note(p->w, p->place, "does not take a state: %s", err.message);
    if (r == 0 && newer)
        proxy_put_in_force(p, s);
    return r;
}

/* --- who is primary -------------------------------------------------------------------------- */

static int primary_of_state(struct proxy_sim *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    const struct node *n = smap_node(&s->smap, s->primary);
    int place = n != NULL ? place_of_name(p->w, n->id) : NOBODY;
    return place == p->place ? NOBODY : place;
}

/* As proxy_find_primary() has it: the election is ahead of the state. */
static int find_primary(struct proxy_sim *p)
{
    if (p->known == PRIMARY_UNKNOWN)
        return primary_of_state(p);
    return p->known == PRIMARY_KNOWN && p->known_place != p->place ? p->known_place : NOBODY;
}

/* --- the follower ---------------------------------------------------------------------------- */

struct question {
    struct proxy_sim *proxy;
    enum follower_call call;
};

static void follower_calls(struct proxy_sim *p, enum follower_call call);

static int question_code(struct proxy_sim *p, enum follower_call call, const struct answer *a)
{
    return a->code == 0 && call != FOLLOWER_KEEPALIVE ? take(p, a->state) : a->code;
}

static void question_ended(void *arg, const struct answer *a)
{
    struct question *q = arg;
    struct proxy_sim *p = q->proxy;
    p->asking = false;
    if (p->follows) {
        _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
        bool newer = a->term > s->term || (a->term == s->term && a->version > s->version);
        int code = question_code(p, q->call, a);
        follower_calls(p, follower_plan_ended(&p->plan, q->call, code, newer));
    }
    free(q);
}

static void follower_calls(struct proxy_sim *p, enum follower_call call)
{
    static const enum request_kind kinds[] = {
        [FOLLOWER_REGISTER] = ASK_REGISTER,
        [FOLLOWER_KEEPALIVE] = ASK_KEEPALIVE,
        [FOLLOWER_FETCH] = ASK_STATE,
    };
    struct world *w = p->w;
    int to = find_primary(p);
    bool has_join = !w->is_shared;
    if ((p->plan.use_join && has_join) || (to == NOBODY && has_join))
        to = 0;
    if (call == FOLLOWER_NOTHING || to == NOBODY)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct request req = {.kind = kinds[call],
                          .node = p->place,
                          .term = s->term,
                          .version = s->version,
                          .cluster = w->places[p->place].up && s->version > 0 ? "c-sim" : ""};
    memcpy(req.boot, w->places[p->place].boot, sizeof req.boot);
    struct question *q = xmalloc(sizeof *q);
    *q = (struct question){p, call};
    p->asking = true;
    net_call(w, p->place, to, FOR_NODE, &req, CALL_TIMEOUT, question_ended, q);
}

static void follower_tick(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    if (p->follows && !p->asking)
        follower_calls(p, follower_plan_call(&p->plan));
    world_after(w, p->place, place_span(w, p->place, KEEPALIVE_INTERVAL), follower_tick, p, NULL);
}

void proxy_follow(struct proxy_sim *p, bool follows)
{
    p->follows = follows;
    p->plan.member = false;
}

/* --- the role -------------------------------------------------------------------------------- */

static void role_event(struct world *w, void *arg);

void proxy_role_changed(struct proxy_sim *p)
{
    world_after(p->w, p->place, 0, role_event, p, NULL);
}

static void back_to_follower(struct proxy_sim *p)
{
    p->role = FOLLOWER;
    p->leads = 0;
    proxy_follow(p, true);
    proxy_role_changed(p);
}

static void term_begun(void *arg, const struct error *err)
{
    struct proxy_sim *p = arg;
    if (err != NULL) {
        world_note(p->w, p->place, "cannot begin a term: %s", err->message);
        if (p->is_sole) {
            world_exit(p->w, p->place);
        } else {
            proxy_resign(p);
            back_to_follower(p);
        }
        return;
    }
    p->role = PRIMARY;
    primary_start(p, p->left);
    proxy_role_changed(p);
}

static void begin_term(struct proxy_sim *p, const struct cluster_state *base, bool is_first,
                       uint64_t revision)
{
    char url[24];
    const struct node self = proxy_node(p, url);
    state_unref(p->left);
    p->left = state_ref(base);
    const struct command cmd =
        term_begin(base, &self, revision, false, place_wall_ms(p->w, p->place));
    struct change *c = change_new(&cmd, term_begun, p);
    change_begins(c, base, is_first);
    p->role = BEGINNING;
    proxy_follow(p, false);
    proxy_post(p, c);
}

static void refuse_to_lead(struct proxy_sim *p, const struct error *err)
{
    world_note(p->w, p->place, "elected, but cannot be primary: %s", err->message);
    proxy_resign(p);
    back_to_follower(p);
}

static int documents_of(struct proxy_sim *p, json_t *body, struct cluster_state **out,
                        struct error *err)
{
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs page = {0};
    _cleanup_(etcd_gather_done)
    struct etcd_gather g = {.prefix = PREFIX};
    int r;
    if ((r = etcd_kvs_parse(body, &page, err)) != 0 ||
        (r = etcd_gather_take(&g, &page, err)) != 0 || (r = etcd_gather_state(&g, out, err)) != 0)
        return r;
    p->fence.head = g.head;
    return 0;
}

static void load(struct world *w, void *arg);

static void loaded(void *arg, const struct answer *a)
{
    struct proxy_sim *p = arg;
    struct world *w = world_of(p);
    struct cluster_state *found = NULL;
    struct error err = ERROR_INIT;
    if (a->code != 0 && place_ms(w, p->place) < p->load_end_ms && w->places[p->place].up) {
        world_after(w, p->place, LOAD_PAUSE, load, p, NULL);
        return;
    }
    int r = a->code != 0 ? error_set(&err, a->code, "documents not read")
                         : documents_of(p, a->body, &found, &err);
    if (r == 0 && store_elected(w) == p->fence.election && p->fence.election != 0)
        check_loaded(w, p->place, found);
    _cleanup_state_ const struct cluster_state *now = state_current(p->holder);
    if (w->mutant == MUTANT_own_past && now->version > 0) {
        state_unref(found);
        found = state_ref(now);
    }
    if (r == 0)
        r = term_check_base(now, found, PREFIX, &err);
    if (r == 0) {
        bool is_first = found == NULL;
        _cleanup_state_ const struct cluster_state *base =
            is_first ? state_new("c-sim") : state_ref(found);
        begin_term(p, base, is_first, p->leads);
    } else {
        refuse_to_lead(p, &err);
    }
    state_unref(found);
}

static void load(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    const struct request req = {.kind = ASK_STORE,
                                .path = "/v3/kv/range",
                                .body = etcd_range(PREFIX "/", PREFIX "0", 0, 500)};
    net_call(w, p->place, STORE, FOR_STORE, &req, LEASE_TTL / 3, loaded, p);
}

static void stop_parts(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    (void)w;
    primary_stop(p);
    back_to_follower(p);
}

/* What the parts have committed meanwhile stands behind the barrier, and is refused before they go.
 */
static void ended(void *arg, const struct error *err)
{
    struct proxy_sim *p = arg;
    (void)err;
    world_after(p->w, p->place, 0, stop_parts, p, NULL);
}

static void role_event(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    uint64_t held = election_held(&p->election, place_ms(w, p->place));
    if (p->is_sole)
        return;
    if (p->role == PRIMARY && held != p->leads) {
        p->role = ENDING;
        primary_close(p);
        proxy_post(p, change_new(NULL, ended, p));
    } else if (p->role == FOLLOWER && held != 0) {
        p->role = LOADING;
        p->leads = held;
        p->fence = (struct etcd_fence){.prefix = PREFIX, .election = held};
        p->load_end_ms = place_ms(w, p->place) + CALL_TIMEOUT;
        load(w, p);
    }
}

/* --- requests -------------------------------------------------------------------------------- */

struct passing {
    struct world *world;
    struct call *call;
};

/* Whether a change that was passed on was made is not known. */
static void passed(void *arg, const struct answer *a)
{
    struct passing *passing = arg;
    bool unknown = a->code == E_NET || a->code == E_TIMEOUT || a->code == E_CANCELLED;
    struct answer answer = {.code = unknown ? E_IN_DOUBT : a->code,
                            .term = a->term,
                            .version = a->version,
                            .state = a->state != NULL ? state_ref(a->state) : NULL};
    call_reply(passing->world, passing->call, &answer);
    call_drop(passing->call);
    free(passing);
}

static void pass_to_primary(struct proxy_sim *p, struct call *c)
{
    struct request req = *call_request(c);
    int to = find_primary(p);
    if (to == NOBODY || req.forwarded) {
        call_reply_code(p->w, c, E_NOT_PRIMARY);
        return;
    }
    struct passing *passing = xmalloc(sizeof *passing);
    *passing = (struct passing){p->w, call_keep(c)};
    req.forwarded = true;
    net_call(p->w, p->place, to, FOR_NODE, &req, CALL_TIMEOUT, passed, passing);
}

static int take_push(struct proxy_sim *p, struct pushed *text)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->holder);
    struct cluster_state *s;
    int r = pushed_read(p->w, now, text, &s);
    if (r == 0 && s != NULL)
        r = take(p, s);
    state_unref(s);
    return r;
}

static void serve_push(struct proxy_sim *p, struct call *c)
{
    struct answer a = {0};
    if (p->w->mutant == MUTANT_lost_news)
        return;
    a.code = p->is_primary ? E_EXISTS : take_push(p, call_request(c)->text);
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    a.term = s->term;
    a.version = s->version;
    a.deltas = true;
    call_reply(p->w, c, &a);
}

static void serve_state(struct proxy_sim *p, struct call *c)
{
    struct answer a = {.state = state_current(p->holder)};
    call_reply(p->w, c, &a);
}

static void serve_moved(struct proxy_sim *p, struct call *c)
{
    const struct request *req = call_request(c);
    if (p->is_primary)
        jobs_driver_moved(p->jobs, req->job_id, p->w->places[req->node].name);
    call_reply_code(p->w, c, 0);
}

void proxy_serve(struct world *w, unsigned index, struct call *c)
{
    struct proxy_sim *p = w->proxy[index];
    enum request_kind kind = call_request(c)->kind;
    if (kind == PUSH_STATE)
        serve_push(p, c);
    else if (!p->ready)
        call_reply_code(w, c, E_NOT_READY);
    else if (kind == ASK_STATE)
        serve_state(p, c);
    else if (kind == TELL_MOVED)
        serve_moved(p, c);
    else if (!proxy_leads(p))
        pass_to_primary(p, c);
    else if (kind == ASK_REGISTER)
        primary_serve_register(p, c);
    else if (kind == ASK_KEEPALIVE)
        primary_serve_keepalive(p, c);
    else
        primary_serve_change(p, c);
}

/* --- its life -------------------------------------------------------------------------------- */

static void tick(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    primary_tick(p);
    world_after(w, p->place, p->is_primary ? place_span(w, p->place, TICK) : 4 * TICK, tick, p,
                NULL);
}

static void start_sole(struct proxy_sim *p)
{
    struct world *w = p->w;
    if (p->maybe != NULL && world_draw(w, 2) == 0) { /* what failed is there all the same */
        check_durable(w, p->place, w->places[p->place].life - 1, p->durable, p->maybe);
        state_unref(p->durable);
        p->durable = state_ref(p->maybe);
    }
    state_unref(p->maybe);
    p->maybe = NULL;
    if (w->mutant == MUTANT_lying_disk && p->before != NULL) {
        state_unref(p->durable);
        p->durable = state_ref(p->before);
    }
    bool is_first = p->durable == NULL;
    _cleanup_state_ const struct cluster_state *base =
        is_first ? state_new("c-sim") : state_ref(p->durable);
    state_holder_free(p->holder);
    p->holder = state_holder_new(state_ref(base));
    begin_term(p, base, is_first, (uint64_t)place_wall_ms(w, p->place));
}

static void start_follower(struct proxy_sim *p)
{
    struct world *w = p->w;
    const struct election_rules rules = {.ttl_ms = LEASE_TTL, .stands = p->electable};
    state_holder_free(p->holder);
    p->holder = state_holder_new(p->file != NULL ? state_ref(p->file) : state_new(""));
    p->ready = p->file != NULL;
    if (p->ready)
        check_in_force(w, p->place, NULL, p->file);
    p->plan = (struct follower_plan){0};
    proxy_follow(p, true);
    world_after(w, p->place, world_draw(w, KEEPALIVE_INTERVAL), follower_tick, p, NULL);
    p->known = PRIMARY_UNKNOWN;
    if (w->is_shared) {
        election_init(&p->election, &rules);
        world_after(w, p->place, world_draw(w, 100), proxy_election_run, p, NULL);
    }
}

void proxy_sim_start(struct world *w, unsigned index)
{
    struct proxy_sim *p = w->proxy[index];
    p->role = FOLLOWER;
    p->asking = p->calling = p->unsaved = false;
    p->told = p->leads = 0;
    writer_open(p);
    world_after(w, p->place, TICK, tick, p, NULL);
    if (p->is_sole)
        start_sole(p);
    else
        start_follower(p);
}

/* The place is down already: nothing goes out. */
void proxy_sim_crash(struct world *w, unsigned index)
{
    struct proxy_sim *p = w->proxy[index];
    p->follows = false;
    if (p->is_primary)
        primary_close(p);
    writer_shut(p);
    if (p->pusher != NULL)
        primary_stop(p);
    net_end(w, p->place, FOR_NODE);
    net_end(w, p->place, FOR_STORE);
}

void proxy_sim_resign(struct world *w, unsigned index)
{
    if (w->places[index].up && w->is_shared)
        proxy_resign(w->proxy[index]);
}

bool proxy_sim_is_primary(struct world *w, unsigned index)
{
    return w->places[index].up && proxy_leads(w->proxy[index]);
}

const struct cluster_state *proxy_sim_state(struct world *w, unsigned index)
{
    _cleanup_state_ const struct cluster_state *s = state_current(w->proxy[index]->holder);
    return s; /* the holder has it */
}

void proxy_sim_new(struct world *w, unsigned index)
{
    struct proxy_sim *p = xcalloc(1, sizeof *p);
    *p = (struct proxy_sim){.w = w,
                            .index = index,
                            .place = (int)index,
                            .is_sole = !w->is_shared && index == 0,
                            .electable = w->is_shared && (index < 2 || world_draw(w, 4) != 0),
                            .holder = state_holder_new(state_new(""))};
    w->proxy[index] = p;
}

void proxy_sim_free(struct world *w, unsigned index)
{
    struct proxy_sim *p = w->proxy[index];
    state_holder_free(p->holder);
    state_unref(p->file);
    state_unref(p->durable);
    state_unref(p->before);
    state_unref(p->left);
    state_unref(p->maybe);
    free(p);
}
