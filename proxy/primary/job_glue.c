#include "proxy/primary/job_glue.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "proxy/jobs/jobs.h"
#include "proxy/primary/members.h"
#include "proxy/jobs/trim_copies_job.h"
#include "proxy/jobs/objects_job.h"
#include "proxy/jobs/objects_view.h"
#include "proxy/primary/proxy.h"
#include "proxy/jobs/rebalance_job.h"
#include "proxy/jobs/repair_job.h"
#include "proxy/jobs/resilver_job.h"
#include "proxy/jobs/scrub_job.h"
#include "proxy/jobs/sort_job.h"

struct job_glue {
    struct proxy *proxy;
    struct jobs_driver *driver;
    struct loop_timer *timer;
    bool beginning;             /* a job that nobody asked for is being committed */
    uint64_t placed, placed_ms; /* the owners, and when this primary first saw them */
    struct repair_fence fence;  /* the same of what a repair is made for */
    uint64_t fence_ms;
    bool closed; /* asks no more: the client is being closed */
};

/* One message to a target. */
struct asking {
    char *url;
    jobs_answer_fn *done;
    void *arg;
};

static const struct cluster_state *glue_state(void *ctx)
{
    struct job_glue *g = ctx;
    return state_current(g->proxy->state);
}

static void glue_commit(void *ctx, const struct command *cmd,
                        void (*done)(void *arg, const struct error *err), void *arg)
{
    struct job_glue *g = ctx;
    proxy_commit(g->proxy, cmd, done, arg);
}

static int64_t glue_wall_ms(void *ctx)
{
    (void)ctx;
    return clock_wall_ms();
}

static void asked(void *arg, struct http_result *r)
{
    struct asking *a = arg;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *report = NULL;
    int code = http_result_error(r, a->url, &err);
    if (code == 0)
        code = json_parse(buf_str(&r->body), r->body.len, &report, &err);
    a->done(a->arg, report, code != 0 ? &err : NULL);
    free(a->url);
    free(a);
}

static enum xaction_order xaction_of(enum controller_order order)
{
    static const enum xaction_order orders[] = {
        [CONTROLLER_PREPARE] = XACTION_PREPARE,
        [CONTROLLER_RUN] = XACTION_RUN,
        [CONTROLLER_COMMIT] = XACTION_COMMIT,
        [CONTROLLER_STOP] = XACTION_STOP,
    };
    return orders[order];
}

static void glue_send(void *ctx, const struct node *target, enum controller_order order,
                      const struct job *job, jobs_answer_fn *done, void *arg)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    struct job_glue *g = ctx;
    if (g->closed)
        return; /* and the driver is freed without an answer */
    struct asking *a = xcalloc(1, sizeof *a);
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    *a = (struct asking){.url = xprintf("%s/v1/xactions/%s?dfcv=%llu.%llu", target->control_url,
                                        job->id, (unsigned long long)s->term,
                                        (unsigned long long)s->version),
                         .done = done,
                         .arg = arg};
    struct http_call call = {
        .method = HTTP_GET, .url = a->url, .total_timeout_ms = g->proxy->params.call_timeout};
    _cleanup_free_ char *body = NULL;
    if (order != CONTROLLER_NOTHING) {
        _cleanup_json_ json_t *doc = json_pack(
            "{s:s, s:o}", "action", xaction_order_name(xaction_of(order)), "job", job_to_json(job));
        body = json_text(doc);
        call.method = HTTP_POST;
        call.headers = headers;
        call.body = body;
        call.body_len = strlen(body);
    }
    http_call_start(g->proxy->primary_client, &call, asked, a);
}

struct beginning {
    struct job_glue *glue;
    char *target;
};

static void resilver_begun(void *arg, const struct error *err)
{
    struct beginning *b = arg;
    b->glue->beginning = false;
    if (err != NULL)
        log_warn("resilver not begun", lstr("node", b->target), lerr(err));
    free(b->target);
    free(b);
}

