/* What only the primary has, around the daemons' logic: proxy/metastore/writer.h, push.h, jobs.h,
 * admission.h, cluster/members/membership.h. */
#include <string.h>

#include "cluster/members/lease.h"
#include "common/jsonx.h"
#include "proxy/primary/admission.h"
#include "proxy/jobs/rebalance_job.h"
#include "proxy/jobs/standing_job.h"
#include "tests/sim/proxy_sim.h"

enum { JUDGE_INTERVAL = 250, RETRY_PAUSE = 50, REQUEST_MAX = 1536 << 10 };

static const struct cluster_state *env_state(void *ctx)
{
    const struct proxy_sim *p = ctx;
    return state_current(p->holder);
}

/* --- the single writer ----------------------------------------------------------------------- */

static int env_check(void *ctx, const struct command *cmd, bool begins, struct error *err)
{
    (void)cmd;
    const struct proxy_sim *p = ctx;
    if (p->closing)
        return error_set(err, E_NOT_READY, "it is stopping");
    return begins || proxy_leads(p) ? 0 : error_set(err, E_NOT_PRIMARY, "it is not the primary");
}

static void written(struct proxy_sim *p, int code)
{
    struct error err;
    if (!p->writing.active)
        return;
    json_decref(p->writing.body);
    p->writing = (struct writing){0};
    error_set(&err, code, "not durable");
    writer_written(p->writer, code != 0 ? &err : NULL);
}

static void fenced_off(struct world *w, void *arg)
{
    (void)w;
    written(arg, E_NOT_PRIMARY);
}

static void told_early(struct world *w, void *arg)
{
    (void)w;
    written(arg, 0);
}

/* --- in etcd */

static void attempt(struct world *w, void *arg);

static void verdict_known(struct proxy_sim *p, enum etcd_verdict verdict, uint64_t head)
{
    if (verdict == ETCD_MADE) {
        p->fence.head = head;
        written(p, 0);
        return;
    }
    proxy_resign(p);
    written(p, E_NOT_PRIMARY);
}

/* A transport's error says nothing of what became of it. */
static int code_of(const struct answer *a)
{
    bool unknown = a->code == E_NET || a->code == E_TIMEOUT || a->code == E_CANCELLED;
    return unknown ? E_IN_DOUBT : a->code;
}

static void attempt_ended(void *arg, const struct answer *a)
{
    struct proxy_sim *p = arg;
    struct writing *wr = &p->writing;
    enum etcd_verdict verdict = ETCD_MADE;
    uint64_t head = 0;
    int code = code_of(a);
    if (!wr->active)
        return;
    enum election_verdict kind = VERDICT_NONE;
    if (code == 0 && etcd_change_verdict(a->body, &p->fence, wr->to, &verdict, &head, NULL) == 0)
        kind = verdict == ETCD_OVERTAKEN ? VERDICT_OVERTAKEN : VERDICT_FINAL;
    uint64_t now = place_ms(p->w, p->place);
    bool leads = election_held(&p->election, now) == p->fence.election;
    switch (election_change_ended(&wr->change, code, kind, leads, now)) {
    case CHANGE_KNOWN:
        verdict_known(p, verdict, head);
        break;
    case CHANGE_REFUSED:
        written(p, code);
        break;
    case CHANGE_AGAIN:
        world_after(p->w, p->place, RETRY_PAUSE, attempt, p, NULL);
        break;
    case CHANGE_IN_DOUBT:
        world_note(p->w, p->place, "change %llu.%llu is in doubt", (unsigned long long)wr->to->term,
                   (unsigned long long)wr->to->version);
        run_tally_now->doubts++;
        proxy_resign(p);
        written(p, p->w->mutant == MUTANT_doubt_is_no ? E_NOT_PRIMARY : E_IN_DOUBT);
        break;
    }
}

