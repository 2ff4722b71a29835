/* Who wants changes: buckets with names of their own, settings, users, jobs.  What is in
 * doubt is repeated, by another proxy, until there is an answer; what was told as not made is
 * not. */
#include <stdio.h>
#include <string.h>

#include "proxy/jobs/job_make.h"
#include "proxy/metastore/writer.h"
#include "tests/sim/sim.h"

enum { OPS_MAX = 2000, CLIENT_TIMEOUT = 5000, BETWEEN_MS = 400, OUTDATED_MS = 4 * LEASE_TTL };

enum op_kind { OP_CREATE, OP_DESTROY, OP_SETTING, OP_JOB, OP_ABORT, OP_REST, OP_BACK };

struct op {
    struct world *w;
    enum op_kind kind;
    size_t number;
    size_t of;     /* of a destruction: the creation */
    char name[16]; /* of the bucket */
    bool doubted;  /* an attempt may have been made */
    bool answered; /* for good */
    bool told_done, told_no;
    unsigned attempts, made; /* how often */
    bool is_destroyed;       /* a destruction was begun */
};

struct client_sim {
    struct op *ops;
    size_t count;
};

static void send(struct world *w, void *arg);

/* --- answers --------------------------------------------------------------------------------- */

static bool is_doubt(const struct world *w, int code)
{
    bool disk = code == E_IO || code == E_NO_SPACE;
    return code == E_IN_DOUBT || code == E_NET || code == E_TIMEOUT || code == E_CANCELLED ||
           (disk && !w->is_shared); /* it may be found after a crash */
}

/* A primary whose lease somebody has ended in etcd does not know it before the next renewal: it
 * changes nothing any more, but what it refuses by its own documents may be out of date. */
static bool is_outdated(const struct world *w, int code)
{
    return code == E_BUCKET_NOT_FOUND && w->leases_ended_ms != 0 &&
           w->now < w->leases_ended_ms + OUTDATED_MS;
}

static bool is_refusal(int code)
{
    return code == E_NOT_PRIMARY || code == E_NOT_READY || code == E_NO_SPACE || code == E_OVERLOAD;
}

/* Once in doubt, that it is so already means that it was made. */
static bool says_done(const struct op *op, int code)
{
    return code == 0 || (op->kind == OP_CREATE && code == E_BUCKET_EXISTS) ||
           (op->kind == OP_DESTROY && code == E_BUCKET_NOT_FOUND);
}

static bool is_tracked(const struct op *op)
{
    return op->kind == OP_CREATE || op->kind == OP_DESTROY;
}

static void conclude(struct op *op, int code)
{
    struct world *w = op->w;
    op->answered = true;
    op->told_done = says_done(op, code);
    op->told_no = !op->told_done && !op->doubted;
    if (!is_tracked(op))
        return;
    if (op->told_done && !op->made)
        world_fail(w,
                   "no acknowledged change is lost: %s of %s was told as done, and is not durable",
                   op->kind == OP_CREATE ? "the creation" : "the destruction", op->name);
    if (op->told_no && op->made)
        world_fail(w, "what is told as not made is not: %s of %s",
                   op->kind == OP_CREATE ? "the creation" : "the destruction", op->name);
    if (code != 0 && op->told_done && !op->doubted)
        world_fail(w, "a change is made once: %s %s: %s, though it was asked for once",
                   op->kind == OP_CREATE ? "create" : "destroy", op->name, error_name(code));
}

static void answered(void *arg, const struct answer *a)
{
    struct op *op = arg;
    struct world *w = op->w;
    bool doubt = is_doubt(w, a->code) || is_outdated(w, a->code);
    world_note(w, CLIENT, "change %zu (%s): %s", op->number, op->name, error_name(a->code));
    op->doubted = op->doubted || doubt;
    bool repeats = is_tracked(op) && (doubt || (op->doubted && is_refusal(a->code)));
    if (repeats)
        world_after(w, CLIENT, 100 + world_draw(w, 900), send, op, NULL);
    else
        conclude(op, doubt ? E_IN_DOUBT : a->code);
}

/* --- requests -------------------------------------------------------------------------------- */

static void send(struct world *w, void *arg)
{
    struct op *op = arg;
    const struct request req = {.kind = ASK_CHANGE, .op = op->number};
    int to = (int)world_draw(w, w->proxies);
    op->attempts++;
    net_call(w, CLIENT, to, FOR_NODE, &req, CLIENT_TIMEOUT, answered, op);
}

/* A bucket that is there, and that nobody has asked to destroy. */
static struct op *pick_bucket(struct world *w)
{
    struct client_sim *c = w->client;
    for (unsigned tries = 0; tries < 4 && c->count > 0; tries++) {
        struct op *op = &c->ops[world_draw(w, c->count)];
        if (op->kind == OP_CREATE && op->told_done && !op->is_destroyed)
            return op;
    }
    return NULL;
}

