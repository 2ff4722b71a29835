#include "proxy/primary/job_glue.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "proxy/jobs/jobs.h"
#include "proxy/primary/members.h"
#include "proxy/jobs/job_kind.h"
#include "proxy/primary/proxy.h"
#include "proxy/jobs/standing_jobs.h"
#include "xaction/kinds.h"

struct job_glue {
    struct proxy *proxy;
    struct jobs_driver *driver;
    struct loop_timer *timer;
    const struct job_kind *stepping; /* whose command is being committed, or NULL */
    struct standing_clocks clocks;
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
    struct http_call call = {.method = HTTP_GET,
                             .url = a->url,
                             .node = target->id,
                             .total_timeout_ms = g->proxy->params.call_timeout};
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

static uint64_t unsettled(void *ctx, const char *target)
{
    struct job_glue *g = ctx;
    struct keepalive last;
    return members_last(g->proxy, target, &last) ? last.resilver : 0;
}

static void stepped(void *arg, const struct error *err)
{
    struct job_glue *g = arg;
    if (err != NULL)
        log_warn("standing job does not get on",
                 lstr("kind", xaction_kind_find(g->stepping->name)->shown), lerr(err));
    g->stepping = NULL;
}

/* One at a tick. */
static void step(struct job_glue *g)
{
    _cleanup_state_ const struct cluster_state *s = state_current(g->proxy->state);
    struct standing_now now = {.wall_ms = clock_wall_ms(), .unsettled = unsettled, .ctx = g};
    uint64_t now_ms = clock_ms();
    struct command cmd;
    standing_look(&g->clocks, s, now_ms);
    if (g->stepping != NULL)
        return;
    const struct job_kind *kind = standing_next(&g->clocks, s, now_ms, &now, &cmd);
    if (kind == NULL)
        return;
    log_info("standing job", lstr("kind", xaction_kind_find(kind->name)->shown),
             lstr("next", cmd.kind == CMD_JOB_CREATE    ? "begins"
                          : cmd.kind == CMD_NODE_REMOVE ? "lets a node go"
                                                        : "is through"),
             lstr("name", cmd.name != NULL ? cmd.name : ""),
             lstr("what", cmd.job != NULL ? cmd.job->description : ""));
    g->stepping = kind;
    proxy_commit(g->proxy, &cmd, stepped, g);
    job_unref((struct job *)cmd.job);
}

static void tick(void *arg)
{
    struct job_glue *g = arg;
    step(g);
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
    const struct job_kind *k = job_kind_find(job->kind);
    return k != NULL && k->fits != NULL ? k->fits(job, s, err) : 0;
}

static int glue_judge(const struct job *job, const json_t *reports, struct error *err)
{
    const struct job_kind *k = job_kind_find(job->kind);
    return k != NULL && k->judge != NULL ? k->judge(job, reports, err) : 0;
}

static size_t glue_spares(const struct job *job, const struct cluster_state *s)
{
    const struct job_kind *k = job_kind_find(job->kind);
    return k != NULL && k->spares != NULL ? k->spares(job, s) : 0;
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
