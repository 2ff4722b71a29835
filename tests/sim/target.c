/* A target around the daemons' logic: target/node/member_plan.h, state_accept(), xaction/course.h.
 * Its disks outlive it: the documents that it took, and of each job whether a part is there and
 * visible. */
#include <string.h>

#include "cluster/members/lease.h"
#include "cluster/documents/state_holder.h"
#include "common/jsonx.h"
#include "tests/sim/sim.h"
#include "target/node/member_plan.h"
#include "xaction/course.h"

/* Of a job. */
struct part {
    struct part *next;
    struct target_sim *target;
    struct job *job;
    bool hides; /* what it makes, until it is told to make it visible */
    /* On disk. */
    bool begun, made, visible;
    uint64_t made_in; /* this attempt */
    /* In memory. */
    bool known;
    struct xaction_life life;
    uint64_t attempt; /* of the step at hand */
    bool failed;
    const char *why; /* it failed */
};

struct target_sim {
    struct world *w;
    int place;
    struct state_holder *holder;
    const struct cluster_state *saved;
    const struct cluster_state *last; /* that was in force, over all its lives */
    struct member_plan plan;
    struct lease lease; /* of its present life */
    bool fetching;
    struct part *parts;
};

/* --- jobs ------------------------------------------------------------------------------------ */

static struct part *part_find(struct target_sim *t, const char *id)
{
    struct part *p = t->parts;
    while (p != NULL && strcmp(p->job->id, id) != 0)
        p = p->next;
    return p;
}

static struct part *part_of(struct target_sim *t, const struct job *job)
{
    struct part *p = part_find(t, job->id);
    if (p != NULL)
        return p;
    p = xcalloc(1, sizeof *p);
    *p = (struct part){.next = t->parts,
                       .target = t,
                       .job = job_ref(job),
                       .hides = strcmp(job->kind, "sort") == 0};
    t->parts = p;
    return p;
}

static void ignored(void *arg, const struct answer *a)
{
    (void)arg, (void)a;
}

/* As target/jobs/job_notify.c does: lost is lost. */
static void tell_moved(struct target_sim *t, const struct part *part)
{
    struct world *w = t->w;
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    const struct node *primary = smap_node(&s->smap, s->primary);
    const struct request req = {.kind = TELL_MOVED, .node = t->place, .job_id = part->job->id};
    if (primary != NULL)
        net_call(w, t->place, place_of_name(w, primary->id), FOR_NODE, &req, CALL_TIMEOUT, ignored,
                 NULL);
}

/* What was made in an attempt that was given up may be another half than that of the others. */
static void show(struct part *part)
{
    const struct target_sim *t = part->target;
    if (!part->hides)
        return;
    check_commits(t->w, t->place, part->job->id,
                  part->made && part->made_in == decided_attempt(t->w, part->job->id));
    part->visible = true;
}

static void undo(struct part *part)
{
    const struct target_sim *t = part->target;
    if (part->hides)
        check_undoes(t->w, t->place, part->job->id, part->visible);
    part->made = false;
}

/* What a step leaves on the disks. */
static void leave_on_disk(struct part *part, bool success)
{
    enum xaction_state state = part->life.state;
    if (state == XACTION_PREPARING)
        part->begun = true;
    if (state == XACTION_RUNNING && part->hides && success) {
        part->made = true;
        part->made_in = part->attempt;
    }
    if (state == XACTION_COMMITTING && success)
        show(part);
    if (state == XACTION_STOPPING && success)
        undo(part);
    if ((state == XACTION_COMMITTING || state == XACTION_STOPPING) && success)
        part->begun = false;
}

static void step_ends(struct world *w, void *arg);

static bool moves_objects(const struct part *part)
{
    return part->life.state == XACTION_RUNNING && strcmp(part->job->kind, "rebalance") == 0;
}

static void work(struct part *part)
{
    struct world *w = part->target->w;
    uint64_t ms = world_chance(w, 10 * w->scale) ? world_draw(w, 4000) : 5 + world_draw(w, 200);
    part->life.busy = true;
    if (moves_objects(part))
        objects_rebalance_begins(w, target_index(part->target->place));
    world_after(w, part->target->place, ms, step_ends, part, NULL);
}

/* The step begins at once: what goes before it takes no time here. */
static void begin_attempt(struct part *part)
{
    part->attempt = part->life.attempt;
    part->life.again_wanted = false;
    part->failed = false;
    work(part);
}

