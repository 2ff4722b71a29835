#include "sort/testing/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <xxhash.h>

#include "common/mem.h"
#include "hrw/hrw.h"
#include "io/bpipe.h"
#include "io/file.h"
#include "io/thread.h"
#include "sort/local/dirs.h"
#include "sort/task/records.h"
#include "sort/task/task.h"
#include "sort/testing/relay.h"

#define WEIGHT 1024
#define KEY_MAP_MAX (1024 * 1024 * 1024)

/* One target. */
struct node {
    struct sim *sim;
    unsigned number;
    char id[16]; /* "t1" */
    struct hrw_node hrw;
    struct sort_env env;
    struct sort_task *task;
    bool pinned; /* once */
    pthread_t thread;
    int rc;
};

struct kind {
    atomic_ullong streams;
    atomic_ullong longest; /* bytes */
};

/* What a target would find again on its disks. */
struct built {
    char *name;
    struct sort_digest order;
    const struct node *node;
};

struct sim {
    struct sim_config config;
    struct dirs *dirs; /* while it runs */
    struct node *nodes;
    struct hrw_node *hrw; /* of those who take part; all weights are WEIGHT at first */
    bool *absent;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned relays; /* threads that nobody joins */
    struct error first;
    struct built *built;
    size_t built_count;
    atomic_ullong passes[SIM_OUTPUT_FINISH + 1];
    struct kind kinds[SIM_OUTPUT_FINISH + 1];
};

/* --- trips ------------------------------------------------------------------------------------ */

static void sim_stop(struct sim *s)
{
    for (unsigned i = 0; i < s->config.targets; i++) {
        if (!s->absent[i])
            sort_task_stop(s->nodes[i].task);
    }
}

static int sim_pass(struct node *node, enum sim_point point, struct error *err)
{
    struct sim *s = node->sim;
    if (s->config.ask_status)
        json_decref(sort_task_status(node->task));
    uint64_t n = atomic_fetch_add(&s->passes[point], 1) + 1;
    if (s->config.trip.point != point || s->config.trip.nth != n)
        return 0;
    if (!s->config.trip.stop)
        return error_set(err, E_IO, "a fault was injected here");
    sim_stop(s);
    return 0;
}

/* --- input ------------------------------------------------------------------------------------ */

static unsigned sim_owner(void *ctx, const char *name)
{
    struct node *n = ctx;
    uint64_t key = hrw_key(0, name, strlen(name));
    return (unsigned)hrw_best(key, n->sim->hrw, n->sim->config.targets);
}

static bool sim_owns(void *ctx, const char *name)
{
    struct node *n = ctx;
    return sim_owner(n, name) == n->number;
}

/* Whose it was while all took part. */
static bool sim_owned_first(const struct node *n, const char *name)
{
    _cleanup_free_ struct hrw_node *all = xmalloc(n->sim->config.targets * sizeof *all);
    for (unsigned i = 0; i < n->sim->config.targets; i++)
        all[i] = (struct hrw_node){.seed = n->sim->hrw[i].seed, .weight = WEIGHT};
    return hrw_best(hrw_key(0, name, strlen(name)), all, n->sim->config.targets) == n->number;
}

struct pinning {
    struct node *node;
    int (*each)(void *arg, const struct sort_shard_info *info, struct error *err);
    void *arg;
    struct sort_pinned *pinned;
};

/* What a store knows of an object. */
static int describe(const struct node *n, struct sort_shard_info *info, struct error *err)
{
    const struct sim_config *config = &n->sim->config;
    _cleanup_free_ char *path = xprintf("%s/%s", config->in_dir, info->name);
    _cleanup_(buf_done)
    struct buf bytes = BUF_INIT;
    int rc = file_read_all(path, SIZE_MAX / 2, &bytes, err);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_XXH3);
    checksum_update(sum, bytes.data, bytes.len);
    checksum_final(sum, &info->checksum);
    info->modified_s = SIM_MODIFIED_S;
    if (config->damaged != NULL && strcmp(config->damaged, info->name) == 0)
        info->checksum.bytes[0] ^= 1;
    return rc;
}

static int pin_one(void *arg, const struct sort_shard_info *info, struct error *err)
{
    struct pinning *p = arg;
    struct sort_shard_info known = *info;
    known.without = sim_owned_first(p->node, info->name) ? 0 : 1;
    p->pinned->stamp += XXH3_64bits(info->name, strlen(info->name));
    bool described = p->node->sim->config.spec->plain_objects && !info->missing;
    int rc = described ? describe(p->node, &known, err) : 0;
    return rc != 0 ? rc : p->each(p->arg, &known, err);
}