static void attempt(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    struct writing *wr = &p->writing;
    if (!wr->active)
        return;
    const struct request req = {.kind = ASK_STORE,
                                .path = "/v3/kv/txn",
                                .body = json_incref(wr->body),
                                .from = wr->from != NULL ? state_ref(wr->from) : NULL,
                                .to = state_ref(wr->to)};
    net_call(w, p->place, STORE, FOR_STORE, &req, LEASE_TTL / 3, attempt_ended, p);
}

static int write_etcd(struct proxy_sim *p, const struct cluster_state *from,
                      const struct cluster_state *to, struct error *err)
{
    uint64_t now = place_ms(p->w, p->place);
    struct writing *wr = &p->writing;
    *wr = (struct writing){
        .active = true, .from = from, .to = to, .change.end_ms = now + CALL_TIMEOUT};
    if (p->fence.election == 0 || election_held(&p->election, now) != p->fence.election) {
        world_after(p->w, p->place, 0, fenced_off, p, NULL);
        return 0;
    }
    int r = etcd_change(&p->fence, from, to, REQUEST_MAX, &wr->body, err);
    if (r != 0) {
        wr->active = false;
        return r;
    }
    attempt(p->w, p);
    if (p->w->mutant == MUTANT_early_answer)
        world_after(p->w, p->place, 0, told_early, p, NULL);
    return 0;
}

/* --- in the embedded metastore */

static void make_durable(struct proxy_sim *p)
{
    struct writing *wr = &p->writing;
    check_durable(p->w, p->place, p->w->places[p->place].life, wr->from, wr->to);
    state_unref(p->before);
    p->before = p->durable;
    p->durable = state_ref(wr->to);
    state_unref(p->maybe);
    p->maybe = NULL;
}

/* A write that failed may be there all the same, until another one succeeds. */
static void disk_answers(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    if (!p->writing.active)
        return;
    if (world_chance(w, 40)) {
        state_unref(p->maybe);
        p->maybe = state_ref(p->writing.to);
        written(p, E_IO);
    } else {
        make_durable(p);
        written(p, 0);
    }
}

static int write_disk(struct proxy_sim *p, const struct cluster_state *from,
                      const struct cluster_state *to)
{
    p->writing = (struct writing){.active = true, .from = from, .to = to};
    uint64_t ms = world_chance(p->w, 50) ? world_draw(p->w, 3000) : 1 + world_draw(p->w, 15);
    world_after(p->w, p->place, ms, disk_answers, p, NULL);
    if (p->w->mutant == MUTANT_early_answer)
        world_after(p->w, p->place, 0, told_early, p, NULL);
    return 0;
}

static int env_write(void *ctx, const struct cluster_state *from, const struct cluster_state *to,
                     struct error *err)
{
    struct proxy_sim *p = ctx;
    return p->is_sole ? write_disk(p, from, to) : write_etcd(p, from, to, err);
}

static void env_publish(void *ctx, const struct cluster_state *s)
{
    proxy_put_in_force(ctx, s);
}

static void env_settle(void *ctx, enum settle_scope scope, void (*fn)(void *arg), void *arg)
{
    struct proxy_sim *p = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    if (p->is_primary)
        pusher_settle(p->pusher, s, scope, place_ms(p->w, p->place) + SETTLE_TIMEOUT, fn, arg);
    else
        fn(arg);
}

void writer_open(struct proxy_sim *p)
{
    const struct writer_env env = {.ctx = p,
                                   .state = env_state,
                                   .check = env_check,
                                   .write = env_write,
                                   .publish = env_publish,
                                   .settle = env_settle};
    p->writer = writer_new(&env);
    p->posted = NULL;
    p->posted_end = &p->posted;
    p->closing = false;
}

static void run_posted(struct world *w, void *arg)
{
    struct proxy_sim *p = arg;
    (void)w;
    while (p->posted != NULL) {
        struct posted *first = p->posted;
        p->posted = first->next;
        if (p->posted == NULL)
            p->posted_end = &p->posted;
        writer_put(p->writer, first->change);
        free(first);
    }
}

void proxy_post(struct proxy_sim *p, struct change *c)
{
    struct posted *last = xmalloc(sizeof *last);
    *last = (struct posted){.change = c};
    *p->posted_end = last;
    p->posted_end = &last->next;
    world_after(p->w, p->place, 0, run_posted, p, NULL);
}