static void begin_resilver(struct job_glue *g, const char *target, uint64_t generation)
{
    struct job *job = resilver_job_make(target, generation, clock_wall_ms());
    const struct command cmd = {.kind = CMD_JOB_CREATE, .name = job->id, .job = job};
    struct beginning *b = xcalloc(1, sizeof *b);
    *b = (struct beginning){.glue = g, .target = xstrdup(target)};
    g->beginning = true;
    proxy_commit(g->proxy, &cmd, resilver_begun, b);
    job_unref(job);
}

/* One at a tick. */
static void begin_resilvers(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    for (size_t i = 0; i < s->smap.count && !g->beginning; i++) {
        const struct node *n = &s->smap.nodes[i];
        struct keepalive last;
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE &&
            members_last(g->proxy, n->id, &last) && last.resilver != 0 &&
            resilver_job_wanted(s, n->id, last.resilver, clock_wall_ms()))
            begin_resilver(g, n->id, last.resilver);
    }
}

static void rebalance_stepped(void *arg, const struct error *err)
{
    struct job_glue *g = arg;
    g->beginning = false;
    if (err != NULL)
        log_warn("rebalance does not get on", lerr(err));
}

static void step_rebalance(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    uint64_t now_ms = clock_ms();
    struct command cmd;
    if (g->placed_ms == 0 || g->placed != s->smap.placed) {
        g->placed = s->smap.placed;
        g->placed_ms = now_ms;
    }
    if (g->beginning || !rebalance_next(s, now_ms - g->placed_ms, clock_wall_ms(), &cmd))
        return;
    log_info("rebalance",
             lstr("next", cmd.kind == CMD_JOB_CREATE   ? "begins"
                          : cmd.kind == CMD_MOVES_DONE ? "is through"
                                                       : "lets a node go"),
             lstr("name", cmd.name != NULL ? cmd.name : ""), lu64("placed", s->smap.placed));
    g->beginning = true;
    proxy_commit(g->proxy, &cmd, rebalance_stepped, g);
    job_unref((struct job *)cmd.job);
}

static void scrub_begun(void *arg, const struct error *err)
{
    struct job_glue *g = arg;
    g->beginning = false;
    if (err != NULL)
        log_warn("scrub not begun", lerr(err));
}

static void step_scrub(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    struct command cmd;
    if (g->beginning || !scrub_next(s, clock_wall_ms(), &cmd))
        return;
    log_info("scrub begins", lstr("job", cmd.name));
    g->beginning = true;
    proxy_commit(g->proxy, &cmd, scrub_begun, g);
    job_unref((struct job *)cmd.job);
}

static void repair_stepped(void *arg, const struct error *err)
{
    struct job_glue *g = arg;
    g->beginning = false;
    if (err != NULL)
        log_warn("repair does not get on", lerr(err));
}

static void step_repair(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    const struct repair_fence fence = repair_fence(s);
    uint64_t now_ms = clock_ms();
    struct command cmd;
    if (g->fence_ms == 0 || !repair_fence_equal(&g->fence, &fence)) {
        g->fence = fence;
        g->fence_ms = now_ms;
    }
    if (g->beginning || !repair_next(s, now_ms - g->fence_ms, clock_wall_ms(), &cmd))
        return;
    log_info("repair", lstr("next", cmd.kind == CMD_JOB_CREATE ? "begins" : "is through"),
             lu64("lagged", fence.lagged), lu64("placed", fence.placed),
             lu64("raised", fence.raised));
    g->beginning = true;
    proxy_commit(g->proxy, &cmd, repair_stepped, g);
    job_unref((struct job *)cmd.job);
}

static void trim_copies_stepped(void *arg, const struct error *err)
{
    struct job_glue *g = arg;
    g->beginning = false;
    if (err != NULL)
        log_warn("trim_copies does not get on", lerr(err));
}

static void step_trim_copies(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    struct command cmd;
    if (g->beginning || !trim_copies_next(s, clock_wall_ms(), &cmd))
        return;
    log_info("trim_copies", lstr("next", cmd.kind == CMD_JOB_CREATE ? "begins" : "is through"),
             lstr("what", cmd.job != NULL ? cmd.job->description : ""),
             lu64("bucket", cmd.fence.bucket_id));
    g->beginning = true;
    proxy_commit(g->proxy, &cmd, trim_copies_stepped, g);
    job_unref((struct job *)cmd.job);
}

