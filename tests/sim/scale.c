/* What a change costs in a large cluster: usage() and README.md.
 *
 * The primary's commands, pusher and bodies of pushes are the daemons' code.  Nodes only note the
 * version that they hold; of the texts some are read, and must lead to the state that they are
 * for.  Time is virtual: a commit takes COMMIT_US, and all pushes leave by one link of LINK_BPS.
 * CPU times are real.  A scenario ends when every node that is up holds the last state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/command/command.h"
#include "cluster/documents/push_body.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "proxy/push/push.h"

enum {
    COMMIT_US = 1000,
    ROUND_TRIP_US = 500,
    TAKE_US = 2000,      /* a node checks a state and writes it */
    TIMEOUT_US = 500000, /* a push to a node that is down */
    TICK_US = 50000,
    RACK = 40,
    RENDERED_MAX = 64,
    CHECKED_EVERY = 50, /* of the texts, since a check costs more than a text */
};
static const uint64_t LINK_BPS = 125000000; /* bytes: a link of 1 Gbit/s */

struct sim_node {
    char id[16], url[40], boot[16];
    bool up;
    uint64_t term, version;
};

struct message {
    struct message *next; /* by time */
    uint64_t at_us;
    struct sim_node *node;
    uint64_t from_version; /* 0: whole */
    uint64_t term, version;
    bool lost;
    void (*done)(void *arg, const struct push_reply *r, const struct error *err);
    void *arg;
};

struct rendered {
    const struct cluster_state *from, *to;
    size_t len;
};

struct figures {
    unsigned commits, pushes, wholes;
    uint64_t bytes;
    uint64_t texts_us, texts;
    uint64_t loop_us, loop_max_us; /* one change in the control loop: apply, walk, messages */
    uint64_t read_max_us;          /* of a text, at a node */
    uint64_t converged_us;
};

struct scale {
    struct rng rng;
    unsigned targets, proxies, buckets;
    struct sim_node *nodes;
    size_t count;
    const struct cluster_state *state;
    struct pusher *pusher;
    uint64_t now_us, ticked_us, link_free_us;
    struct message *messages;
    struct rendered rendered[RENDERED_MAX];
    size_t rendered_next;
    uint64_t rendering_us; /* of this step: the worker's, not the loop's */
    struct figures f;
};

static uint64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fail(const char *what)
{
    fprintf(stderr, "scale: FAILED: %s\n", what);
    exit(1);
}

/* --- texts ----------------------------------------------------------------------------------- */

static void check_leads(struct scale *w, const struct cluster_state *from,
                        const struct cluster_state *to, const char *text, size_t len)
{
    struct cluster_state *out;
    uint64_t entered = cpu_us();
    if (push_body_read(from, text, len, &out, NULL) != 0 || out == NULL)
        fail("a push cannot be read");
    uint64_t us = cpu_us() - entered;
    if (us > w->f.read_max_us)
        w->f.read_max_us = us;
    _cleanup_free_ char *got = push_body_text(NULL, out);
    _cleanup_free_ char *wanted = push_body_text(NULL, to);
    if (strcmp(got, wanted) != 0)
        fail("a push leads to another state");
    state_unref(out);
}

static size_t render(struct scale *w, const struct cluster_state *from,
                     const struct cluster_state *to)
{
    uint64_t entered = cpu_us();
    _cleanup_free_ char *text = push_body_text(from, to);
    w->f.texts_us += cpu_us() - entered;
    w->f.texts++;
    size_t len = strlen(text);
    if (w->f.texts % CHECKED_EVERY == 1)
        check_leads(w, from, to, text, len);
    struct rendered *r = &w->rendered[w->rendered_next++ % RENDERED_MAX];
    state_unref(r->from);
    state_unref(r->to);
    *r = (struct rendered){from != NULL ? state_ref(from) : NULL, state_ref(to), len};
    w->rendering_us += cpu_us() - entered;
    return len;
}

static size_t text_len(struct scale *w, const struct cluster_state *from,
                       const struct cluster_state *to)
{
    for (size_t i = 0; i < RENDERED_MAX; i++) {
        if (w->rendered[i].to == to && w->rendered[i].from == from)
            return w->rendered[i].len;
    }
    return render(w, from, to);
}

/* --- messages -------------------------------------------------------------------------------- */

static const struct cluster_state *env_state(void *ctx)
{
    const struct scale *w = ctx;
    return state_ref(w->state);
}