/* In a crash what is being written may have been, or not. */
void writer_shut(struct proxy_sim *p)
{
    p->closing = true;
    if (p->writing.active && p->is_sole && world_draw(p->w, 2) == 0)
        make_durable(p);
    written(p, E_CANCELLED);
    run_posted(p->w, p);
    writer_free(p->writer);
    p->writer = NULL;
}

/* --- pushes ---------------------------------------------------------------------------------- */

struct pushing {
    struct proxy_sim *proxy;
    void (*done)(void *arg, const struct push_reply *r, const struct error *err);
    void *arg;
};

static void pushed(void *arg, const struct answer *a)
{
    struct pushing *push = arg;
    struct error err;
    error_set(&err, a->code, "not taken");
    const struct push_reply r = {a->term, a->version, a->deltas};
    push->done(push->arg, &r, a->code != 0 ? &err : NULL);
    free(push);
}

static void env_push(void *ctx, const struct node *n, const struct cluster_state *from,
                     const struct cluster_state *s,
                     void (*done)(void *arg, const struct push_reply *r, const struct error *err),
                     void *arg)
{
    struct proxy_sim *p = ctx;
    struct pushing *push = xmalloc(sizeof *push);
    *push = (struct pushing){p, done, arg};
    const struct request req = {.kind = PUSH_STATE,
                                .text = pushed_of(p->w, from, s),
                                .term = s->term,
                                .version = s->version};
    net_call(p->w, p->place, place_of_name(p->w, n->id), FOR_PRIMARY, &req, CALL_TIMEOUT, pushed,
             push);
}

/* --- jobs ------------------------------------------------------------------------------------ */

struct asking {
    jobs_answer_fn *done;
    void *arg;
};

static void asked(void *arg, const struct answer *a)
{
    struct asking *asking = arg;
    struct error err;
    error_set(&err, a->code, "no report");
    asking->done(asking->arg, a->code == 0 ? a->body : NULL, a->code != 0 ? &err : NULL);
    free(asking);
}

static void env_order(void *ctx, const struct node *target, enum controller_order order,
                      const struct job *job, jobs_answer_fn *done, void *arg)
{
    struct proxy_sim *p = ctx;
    if (p->parts_closed)
        return; /* and the driver is freed without an answer */
    struct asking *asking = xmalloc(sizeof *asking);
    *asking = (struct asking){done, arg};
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    const struct request req = {.kind = ASK_ORDER,
                                .order = order,
                                .job = job_ref(job),
                                .term = s->term,
                                .version = s->version};
    net_call(p->w, p->place, place_of_name(p->w, target->id), FOR_PRIMARY, &req, CALL_TIMEOUT,
             asked, asking);
}

static void env_commit(void *ctx, const struct command *cmd,
                       void (*done)(void *arg, const struct error *err), void *arg)
{
    proxy_post(ctx, change_new(cmd, done, arg));
}

static int env_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    return standing_is(job, rebalance_kind.name) ? rebalance_kind.fits(job, s, err) : 0;
}

static int64_t env_wall(void *ctx)
{
    const struct proxy_sim *p = ctx;
    return place_wall_ms(p->w, p->place);
}

/* --- verdicts -------------------------------------------------------------------------------- */

/* A verdict that gives a node up. */
struct judging {
    struct proxy_sim *proxy;
    char id[8];
};

static void taken_back(void *arg, const struct error *err)
{
    (void)arg, (void)err; /* one that was not committed comes again */
}

static void given_up(void *arg, const struct error *err)
{
    struct judging *j = arg;
    _cleanup_state_ const struct cluster_state *s = state_current(j->proxy->holder);
    if (j->proxy->membership != NULL)
        membership_judged(j->proxy->membership, &s->smap, j->id, err != NULL);
    free(j);
}