static int sim_pin(void *ctx, const struct sort_spec *spec,
                   int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
                   void *arg, struct sort_pinned *pinned, struct error *err)
{
    struct node *n = ctx;
    int rc = sim_pass(n, SIM_PIN, err);
    if (rc != 0)
        return rc;
    pinned->again = n->pinned;
    n->pinned = true;
    struct pinning p = {.node = n, .each = each, .arg = arg, .pinned = pinned};
    return dirs_list(n->sim->dirs, spec, sim_owns, n, pin_one, &p, err);
}

static int sim_open_shard(void *ctx, const char *name, int *fd, struct error *err)
{
    struct node *n = ctx;
    int rc = sim_pass(n, SIM_OPEN_SHARD, err);
    return rc != 0 ? rc : dirs_open_shard(n->sim->dirs, name, fd, err);
}

static int sim_read_key_map(void *ctx, const struct sort_spec *spec,
                            int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                            void *arg, struct error *err)
{
    struct node *n = ctx;
    return dirs_read_key_map(n->sim->dirs, spec, feed, arg, err);
}

static int sim_open_work_file(void *ctx, int *fd, struct error *err)
{
    struct node *n = ctx;
    return dirs_open_work_file(n->sim->dirs, fd, err);
}

/* --- streams ---------------------------------------------------------------------------------- */

struct relay_thread {
    struct sim *sim;
    struct relay relay;
    pthread_t thread;
};

static void *relay_main(void *arg)
{
    struct relay_thread *r = arg;
    relay_run(&r->relay);
    return NULL;
}

static void *relay_main_alone(void *arg)
{
    struct relay_thread *r = arg;
    struct sim *s = r->sim;
    relay_run(&r->relay);
    free(r);
    pthread_mutex_lock(&s->lock);
    s->relays--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static struct relay_thread *relay_new(struct sim *s, enum sim_point kind)
{
    const struct sim_config *c = &s->config;
    uint64_t number = atomic_fetch_add(&s->kinds[kind].streams, 1) + 1;
    bool is_cut = c->cut == kind && c->cut_stream == number;
    struct relay_thread *r = xcalloc(1, sizeof *r);
    r->sim = s;
    r->relay = (struct relay){.to = bpipe_new(c->pipe_bytes),
                              .cut_at = is_cut ? c->cut_bytes : UINT64_MAX,
                              .longest = &s->kinds[kind].longest};
    return r;
}

static const char *sim_target_name(void *ctx, unsigned number)
{
    const struct node *n = ctx;
    return n->sim->nodes[number].id;
}

static int sim_send_begin(void *ctx, unsigned to, enum sort_channel channel, struct bpipe **pipe,
                          void **handle, struct error *err)
{
    struct node *n = ctx;
    enum sim_point kind = channel == SORT_CHANNEL_MERGE ? SIM_SEND_MERGE : SIM_SEND_ORDERS;
    int rc = sim_pass(n, kind, err);
    if (rc != 0)
        return rc;
    struct relay_thread *r = relay_new(n->sim, kind);
    rc = sort_task_receive(n->sim->nodes[to].task, n->number, channel, r->relay.to, err);
    if (rc != 0) {
        bpipe_unref(r->relay.to);
        free(r);
        return rc;
    }
    *pipe = bpipe_new(n->sim->config.pipe_bytes);
    r->relay.from = bpipe_ref(*pipe);
    rc = thread_start("sim-relay", relay_main, r, &r->thread, err);
    if (rc != 0)
        abort(); /* no test goes on without threads */
    *handle = r;
    return 0;
}

static int sim_send_end(void *ctx, void *handle, struct error *err)
{
    (void)ctx;
    struct relay_thread *r = handle;
    pthread_join(r->thread, NULL);
    int rc = r->relay.err.code;
    if (rc != 0)
        error_set(err, rc, "%s", r->relay.err.message);
    free(r);
    return rc;
}

static int sim_fetch(void *ctx, unsigned from, const void *request, size_t len, struct bpipe **pipe,
                     struct error *err)
{
    struct node *n = ctx;
    struct sort_records *records = NULL;
    int rc = sim_pass(n, SIM_FETCH, err);
    if (rc == 0)
        rc = sort_task_records(n->sim->nodes[from].task, request, len, &records, err);
    if (rc != 0)
        return rc;
    struct relay_thread *r = relay_new(n->sim, SIM_FETCH);
    r->relay.records = records;
    *pipe = bpipe_ref(r->relay.to);
    pthread_mutex_lock(&n->sim->lock);
    n->sim->relays++;
    pthread_mutex_unlock(&n->sim->lock);
    pthread_t thread;
    rc = thread_start("sim-fetch", relay_main_alone, r, &thread, err);
    if (rc != 0)
        abort();
    pthread_detach(thread);
    return 0;
}

/* --- output ----------------------------------------------------------------------------------- */

static int sim_output_check(void *ctx, const char *name, struct error *err)
{
    struct node *n = ctx;
    return dirs_output_check(n->sim->dirs, name, err);
}

static int sim_output_begin(void *ctx, const char *name, uint64_t size, struct sort_output **out,
                            struct error *err)
{
    struct node *n = ctx;
    int rc = sim_pass(n, SIM_OUTPUT_BEGIN, err);
    return rc != 0 ? rc : dirs_output_begin(n->sim->dirs, name, size, out, err);
}

static int sim_output_write(void *ctx, struct sort_output *out, const void *data, size_t len,
                            struct error *err)
{
    struct node *n = ctx;
    int rc = sim_pass(n, SIM_OUTPUT_WRITE, err);
    return rc != 0 ? rc : dirs_output_write(n->sim->dirs, out, data, len, err);
}

static void sim_output_discard(void *ctx, struct sort_output *out)
{
    struct node *n = ctx;
    dirs_output_discard(n->sim->dirs, out);
}

static int sim_output_finish(void *ctx, struct sort_output *out, struct error *err)
{
    struct node *n = ctx;
    int rc = sim_pass(n, SIM_OUTPUT_FINISH, err);
    if (rc == 0)
        return dirs_output_finish(n->sim->dirs, out, err);
    sim_output_discard(ctx, out);
    return rc;
}

static void sim_forget(struct sim *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->built_count; i++) {
        if (strcmp(s->built[i].name, name) == 0)
            s->built[i].node = NULL;
    }
    pthread_mutex_unlock(&s->lock);
}