static void enqueue(struct scale *w, struct message *m)
{
    struct message **at = &w->messages;
    while (*at != NULL && (*at)->at_us <= m->at_us)
        at = &(*at)->next;
    m->next = *at;
    *at = m;
}

static struct sim_node *node_of(struct scale *w, const char *id)
{
    uint64_t number = 0;
    if (parse_u64(id + 1, &number, NULL) != 0 || number == 0)
        fail("a node without a number");
    return &w->nodes[id[0] == 't' ? number - 1 : w->targets + number - 1];
}

static void env_send(void *ctx, const struct node *n, const struct cluster_state *from,
                     const struct cluster_state *s,
                     void (*done)(void *arg, const struct push_reply *r, const struct error *err),
                     void *arg)
{
    struct scale *w = ctx;
    struct message *m = xmalloc(sizeof *m);
    size_t len = text_len(w, from, s);
    uint64_t begin = w->link_free_us > w->now_us ? w->link_free_us : w->now_us;
    w->link_free_us = begin + len * 1000000 / LINK_BPS;
    *m = (struct message){.node = node_of(w, n->id),
                          .from_version = from != NULL ? from->version : 0,
                          .term = s->term,
                          .version = s->version,
                          .done = done,
                          .arg = arg};
    m->lost = !m->node->up;
    m->at_us = m->lost ? w->now_us + TIMEOUT_US : w->link_free_us + ROUND_TRIP_US + TAKE_US;
    w->f.pushes++;
    w->f.wholes += from == NULL;
    w->f.bytes += len;
    enqueue(w, m);
}

static void deliver(struct message *m)
{
    struct sim_node *n = m->node;
    struct error err;
    error_set(&err, E_TIMEOUT, "down");
    if (!m->lost && (m->from_version == 0 || m->from_version == n->version)) {
        n->term = m->term;
        n->version = m->version;
    }
    const struct push_reply r = {.term = n->term, .version = n->version, .deltas = true};
    m->done(m->arg, &r, m->lost ? &err : NULL);
    free(m);
}

/* --- time ------------------------------------------------------------------------------------ */

static void end_step(struct scale *w, uint64_t entered)
{
    uint64_t whole_us = cpu_us() - entered;
    uint64_t us = whole_us > w->rendering_us ? whole_us - w->rendering_us : 0;
    w->rendering_us = 0;
    w->f.loop_us += us;
    if (us > w->f.loop_max_us)
        w->f.loop_max_us = us;
}

static void run_until(struct scale *w, uint64_t until_us)
{
    while (w->messages != NULL && w->messages->at_us <= until_us) {
        struct message *m = w->messages;
        w->messages = m->next;
        if (m->at_us > w->now_us)
            w->now_us = m->at_us;
        uint64_t entered = cpu_us();
        deliver(m);
        if (w->now_us - w->ticked_us >= TICK_US) {
            w->ticked_us = w->now_us;
            pusher_tick(w->pusher, w->now_us / 1000);
        }
        end_step(w, entered);
    }
    w->now_us = until_us;
}

static bool converged(const struct scale *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (n->up && i != w->targets && smap_node(&w->state->smap, n->id) != NULL &&
            (n->term != w->state->term || n->version != w->state->version))
            return false;
    }
    return true;
}

static void settle(struct scale *w)
{
    uint64_t began = w->now_us;
    while (!converged(w)) {
        if (w->now_us - began > 120000000)
            fail("the nodes do not converge within two minutes");
        run_until(w, w->now_us + 1000);
        if (w->now_us - w->ticked_us >= TICK_US) {
            w->ticked_us = w->now_us;
            pusher_tick(w->pusher, w->now_us / 1000);
        }
    }
    w->f.converged_us = w->now_us - began;
}

static void apply(struct scale *w, const struct command *cmd)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(w->state, cmd, &next, &err) != 0)
        fail(err.message);
    state_unref(w->state);
    w->state = next;
    w->f.commits++;
}

static void commit(struct scale *w, const struct command *cmd)
{
    run_until(w, w->now_us + COMMIT_US);
    uint64_t entered = cpu_us();
    apply(w, cmd);
    pusher_publish(w->pusher, w->now_us / 1000);
    end_step(w, entered);
}

/* --- scenarios ------------------------------------------------------------------------------- */