static void want(struct world *w, const enum op_kind *kinds, size_t kind_count)
{
    struct client_sim *c = w->client;
    struct op *op = &c->ops[c->count];
    struct op *old = pick_bucket(w);
    *op = (struct op){.w = w, .number = c->count, .kind = kinds[world_draw(w, kind_count)]};
    if (op->kind == OP_DESTROY && old == NULL)
        op->kind = OP_CREATE;
    if (op->kind == OP_DESTROY) {
        old->is_destroyed = true;
        op->of = old->number;
        memcpy(op->name, old->name, sizeof op->name);
    } else {
        snprintf(op->name, sizeof op->name, "%s%zu", op->kind == OP_CREATE ? "b" : "x", c->count);
    }
    c->count++;
    send(w, op);
}

/* In the end everybody is wanted back. */
static bool anybody_rests(const struct world *w)
{
    const struct cluster_state *head = check_head(w);
    return smap_count(&head->smap, NODE_TARGET, NODE_MAINTENANCE) > 0;
}

static void tick(struct world *w, void *arg)
{
    static const enum op_kind all[] = {OP_CREATE, OP_CREATE, OP_CREATE, OP_DESTROY, OP_SETTING,
                                       OP_JOB,    OP_JOB,    OP_ABORT,  OP_REST,    OP_BACK};
    static const enum op_kind back[] = {OP_BACK};
    (void)arg;
    if (!w->calm && w->client->count < OPS_MAX)
        want(w, all, sizeof all / sizeof *all);
    else if (w->client->count < OPS_MAX && anybody_rests(w))
        want(w, back, 1);
    world_after(w, NOBODY, 20 + world_draw(w, BETWEEN_MS), tick, NULL, NULL);
}

/* --- at the primary: what the routes make of a request
 * -------------------------------------------- */

static struct change *start_job(struct op *op, const struct cluster_state *s, int64_t wall_ms,
                                change_done_fn *done, void *arg, int *code)
{
    struct job *job;
    *code = job_make(s, op->number % 3 != 0 ? "sort" : "delete", wall_ms, &job, NULL);
    if (*code != 0)
        return NULL;
    free(job->id); /* drawn from the kernel: a seed would not repeat it */
    job->id = xprintf("%s-%zu", job->kind, op->number);
    job->spec = json_object();
    job->plan = json_object();
    const struct command cmd = {.kind = CMD_JOB_CREATE, .name = job->id, .job = job};
    struct change *c = change_new(&cmd, done, arg);
    job_unref(job);
    return c;
}

static struct change *abort_job(const struct cluster_state *s, change_done_fn *done, void *arg,
                                int *code)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        bool stays = strcmp(job->kind, "rebalance") == 0; /* else none would follow */
        if (stays || !job_may_move(job->state, JOB_STOPPING))
            continue;
        struct job *stopping = job_copy(job);
        stopping->state = JOB_STOPPING;
        stopping->stop_as = JOB_ABORTED;
        const struct command cmd = {.kind = CMD_JOB_UPDATE, .name = job->id, .job = stopping};
        struct change *c = change_new(&cmd, done, arg);
        job_unref(stopping);
        return c;
    }
    *code = E_JOB_NOT_FOUND;
    return NULL;
}

/* One of them stays in any case. */
static struct change *move_target(const struct op *op, const struct cluster_state *s,
                                  int64_t wall_ms, change_done_fn *done, void *arg, int *code)
{
    enum node_state to = op->kind == OP_REST ? NODE_MAINTENANCE : NODE_ACTIVE;
    size_t owners = smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[(i + op->number) % s->smap.count];
        bool fits = op->kind == OP_REST ? n->state == NODE_ACTIVE && owners > 1
                                        : n->state == NODE_MAINTENANCE;
        if (n->role != NODE_TARGET || !fits)
            continue;
        const struct command cmd = {
            .kind = CMD_NODE_STATE, .name = n->id, .node_state = to, .wall_ms = wall_ms};
        return change_new(&cmd, done, arg);
    }
    *code = E_NODE_STATE;
    return NULL;
}

/* A new user, or another grant of one that is there. */
static struct change *change_users(const struct op *op, const struct cluster_state *s,
                                   change_done_fn *done, void *arg)
{
    char id[USER_ID_CHARS + 1];
    char bucket[16];
    struct command cmd = {.kind = CMD_USER_ADD, .text = id};
    snprintf(id, sizeof id, "%032zx", op->number + 1);
    snprintf(bucket, sizeof bucket, "b%zu*", op->number);
    if (s->access.user_count > 0 && op->number % 8 == 5) {
        cmd.kind = CMD_GRANT;
        cmd.name = s->access.users[op->number % s->access.user_count].name;
        cmd.patch = json_pack("{s:[s], s:s}", "rights", "read", "bucket", bucket);
    } else {
        cmd.patch = json_pack("{s:s, s:[s]}", "name", op->name, "roles", "reader");
    }
    struct change *c = change_new(&cmd, done, arg);
    json_decref(cmd.patch);
    return c;
}