static void step_ends(struct world *w, void *arg)
{
    struct part *part = arg;
    enum xaction_state before = part->life.state;
    bool success = !world_chance(w, 25 * w->scale);
    if (success && moves_objects(part))
        success = objects_rebalance(w, target_index(part->target->place), part->job);
    leave_on_disk(part, success);
    part->life.busy = false;
    part->life.state = xaction_step_ended(&part->life, success);
    part->failed = part->life.state == XACTION_FAILED;
    part->why = part->hides && part->failed && world_chance(w, 2) ? "network_error" : "io_error";
    if (part->life.state == XACTION_PREPARING)
        begin_attempt(part);
    if (w->mutant == MUTANT_undecided && part->life.state == XACTION_PREPARED)
        show(part);
    if (part->life.busy)
        return;
    if (part->life.state == before || part->life.state == XACTION_STOPPING)
        work(part); /* again, or the undoing that was asked for meanwhile */
    else
        tell_moved(part->target, part);
}

static int part_order(struct part *part, enum xaction_order order, uint64_t attempt)
{
    part->life.opened = true;
    struct xaction_turn turn = xaction_ordered(&part->life, order, attempt);
    switch (turn.effect) {
    case XACTION_KEEPS:
        break;
    case XACTION_REFUSES:
        return E_JOB_STATE;
    case XACTION_MOVES:
        part->life.state = turn.to;
        break;
    case XACTION_BEGINS:
        part->life.stop_wanted |= turn.to == XACTION_STOPPING;
        part->life.state = turn.to;
        if (turn.to == XACTION_PREPARING) {
            part->life.attempt = attempt;
            begin_attempt(part);
        } else {
            work(part);
        }
        break;
    case XACTION_STOPS:
        part->life.stop_wanted = true;
        break;
    case XACTION_REPEATS:
        part->life.attempt = attempt;
        part->life.again_wanted = true;
        break;
    }
    return 0;
}

/* As xactions_order() has it: nothing is known of a job before it is begun, or ended. */
static int order_job(struct target_sim *t, enum xaction_order order, const struct job *job)
{
    struct part *part = part_of(t, job);
    if (!part->known && order == XACTION_RUN)
        return E_JOB_STATE;
    if (!part->known)
        part->life.attempt = part->attempt = job->attempt;
    part->known = true;
    int code = part_order(part, order, job->attempt);
    part->known = part->life.state != XACTION_NONE;
    return code;
}

static bool is_over(const struct part *part)
{
    return !part->life.busy &&
           (part->life.state == XACTION_COMMITTED || part->life.state == XACTION_STOPPED);
}

static void part_forget(struct part *part)
{
    part->known = false;
    part->life = (struct xaction_life){.state = XACTION_NONE};
    part->failed = false;
}

/* As job_files_settle() has it. */
static void settle(struct target_sim *t, const struct cluster_state *s)
{
    for (struct part *part = t->parts; part != NULL; part = part->next) {
        enum xaction_order order;
        if (t->w->mutant == MUTANT_never_settles ||
            !xaction_settles(jobs_find(&s->jobs, part->job->id), t->w->places[t->place].name,
                             &order))
            continue;
        if (part->known && is_over(part))
            part_forget(part);
        else if (part->known || part->begun)
            order_job(t, order, part->job);
    }
}

/* --- documents ------------------------------------------------------------------------------- */

static void put_in_force(struct target_sim *t, const struct cluster_state *s)
{
    check_in_force(t->w, t->place, t->last, s);
    state_unref(t->last);
    t->last = state_ref(s);
    if (t->w->mutant == MUTANT_takes_any) {
        state_holder_free(t->holder);
        t->holder = state_holder_new(state_ref(s));
    }
    state_advance(t->holder, s);
}

static int take(struct target_sim *t, const struct cluster_state *s)
{
    _cleanup_state_ const struct cluster_state *now = state_current(t->holder);
    struct error err = ERROR_INIT;
    bool newer = true;
    int r = t->w->mutant == MUTANT_takes_any ? 0 : state_accept(now, s, &newer, &err);
    if (r != 0)
        world_note(t->w, t->place, "does not take a state: %s", err.message);
    if (r != 0 || !newer)
        return r;
    if (t->w->mutant != MUTANT_volatile_docs || t->saved == NULL) {
        state_unref(t->saved);
        t->saved = state_ref(s);
    }
    put_in_force(t, s);
    settle(t, s);
    return 0;
}

/* One that has none yet is to be let in first. */
static int renew(struct target_sim *t, const struct cluster_state *s)
{
    return target_sim_state(t->w, target_index(t->place))->version > 0 ? take(t, s) : 0;
}