static void join(struct scale *w, size_t i)
{
    struct sim_node *sn = &w->nodes[i];
    const struct node n = {.id = sn->id,
                           .role = sn->id[0] == 't' ? NODE_TARGET : NODE_PROXY,
                           .public_url = sn->url,
                           .control_url = sn->url,
                           .data_url = sn->id[0] == 't' ? sn->url : "",
                           .weight = 1024,
                           .boot = sn->boot};
    sn->up = true;
    commit(w, &(struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = true, .wall_ms = 1});
}

static void join_storm(struct scale *w)
{
    for (size_t i = 0; i < w->count; i++) {
        if (i != w->targets && i != w->targets - 1) /* the primary is there; one comes later */
            join(w, i);
    }
}

static void one_more(struct scale *w)
{
    join(w, w->targets - 1);
}

/* All at once, so that the nodes get them in one push. */
static void make_buckets(struct scale *w)
{
    for (unsigned i = 0; i < w->buckets; i++) {
        char name[24];
        snprintf(name, sizeof name, "bucket-%u", i);
        apply(w, &(struct command){.kind = CMD_BUCKET_CREATE,
                                   .name = name,
                                   .props = &bucket_props_default,
                                   .wall_ms = 1});
    }
    pusher_publish(w->pusher, w->now_us / 1000);
}

static void change_one_bucket(struct scale *w)
{
    commit(w, &(struct command){.kind = CMD_BUCKET_CREATE,
                                .name = "one-more",
                                .props = &bucket_props_default,
                                .wall_ms = 1});
}

static void open_pusher(struct scale *w)
{
    const struct pusher_env env = {.ctx = w, .state = env_state, .send = env_send};
    w->pusher = pusher_new(&env, w->nodes[w->targets].id, w->state);
}

static void close_pusher(struct scale *w)
{
    pusher_close(w->pusher);
    while (w->messages != NULL)
        run_until(w, w->messages->at_us);
    pusher_free(w->pusher);
}

/* Another proxy is elected: its pusher knows nothing of the nodes. */
static void lose_primary(struct scale *w)
{
    close_pusher(w);
    struct sim_node *primary = &w->nodes[w->targets];
    const struct node n = {.id = primary->id,
                           .role = NODE_PROXY,
                           .public_url = primary->url,
                           .control_url = primary->url,
                           .data_url = "",
                           .boot = primary->boot};
    open_pusher(w);
    commit(w, &(struct command){.kind = CMD_TERM_BEGIN,
                                .node = &n,
                                .term = state_next_term(w->state, 1700000000000, false),
                                .wall_ms = 1});
}

static void set_up(struct scale *w, size_t i, bool up)
{
    w->nodes[i].up = up;
    commit(w, &(struct command){.kind = CMD_NODE_STATE,
                                .name = w->nodes[i].id,
                                .node_state = up ? NODE_ACTIVE : NODE_UNREACHABLE,
                                .wall_ms = 1});
}

/* Each of a tenth of the targets is given up and comes back, ten times. */
static void flap(struct scale *w)
{
    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < w->targets; i += 10)
            set_up(w, i, false);
        run_until(w, w->now_us + 1000000 + rng_below(&w->rng, 4000000));
        for (size_t i = 0; i < w->targets; i += 10)
            set_up(w, i, true);
        run_until(w, w->now_us + 1000000 + rng_below(&w->rng, 4000000));
    }
}

static void lose_rack(struct scale *w)
{
    for (size_t i = 0; i < RACK && i < w->targets; i++)
        set_up(w, i, false);
    run_until(w, w->now_us + 30000000);
    for (size_t i = 0; i < RACK && i < w->targets; i++)
        set_up(w, i, true);
}

static const struct {
    const char *name;
    void (*run)(struct scale *w);
} scenarios[] = {
    {"join storm", join_storm},        {"buckets made", make_buckets},
    {"one bucket", change_one_bucket}, {"one more target", one_more},
    {"primary lost", lose_primary},    {"10 % flap", flap},
    {"rack lost, back", lose_rack},
};

/* --- the report ------------------------------------------------------------------------------ */

static void print_documents(const struct scale *w)
{
    static const char *const parts[] = {"smap", "bmd", "config", "jobs", "state"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        _cleanup_json_ json_t *doc = state_part_to_json(w->state, parts[i]);
        _cleanup_free_ char *text = json_text(doc);
        printf("document %-8s %10zu bytes\n", parts[i], strlen(text));
    }
}