struct pruning {
    struct node *node;
    bool (*wanted)(void *arg, const char *name);
    void *arg;
};

/* What another target has built is not this one's to judge. */
static bool sim_wanted(void *arg, const char *name)
{
    const struct pruning *p = arg;
    bool wanted = !sim_owns(p->node, name) || p->wanted(p->arg, name);
    if (!wanted)
        sim_forget(p->node->sim, name);
    return wanted;
}

static int sim_outputs_prune(void *ctx, bool (*wanted)(void *arg, const char *name), void *arg,
                             struct error *err)
{
    struct node *n = ctx;
    struct pruning p = {.node = n, .wanted = wanted, .arg = arg};
    return dirs_outputs_prune(n->sim->dirs, sim_wanted, &p, err);
}

static int sim_output_remember(void *ctx, const char *name, const struct sort_digest *order,
                               struct error *err)
{
    struct node *n = ctx;
    struct sim *s = n->sim;
    (void)err;
    pthread_mutex_lock(&s->lock);
    s->built = xrealloc(s->built, (s->built_count + 1) * sizeof *s->built);
    s->built[s->built_count++] = (struct built){.name = xstrdup(name), .order = *order, .node = n};
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int sim_outputs_remembered(void *ctx,
                                  void (*each)(void *arg, const struct sort_digest *order),
                                  void *arg, struct error *err)
{
    const struct node *n = ctx;
    struct sim *s = n->sim;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->built_count; i++) {
        if (s->built[i].node == n)
            each(arg, &s->built[i].order);
    }
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static const struct sort_env sim_env = {
    .pin_shards = sim_pin,
    .open_shard = sim_open_shard,
    .read_key_map = sim_read_key_map,
    .open_work_file = sim_open_work_file,
    .target_name = sim_target_name,
    .send_begin = sim_send_begin,
    .send_end = sim_send_end,
    .fetch_records = sim_fetch,
    .owner = sim_owner,
    .output_check = sim_output_check,
    .output_begin = sim_output_begin,
    .output_write = sim_output_write,
    .output_finish = sim_output_finish,
    .output_discard = sim_output_discard,
    .output_remember = sim_output_remember,
    .outputs_remembered = sim_outputs_remembered,
    .outputs_prune = sim_outputs_prune,
};

struct sim *sim_new(const struct sim_config *config)
{
    struct sim *s = xcalloc(1, sizeof *s);
    s->config = *config;
    if (s->config.pipe_bytes == 0)
        s->config.pipe_bytes = 1024 * 1024;
    s->nodes = xcalloc(config->targets, sizeof *s->nodes);
    s->hrw = xcalloc(config->targets, sizeof *s->hrw);
    s->absent = xcalloc(config->targets, sizeof *s->absent);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    for (unsigned i = 0; i < config->targets; i++) {
        struct node *n = &s->nodes[i];
        *n = (struct node){.sim = s, .number = i, .env = sim_env};
        snprintf(n->id, sizeof n->id, "t%u", i + 1);
        n->env.ctx = n;
        s->hrw[i] = (struct hrw_node){.seed = hrw_seed(n->id), .weight = WEIGHT};
    }
    return s;
}

void sim_free(struct sim *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->config.targets; i++)
        sort_task_free(s->nodes[i].task);
    for (size_t i = 0; i < s->built_count; i++)
        free(s->built[i].name);
    free(s->built);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->nodes);
    free(s->hrw);
    free(s->absent);
    free(s);
}