static void tick(void *arg)
{
    struct job_glue *g = arg;
    begin_resilvers(g);
    step_rebalance(g);
    step_repair(g);
    step_trim_copies(g);
    step_scrub(g);
    jobs_driver_tick(g->driver);
}

void job_glue_wake(struct proxy *p)
{
    if (p->job_glue != NULL)
        jobs_driver_wake(p->job_glue->driver);
}

json_t *job_glue_reports(struct proxy *p, const char *job_id)
{
    pthread_rwlock_rdlock(&p->role_lock);
    json_t *reports =
        p->job_glue != NULL ? jobs_driver_reports(p->job_glue->driver, job_id) : json_object();
    pthread_rwlock_unlock(&p->role_lock);
    return reports;
}

struct moved {
    struct proxy *proxy;
    char *job_id;
    char *node_id;
};

static void moved_posted(void *arg)
{
    struct moved *m = arg;
    if (m->proxy->job_glue != NULL)
        jobs_driver_moved(m->proxy->job_glue->driver, m->job_id, m->node_id);
    free(m->job_id);
    free(m->node_id);
    free(m);
}

void job_glue_moved(struct proxy *p, const char *job_id, const char *node_id)
{
    struct moved *m = xcalloc(1, sizeof *m);
    *m = (struct moved){.proxy = p, .job_id = xstrdup(job_id), .node_id = xstrdup(node_id)};
    loop_post(p->loop, moved_posted, m);
}

static int glue_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    static const struct {
        const char *kind;
        int (*fits)(const struct job *job, const struct cluster_state *s, struct error *err);
    } kinds[] = {
        {"sort", sort_job_fits},           {"delete", objects_job_fits},
        {"copy", objects_job_fits},        {"prefetch", objects_job_fits},
        {"evict", objects_job_fits},       {"download", objects_job_fits},
        {"rebalance", rebalance_job_fits}, {"scrub", scrub_job_fits},
        {"repair", repair_job_fits},       {"mirror", trim_copies_job_fits},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, job->kind) == 0)
            return kinds[i].fits(job, s, err);
    }
    return 0;
}

static int glue_judge(const struct job *job, const json_t *reports, struct error *err)
{
    return strcmp(job->kind, "sort") == 0 ? sort_job_outcome(job, reports, err)
                                          : objects_view_outcome(job, reports, err);
}

static size_t glue_spares(const struct job *job, const struct cluster_state *s)
{
    return strcmp(job->kind, "sort") == 0 ? sort_job_spares(job, s) : 0;
}

struct job_glue *job_glue_start(struct proxy *p)
{
    struct job_glue *g = xcalloc(1, sizeof *g);
    g->proxy = p;
    const struct jobs_env env = {.ctx = g,
                                 .state = glue_state,
                                 .commit = glue_commit,
                                 .send = glue_send,
                                 .fits = glue_fits,
                                 .judge = glue_judge,
                                 .spares = glue_spares,
                                 .wall_ms = glue_wall_ms};
    const struct jobs_limits limits = {.keep_ms = p->params.jobs_keep,
                                       .keep_max = p->params.jobs_keep_max,
                                       .keep_bytes = p->params.jobs_keep_bytes,
                                       .attempts_max = p->params.jobs_attempts_max,
                                       .away_ticks =
                                           p->params.jobs_away_wait / p->params.jobs_interval + 1,
                                       .running_max = p->params.jobs_running_max};
    g->driver = jobs_driver_new(&env, &limits);
    g->timer = loop_timer_new(p->loop, tick, g);
    loop_timer_start(g->timer, p->params.jobs_interval, p->params.jobs_interval);
    return g;
}

void job_glue_close(struct job_glue *g)
{
    g->closed = true;
    loop_timer_stop(g->timer);
}

void job_glue_stop(struct job_glue *g)
{
    if (g == NULL)
        return;
    loop_timer_free(g->timer);
    jobs_driver_free(g->driver);
    free(g);
}