static void run_scenario(struct scale *w, const char *name, void (*run)(struct scale *w))
{
    uint64_t began = w->now_us;
    w->f = (struct figures){0};
    run(w);
    settle(w);
    const struct figures *f = &w->f;
    uint64_t span_us = w->now_us - began;
    printf("%-16s %7u %8u %8u %12llu %10llu %9llu %8.2f %8.2f %8llu %8.1f %8.1f %9.1f\n", name,
           f->commits, f->pushes, f->wholes, (unsigned long long)f->bytes,
           (unsigned long long)(f->bytes * 1000000 / (span_us + 1)),
           (unsigned long long)(f->pushes > 0 ? f->bytes / f->pushes : 0),
           (double)f->loop_us / 1000 / (f->commits > 0 ? f->commits : 1),
           (double)f->loop_max_us / 1000, (unsigned long long)f->texts, (double)f->texts_us / 1000,
           (double)f->read_max_us / 1000, (double)f->converged_us / 1000);
    fflush(stdout);
}

static void time_owners(const struct scale *w)
{
    enum { NAMES = 2000, COPIES = 3 };
    const struct node *owners[COPIES];
    size_t found = 0;
    uint64_t entered = cpu_us();
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "shard-%08u.tar", i);
        found += smap_owners(&w->state->smap, 1, name, COPIES, owners);
    }
    uint64_t us = cpu_us() - entered;
    if (found == 0)
        fail("no name has an owner");
    printf("owners of a name: %.2f us\n", (double)us / NAMES);
}

static int usage(void)
{
    fputs("usage: scale [--seed N] [--targets N] [--proxies N] [--buckets N]\n", stderr);
    return 2;
}

static int parse_options(int argc, char **argv, struct scale *w, uint64_t *seed)
{
    for (int i = 1; i < argc; i += 2) {
        uint64_t value;
        if (i + 1 == argc || parse_u64(argv[i + 1], &value, NULL) != 0 || value > 100000)
            return -1;
        if (strcmp(argv[i], "--seed") == 0)
            *seed = value;
        else if (strcmp(argv[i], "--targets") == 0)
            w->targets = (unsigned)value;
        else if (strcmp(argv[i], "--proxies") == 0)
            w->proxies = (unsigned)value;
        else if (strcmp(argv[i], "--buckets") == 0)
            w->buckets = (unsigned)value;
        else
            return -1;
    }
    return w->targets > 1 && w->proxies > 0 ? 0 : -1;
}

static void make_nodes(struct scale *w)
{
    w->count = w->targets + w->proxies;
    w->nodes = xcalloc(w->count, sizeof w->nodes[0]);
    for (unsigned i = 0; i < w->count; i++) {
        struct sim_node *n = &w->nodes[i];
        bool target = i < w->targets;
        snprintf(n->id, sizeof n->id, "%c%u", target ? 't' : 'p',
                 target ? i + 1 : i - w->targets + 1);
        snprintf(n->url, sizeof n->url, "http://10.%u.%u.1:8080", i / 250, i % 250);
        snprintf(n->boot, sizeof n->boot, "%08x", (unsigned)rng_below(&w->rng, 1u << 31));
    }
}

int main(int argc, char **argv)
{
    struct scale w = {.targets = 1000, .proxies = 50, .buckets = 3000};
    uint64_t seed = 1;
    if (parse_options(argc, argv, &w, &seed) != 0)
        return usage();
    log_set_level(LOG_OFF);
    rng_seed(&w.rng, seed);
    make_nodes(&w);
    w.state = state_new("c-scale");
    open_pusher(&w);
    join(&w, w.targets);
    commit(&w, &(struct command){.kind = CMD_CONFIG_SET, .name = "nodes_max", .text = "2000"});
    printf("%-16s %7s %8s %8s %12s %10s %9s %8s %8s %8s %8s %8s %9s\n", "", "changes", "pushes",
           "wholes", "bytes", "bytes/s", "b/push", "loop ms", "max ms", "texts", "text ms",
           "read ms", "conv. ms");
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        run_scenario(&w, scenarios[i].name, scenarios[i].run);
    print_documents(&w);
    time_owners(&w);
    close_pusher(&w);
    for (size_t i = 0; i < RENDERED_MAX; i++) {
        state_unref(w.rendered[i].from);
        state_unref(w.rendered[i].to);
    }
    state_unref(w.state);
    free(w.nodes);
    return 0;
}