static void *node_main(void *arg)
{
    struct node *n = arg;
    struct sim *s = n->sim;
    struct error err = ERROR_INIT;
    n->rc = sort_task_run(n->task, &err);
    if (n->rc == 0)
        return NULL;
    pthread_mutex_lock(&s->lock);
    if (s->first.code == 0)
        s->first = err;
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->config.targets; i++) {
        if (!s->absent[i])
            sort_task_give_way(s->nodes[i].task);
    }
    return NULL;
}

static int sim_task(struct sim *s, unsigned i, unsigned attempt, struct error *err)
{
    const struct sort_task_config config = {
        .job_id = "srt-simulation",
        .spec = s->config.spec,
        .env = &s->nodes[i].env,
        .self = i,
        .participants = s->config.targets,
        .absent = s->absent,
        .attempt = attempt,
        .salt = s->config.salt,
        .memory_bytes = s->config.memory_bytes,
        .key_map_bytes = KEY_MAP_MAX,
        .extract_threads = s->config.threads,
        .create_threads = s->config.threads,
    };
    return sort_task_new(&config, &s->nodes[i].task, err);
}

static void sim_leave(struct sim *s, unsigned i)
{
    sort_task_free(steal(s->nodes[i].task));
    s->absent[i] = true;
    s->hrw[i].weight = 0;
}

/* Each gets its task, or is made ready for a further attempt. */
static int sim_tasks(struct sim *s, unsigned attempt, struct error *err)
{
    int rc = 0;
    s->first = (struct error)ERROR_INIT;
    if (attempt > 0 && s->config.leaves > 0)
        sim_leave(s, s->config.leaves - 1);
    for (unsigned i = 0; rc == 0 && i < s->config.targets; i++) {
        if (s->absent[i])
            continue;
        if (attempt > 0 && s->config.restarts == i + 1)
            sort_task_free(steal(s->nodes[i].task));
        rc = s->nodes[i].task == NULL ? sim_task(s, i, attempt, err)
                                      : sort_task_again(s->nodes[i].task, attempt, s->absent, err);
    }
    return rc;
}

static void sim_join(struct sim *s)
{
    for (unsigned i = 0; i < s->config.targets; i++) {
        if (!s->absent[i])
            pthread_join(s->nodes[i].thread, NULL);
    }
    pthread_mutex_lock(&s->lock);
    while (s->relays > 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static int sim_attempt(struct sim *s, unsigned attempt, struct error *err)
{
    int rc = sim_tasks(s, attempt, err);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < s->config.targets; i++) {
        if (s->absent[i])
            continue;
        rc = thread_start("sim-target", node_main, &s->nodes[i], &s->nodes[i].thread, err);
        if (rc != 0)
            abort();
    }
    sim_join(s);
    if (s->first.code != 0)
        error_set(err, s->first.code, "%s", s->first.message);
    return s->first.code;
}

int sim_run(struct sim *s, struct error *err)
{
    int rc = dirs_open(s->config.in_dir, s->config.out_dir, NULL, &s->dirs, err);
    if (rc != 0)
        return rc;
    unsigned attempt = 0;
    do
        rc = sim_attempt(s, attempt++, err);
    while (rc != 0 && attempt < s->config.attempts);
    if (rc == 0)
        rc = dirs_show(s->dirs, err);
    dirs_close(steal(s->dirs));
    return rc;
}

json_t *sim_status(const struct sim *s)
{
    json_t *all = json_object();
    for (unsigned i = 0; i < s->config.targets; i++) {
        if (!s->absent[i])
            json_object_set_new(all, s->nodes[i].id, sort_task_status(s->nodes[i].task));
    }
    return all;
}

uint64_t sim_streams(const struct sim *s, enum sim_point kind)
{
    return atomic_load(&s->kinds[kind].streams);
}

uint64_t sim_stream_bytes(const struct sim *s, enum sim_point kind)
{
    return atomic_load(&s->kinds[kind].longest);
}