static struct change *verdict_change(struct proxy_sim *p, const struct verdict *v)
{
    const struct command cmd = verdict_command(v, place_wall_ms(p->w, p->place));
    if (!verdict_gives_up(v))
        return change_new(&cmd, taken_back, NULL);
    struct judging *j = xcalloc(1, sizeof *j);
    j->proxy = p;
    snprintf(j->id, sizeof j->id, "%s", v->id);
    return change_new(&cmd, given_up, j);
}

static void judge(struct proxy_sim *p, uint64_t now)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct verdict verdicts[NODES_MAX];
    if (p->w->mutant == MUTANT_hasty)
        now *= 10;
    size_t count = membership_tick(p->membership, &s->smap, now, verdicts);
    for (size_t i = 0; i < count; i++) {
        const struct verdict *v = &verdicts[i];
        if (!v->stays)
            check_verdict(p->w, p->place, v->id, v->state == NODE_ACTIVE);
        proxy_post(p, verdict_change(p, v));
    }
}

/* --- rebalance ------------------------------------------------------------------------------- */

static void rebalance_stepped(void *arg, const struct error *err)
{
    struct proxy_sim *p = arg;
    (void)err; /* what was not committed comes again */
    p->rebalancing = false;
}

/* As job_glue.c has it. */
static void step_rebalance(struct proxy_sim *p, uint64_t now)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct command cmd;
    if (p->placed_ms == 0 || p->placed != s->smap.placed) {
        p->placed = s->smap.placed;
        p->placed_ms = now;
    }
    bool next =
        !p->rebalancing &&
        rebalance_kind.next(s,
                            &(struct standing_now){.stood_ms = now - p->placed_ms,
                                                   .wall_ms = place_wall_ms(p->w, p->place)},
                            &cmd);
    if (!next)
        return;
    struct job *job = (struct job *)cmd.job;
    if (job != NULL) { /* drawn from the kernel: a seed would not repeat it */
        free(job->id);
        job->id = xprintf("rbl-%llu", (unsigned long long)s->version);
        cmd.name = job->id;
    }
    p->rebalancing = true;
    proxy_post(p, change_new(&cmd, rebalance_stepped, p));
    job_unref(job);
}

/* --- the whole ------------------------------------------------------------------------------- */

void primary_start(struct proxy_sim *p, const struct cluster_state *before)
{
    uint64_t now = place_ms(p->w, p->place);
    const struct membership_rules rules = {.self = p->w->places[p->place].name,
                                           .timeout_ms = KEEPALIVE_TIMEOUT};
    const struct pusher_env push = {.ctx = p, .state = env_state, .send = env_push};
    const struct jobs_env jobs = {.ctx = p,
                                  .state = env_state,
                                  .commit = env_commit,
                                  .send = env_order,
                                  .fits = env_fits,
                                  .wall_ms = env_wall};
    const struct jobs_limits limits = {.keep_ms = UINT32_MAX,
                                       .keep_max = 10000,
                                       .keep_bytes = 1 << 30,
                                       .running_max = 4,
                                       .attempts_max = 3};
    p->membership = membership_new(&rules, p->w->mutant == MUTANT_hasty ? 10 * now : now);
    p->pusher = pusher_new(&push, rules.self, before);
    p->jobs = jobs_driver_new(&jobs, &limits);
    p->parts_closed = p->rebalancing = false;
    p->placed_ms = 0;
    p->judged_ms = p->drove_ms = now;
    p->is_primary = true;
    world_note(p->w, p->place, "is primary");
    pusher_publish(p->pusher, now);
}

void primary_tick(struct proxy_sim *p)
{
    uint64_t now = place_ms(p->w, p->place);
    if (!p->is_primary)
        return;
    pusher_tick(p->pusher, now);
    if (now - p->judged_ms >= JUDGE_INTERVAL) {
        p->judged_ms = now;
        judge(p, now);
    }
    if (now - p->drove_ms >= JOBS_INTERVAL) {
        p->drove_ms = now;
        step_rebalance(p, now);
        jobs_driver_tick(p->jobs);
    }
}