struct change *client_change(struct world *w, size_t number, const struct cluster_state *s,
                             int64_t wall_ms, void (*done)(void *arg, const struct error *err),
                             void *arg, int *code)
{
    struct op *op = &w->client->ops[number];
    char text[16];
    if (op->kind == OP_JOB)
        return start_job(op, s, wall_ms, done, arg, code);
    if (op->kind == OP_ABORT)
        return abort_job(s, done, arg, code);
    if (op->kind == OP_REST || op->kind == OP_BACK)
        return move_target(op, s, wall_ms, done, arg, code);
    if (op->kind == OP_SETTING && number % 4 == 1)
        return change_users(op, s, done, arg);
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    struct command cmd = {.name = op->name, .props = &props, .wall_ms = wall_ms};
    cmd.kind = op->kind == OP_CREATE ? CMD_BUCKET_CREATE : CMD_BUCKET_DESTROY;
    if (op->kind == OP_SETTING) {
        bool delay = number % 2 == 0;
        snprintf(text, sizeof text, delay ? "%zums" : "%zu", (delay ? 100 : 1000) + number);
        cmd = (struct command){
            .kind = CMD_CONFIG_SET, .name = delay ? "rebalance_delay" : "jobs_max", .text = text};
    }
    struct change *c = change_new(&cmd, done, arg);
    change_settles(c);
    return c;
}

/* --- for the checks -------------------------------------------------------------------------- */

/* An attempt that was in doubt may be made late: also after the one that repeated it, and after
 * what followed upon that. */
static void note(struct op *op)
{
    struct world *w = op->w;
    if (op->made == op->attempts)
        world_fail(w, "a change is made once: %s of %s was asked for %u times, and made once more",
                   op->kind == OP_CREATE ? "the creation" : "the destruction", op->name,
                   op->attempts);
    if (op->told_no)
        world_fail(w, "what is told as not made is not: %s of %s",
                   op->kind == OP_CREATE ? "the creation" : "the destruction", op->name);
    op->made++;
}

static void note_created(struct world *w, const struct cluster_state *to)
{
    const struct bucket *b = bmd_bucket_by_id(&to->bmd, to->next_bucket_id - 1);
    size_t number;
    if (b == NULL || sscanf(b->name, "b%zu", &number) != 1)
        world_fail(w, "a new bucket id, and no new bucket");
    else
        note(&w->client->ops[number]);
}

void client_note_made(struct world *w, const struct cluster_state *from,
                      const struct cluster_state *to)
{
    struct client_sim *c = w->client;
    if (from == NULL)
        return;
    if (to->next_bucket_id != from->next_bucket_id)
        note_created(w, to);
    for (size_t i = 0; to->bmd.count < from->bmd.count && i < c->count; i++) {
        if (c->ops[i].kind == OP_DESTROY && bmd_bucket(&to->bmd, c->ops[i].name) == NULL &&
            bmd_bucket(&from->bmd, c->ops[i].name) != NULL)
            note(&c->ops[i]);
    }
}

void client_check_end(struct world *w)
{
    const struct cluster_state *head = check_head(w);
    for (size_t i = 0; i < w->client->count; i++) {
        const struct op *op = &w->client->ops[i];
        bool is_there = bmd_bucket(&head->bmd, op->name) != NULL;
        bool stays = !op->is_destroyed || i == 0;
        if (op->kind == OP_CREATE && op->told_done && stays && !is_there)
            world_fail(w, "no acknowledged change is lost: bucket %s is not there", op->name);
        bool once = w->client->ops[op->of].attempts == 1;
        if (op->kind == OP_DESTROY && op->told_done && once && is_there)
            world_fail(w, "no acknowledged change is lost: bucket %s is there", op->name);
    }
}

bool client_waits(const struct world *w)
{
    const struct cluster_state *head = check_head(w);
    for (size_t i = 0; i < w->client->count; i++) {
        if (!w->client->ops[i].answered)
            return true;
    }
    for (size_t i = 0; i < head->jobs.count; i++) {
        if (!job_ended(head->jobs.jobs[i]->state))
            return true;
    }
    return false;
}

void client_new(struct world *w)
{
    w->client = xcalloc(1, sizeof *w->client);
    w->client->ops = xcalloc(OPS_MAX, sizeof w->client->ops[0]);
}

/* One that stays, for the objects. */
void client_make_bucket(struct world *w)
{
    static const enum op_kind create[] = {OP_CREATE};
    want(w, create, 1);
    w->client->ops[0].is_destroyed = true;
}

void client_start(struct world *w)
{
    world_after(w, NOBODY, 1, tick, NULL, NULL);
}

void client_free(struct world *w)
{
    free(w->client->ops);
    free(w->client);
}