static int take_push(struct target_sim *t, struct pushed *text)
{
    _cleanup_state_ const struct cluster_state *now = state_current(t->holder);
    struct cluster_state *s;
    int r = pushed_read(t->w, now, text, &s);
    if (r == 0 && s != NULL)
        r = renew(t, s);
    state_unref(s);
    return r;
}

/* --- membership ------------------------------------------------------------------------------ */

/* Whom to ask; NOBODY where nobody is known. */
static int candidate(struct target_sim *t, size_t *count)
{
    static const char all[] = "http://p1:1,http://p2:1,http://p3:1,http://p4:1";
    const char *join = t->w->is_shared ? all : "http://p1:1";
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    char **urls;
    int chosen = NOBODY;
    *count = member_candidates(s, join, &urls);
    for (size_t i = 0; i < *count; i++) {
        if (i == t->plan.next % *count)
            chosen = place_of_url(t->w, urls[i]);
        free(urls[i]);
    }
    free(urls);
    return chosen;
}

static void fetched(void *arg, const struct answer *a)
{
    struct target_sim *t = arg;
    t->fetching = false;
    if (a->code == 0)
        renew(t, a->state);
}

static void fetch(struct target_sim *t)
{
    size_t count;
    int to = candidate(t, &count);
    const struct request req = {.kind = ASK_STATE};
    if (t->fetching || to == NOBODY)
        return;
    t->fetching = true;
    net_call(t->w, t->place, to, FOR_NODE, &req, CALL_TIMEOUT, fetched, t);
}

static void member_tick(struct world *w, void *arg);

struct attempt {
    struct target_sim *target;
    enum member_action action;
    size_t candidates;
    uint64_t sent_ms;
};

static void attempt_ended(void *arg, const struct answer *a)
{
    struct attempt *attempt = arg;
    struct target_sim *t = attempt->target;
    struct world *w = t->w;
    if (!w->places[t->place].up) {
        free(attempt);
        return;
    }
    int code = a->code;
    if (code == 0 && attempt->action == MEMBER_KEEPALIVE)
        lease_grant(&t->lease, attempt->sent_ms, a->lease_ms);
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    if (code == 0 && attempt->action == MEMBER_REGISTER)
        code = take(t, a->state);
    else if (code == 0 && (a->term > s->term || (a->term == s->term && a->version > s->version)))
        fetch(t);
    uint64_t delay = member_plan_result(&t->plan, code, attempt->candidates, KEEPALIVE_INTERVAL);
    world_after(w, t->place, place_span(w, t->place, delay), member_tick, t, NULL);
    free(attempt);
}

static void member_tick(struct world *w, void *arg)
{
    struct target_sim *t = arg;
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    struct attempt *attempt = xmalloc(sizeof *attempt);
    *attempt = (struct attempt){
        .target = t, .action = member_plan_action(&t->plan), .sent_ms = place_ms(w, t->place)};
    int to = candidate(t, &attempt->candidates);
    bool registers = attempt->action == MEMBER_REGISTER;
    struct request req = {.kind = registers ? ASK_REGISTER : ASK_KEEPALIVE,
                          .node = t->place,
                          .term = s->term,
                          .version = s->version,
                          .cluster = s->version > 0 ? s->cluster_id : ""};
    memcpy(req.boot, w->places[t->place].boot, sizeof req.boot);
    if (s->version > 0)
        req.cluster = "c-sim"; /* lives longer than the state */
    net_call(w, t->place, to, FOR_NODE, &req, registers ? CALL_TIMEOUT : 2 * KEEPALIVE_INTERVAL,
             attempt_ended, attempt);
}

/* --- requests -------------------------------------------------------------------------------- */

static void reply_report(struct target_sim *t, struct call *c)
{
    const struct part *part = part_find(t, call_request(c)->job->id);
    enum xaction_state state = part != NULL && part->known ? part->life.state : XACTION_NONE;
    json_t *report = json_pack("{s:s}", "state", xaction_state_name(state));
    if (state != XACTION_NONE)
        json_object_set_new(report, "attempt", json_integer((json_int_t)part->attempt));
    if (part != NULL && part->failed)
        json_object_set_new(report, "error",
                            json_pack("{s:s, s:s}", "code", part->why, "message", "disk"));
    const struct answer a = {.body = report};
    call_reply(t->w, c, &a);
}

static int prepare(struct target_sim *t, const struct job *job)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    int code = xaction_may_begin(&s->jobs, job, NULL);
    return code != 0 ? code : order_job(t, XACTION_PREPARE, job);
}