void primary_close(struct proxy_sim *p)
{
    p->is_primary = false;
    p->parts_closed = true;
    world_note(p->w, p->place, "is primary no longer");
    pusher_close(p->pusher);
}

void primary_stop(struct proxy_sim *p)
{
    net_end(p->w, p->place, FOR_PRIMARY);
    jobs_driver_free(p->jobs);
    pusher_free(p->pusher);
    membership_free(p->membership);
    p->jobs = NULL;
    p->pusher = NULL;
    p->membership = NULL;
}

/* --- requests -------------------------------------------------------------------------------- */

struct registering {
    struct proxy_sim *proxy;
    struct call *call;
};

static void registered(void *arg, const struct error *err)
{
    struct registering *r = arg;
    struct answer a = {.code = err != NULL ? err->code : 0};
    if (err == NULL)
        a.state = state_current(r->proxy->holder);
    call_reply(r->proxy->w, r->call, &a);
    call_drop(r->call);
    free(r);
}

void primary_serve_register(struct proxy_sim *p, struct call *c)
{
    const struct request *req = call_request(c);
    struct world *w = p->w;
    char url[24];
    place_url(w, req->node, url);
    bool is_proxy = !is_target(req->node);
    const struct node n = {.id = w->places[req->node].name,
                           .role = is_proxy ? NODE_PROXY : NODE_TARGET,
                           .public_url = url,
                           .control_url = url,
                           .data_url = is_proxy ? "" : url,
                           .weight = 1024,
                           .boot = req->boot};
    const struct node_past past = {
        .cluster = req->cluster, .term = req->term, .version = req->version};
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct command join;
    struct error err = ERROR_INIT;
    if (admission_register(s, p->membership, &n, &past, place_ms(w, p->place),
                           place_wall_ms(w, p->place), &join, &err) != 0) {
        world_note(w, p->place, "does not let %s in: %s", n.id, err.message);
        call_reply_code(w, c, err.code);
        return;
    }
    struct registering *r = xmalloc(sizeof *r);
    *r = (struct registering){p, call_keep(c)};
    proxy_post(p, change_new(&join, registered, r));
}

static uint64_t lease_of(struct proxy_sim *p, const struct cluster_state *s, const char *id)
{
    if (p->w->mutant == MUTANT_long_lease)
        return 2 * KEEPALIVE_TIMEOUT;
    return membership_lease_ms(p->membership, &s->smap, id);
}

void primary_serve_keepalive(struct proxy_sim *p, struct call *c)
{
    const struct request *req = call_request(c);
    struct world *w = p->w;
    const struct keepalive k = {.id = w->places[req->node].name,
                                .boot = req->boot,
                                .term = req->term,
                                .version = req->version};
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct answer a = {.term = s->term, .version = s->version};
    if (w->mutant != MUTANT_deaf || req->node != target_place(0))
        a.code = admission_keepalive(s, p->membership, &k, place_ms(w, p->place), NULL);
    if (a.code == 0)
        check_heard(w, p->place, req->node);
    if (a.code == 0 && proxy_leads(p))
        a.lease_ms = lease_of(p, s, k.id);
    if (w->mutant == MUTANT_lost_news)
        a.term = a.version = 0;
    call_reply(w, c, &a);
}

struct changing {
    struct proxy_sim *proxy;
    struct call *call;
};

static void changed(void *arg, const struct error *err)
{
    struct changing *ch = arg;
    call_reply_code(ch->proxy->w, ch->call, err != NULL ? err->code : 0);
    call_drop(ch->call);
    free(ch);
}

void primary_serve_change(struct proxy_sim *p, struct call *c)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->holder);
    struct changing *ch = xmalloc(sizeof *ch);
    int code = 0;
    *ch = (struct changing){p, call_keep(c)};
    struct change *change = client_change(p->w, call_request(c)->op, s,
                                          place_wall_ms(p->w, p->place), changed, ch, &code);
    if (change != NULL) {
        proxy_post(p, change);
        return;
    }
    call_reply_code(p->w, c, code);
    call_drop(ch->call);
    free(ch);
}