static void carry_out(struct target_sim *t, struct call *c)
{
    static const enum xaction_order orders[] = {
        [CONTROLLER_PREPARE] = XACTION_PREPARE,
        [CONTROLLER_RUN] = XACTION_RUN,
        [CONTROLLER_COMMIT] = XACTION_COMMIT,
        [CONTROLLER_STOP] = XACTION_STOP,
    };
    const struct request *req = call_request(c);
    int code = 0;
    if (req->order == CONTROLLER_PREPARE)
        code = prepare(t, req->job);
    else if (req->order != CONTROLLER_NOTHING)
        code = order_job(t, orders[req->order], req->job);
    if (code != 0 && code != E_JOB_STATE)
        call_reply_code(t->w, c, code);
    else
        reply_report(t, c);
}

struct refreshing {
    struct target_sim *target;
    struct call *call;
};

static void refreshed(void *arg, const struct answer *a)
{
    struct refreshing *r = arg;
    if (a->code == 0)
        renew(r->target, a->state);
    if (r->target->w->places[r->target->place].up)
        carry_out(r->target, r->call);
    call_drop(r->call);
    free(r);
}

/* One who knows less than the sender asks first what is so. */
static void serve_order(struct target_sim *t, struct call *c)
{
    const struct request *req = call_request(c);
    _cleanup_state_ const struct cluster_state *s = state_current(t->holder);
    bool ahead = req->term > s->term || (req->term == s->term && req->version > s->version);
    size_t count;
    int to = candidate(t, &count);
    if (!ahead || req->order == CONTROLLER_NOTHING || to == NOBODY) {
        carry_out(t, c);
        return;
    }
    struct refreshing *r = xmalloc(sizeof *r);
    *r = (struct refreshing){t, call_keep(c)};
    const struct request fetch_it = {.kind = ASK_STATE};
    net_call(t->w, t->place, to, FOR_NODE, &fetch_it, CALL_TIMEOUT, refreshed, r);
}

void target_serve(struct world *w, unsigned index, struct call *c)
{
    struct target_sim *t = w->target[index];
    const struct request *req = call_request(c);
    struct answer a = {0};
    if (req->kind == ASK_ORDER) {
        serve_order(t, c);
    } else if (req->kind == PUSH_STATE && w->mutant != MUTANT_lost_news) {
        a.code = take_push(t, req->text);
        a.deltas = true;
        a.term = target_sim_state(w, index)->term;
        a.version = target_sim_state(w, index)->version;
        call_reply(w, c, &a);
    }
}

/* --- its life -------------------------------------------------------------------------------- */

void target_sim_start(struct world *w, unsigned index)
{
    struct target_sim *t = w->target[index];
    t->plan = (struct member_plan){0};
    t->lease = (struct lease){0};
    t->fetching = false;
    state_holder_free(t->holder);
    t->holder = state_holder_new(t->saved != NULL ? state_ref(t->saved) : state_new(""));
    if (t->saved != NULL)
        check_in_force(w, t->place, t->last, t->saved);
    world_after(w, t->place, world_draw(w, 100), member_tick, t, NULL);
}

bool target_sim_has_lease(struct world *w, unsigned index)
{
    const struct target_sim *t = w->target[index];
    return w->places[t->place].up && lease_holds(&t->lease, place_ms(w, t->place));
}

/* The place is down already. */
void target_sim_crash(struct world *w, unsigned index)
{
    struct target_sim *t = w->target[index];
    for (struct part *part = t->parts; part != NULL; part = part->next) {
        part_forget(part);
        part->made = part->made && w->mutant != MUTANT_empty_disks;
    }
    net_end(w, t->place, FOR_NODE);
}

void target_sim_new(struct world *w, unsigned index)
{
    struct target_sim *t = xcalloc(1, sizeof *t);
    *t = (struct target_sim){
        .w = w, .place = target_place(index), .holder = state_holder_new(state_new(""))};
    w->target[index] = t;
}

void target_sim_free(struct world *w, unsigned index)
{
    struct target_sim *t = w->target[index];
    while (t->parts != NULL) {
        struct part *part = t->parts;
        t->parts = part->next;
        job_unref(part->job);
        free(part);
    }
    state_holder_free(t->holder);
    state_unref(t->saved);
    state_unref(t->last);
    free(t);
}

const struct cluster_state *target_sim_state(struct world *w, unsigned index)
{
    _cleanup_state_ const struct cluster_state *s = state_current(w->target[index]->holder);
    return s; /* the holder has it */
}

struct target_outcome target_sim_outcome(struct world *w, unsigned index, const char *job_id)
{
    const struct part *part = part_find(w->target[index], job_id);
    if (part == NULL)
        return (struct target_outcome){0};
    return (struct target_outcome){part->begun, part->made, part->visible};
}
