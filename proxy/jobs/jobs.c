#include "proxy/jobs/jobs.h"

#include <pthread.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "proxy/jobs/ended_jobs.h"
#include "proxy/jobs/job_count.h"
#include "proxy/jobs/job_report.h"
#include "proxy/jobs/job_turn.h"
#include "proxy/jobs/job_kind.h"
#include "xaction/kinds.h"

/* How long the cause of a failure is waited for where only its echoes are known. */
enum { PATIENCE_TICKS = 5 };

/* One participant of a tracked job. */
struct peer {
    struct tracked *job;
    char *id;
    bool asking;         /* a message is under way */
    bool moved;          /* meanwhile: the answer may be older than that */
    bool owed;           /* an order that was not sent meanwhile: the answer brings it */
    bool silent;         /* the last one had no answer */
    uint64_t away_since; /* the beat at which the map called it unreachable; 0: it does not */
    enum controller_order last; /* the last order sent in the job's present state */
    bool heard;                 /* since the job's present state began */
    enum xaction_state state;
    int error_code;
    char *error_message;
    json_t *report; /* the last one; NULL before the first */
};

/* A job that has not ended, as the driver follows it. */
struct tracked {
    struct jobs_driver *driver;
    struct tracked *next;
    char *id;
    bool moving;           /* a commit is under way */
    unsigned brevity;      /* of the reports that stay, after the metastore had no room for more */
    uint64_t decided_upon; /* the version of the documents at the last step */
    uint64_t failed_since; /* the beat at which a participant was first seen to have failed, or 0 */
    size_t peer_count;
    struct peer *peers;
};

struct jobs_driver {
    struct jobs_env env;
    struct jobs_limits limits;
    pthread_mutex_t lock; /* guards the list and the peers' `report` against jobs_driver_reports */
    struct tracked *jobs;
    uint64_t beats;            /* ticks so far, and 1: what goes by them goes by time */
    bool forgetting;           /* a commit that drops an ended job is under way */
    uint64_t measured_version; /* of the jobs whose ended ones have … */
    uint64_t measured_bytes;
};

/* A move that waits for its commit. */
struct move {
    struct tracked *tracked;
    struct job *job;
};

static void tracked_step(struct tracked *t, bool tick);
static void peer_ask(struct peer *p);

struct jobs_driver *jobs_driver_new(const struct jobs_env *env, const struct jobs_limits *limits)
{
    struct jobs_driver *d = xcalloc(1, sizeof *d);
    d->env = *env;
    d->limits = *limits;
    d->beats = 1;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

static void tracked_free(struct tracked *t)
{
    for (size_t i = 0; i < t->peer_count; i++) {
        free(t->peers[i].id);
        free(t->peers[i].error_message);
        json_decref(t->peers[i].report);
    }
    free(t->peers);
    free(t->id);
    free(t);
}

void jobs_driver_free(struct jobs_driver *d)
{
    if (d == NULL)
        return;
    while (d->jobs != NULL) {
        struct tracked *t = d->jobs;
        d->jobs = t->next;
        tracked_free(t);
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static struct tracked *tracked_find(struct jobs_driver *d, const char *id)
{
    struct tracked *t = d->jobs;
    while (t != NULL && strcmp(t->id, id) != 0)
        t = t->next;
    return t;
}

static struct tracked *tracked_new(struct jobs_driver *d, const struct job *job)
{
    struct tracked *t = xcalloc(1, sizeof *t);
    t->driver = d;
    t->id = xstrdup(job->id);
    t->peer_count = job->participant_count;
    t->peers = xcalloc(t->peer_count, sizeof *t->peers);
    for (size_t i = 0; i < t->peer_count; i++) {
        t->peers[i].job = t;
        t->peers[i].id = xstrdup(job->participants[i]);
    }
    pthread_mutex_lock(&d->lock);
    t->next = d->jobs;
    d->jobs = t;
    pthread_mutex_unlock(&d->lock);
    return t;
}

static json_t *tracked_reports(const struct tracked *t)
{
    json_t *reports = json_object();
    for (size_t i = 0; i < t->peer_count; i++) {
        if (t->peers[i].report != NULL)
            json_object_set_new(reports, t->peers[i].id, json_deep_copy(t->peers[i].report));
    }
    return reports;
}

json_t *jobs_driver_reports(struct jobs_driver *d, const char *job_id)
{
    pthread_mutex_lock(&d->lock);
    const struct tracked *t = tracked_find(d, job_id);
    json_t *reports = t != NULL ? tracked_reports(t) : json_object();
    pthread_mutex_unlock(&d->lock);
    return reports;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* What a target said of its work is worth more than that it has forgotten it. */
static void peer_keep_report(struct peer *p, const json_t *report)
{
    json_t *kept = json_deep_copy(report);
    json_t *status = json_object_get(p->report, "status");
    if (status != NULL && json_object_get(kept, "status") == NULL)
        json_object_set(kept, "status", status);
    pthread_mutex_lock(&p->job->driver->lock);
    json_decref(p->report);
    p->report = kept;
    pthread_mutex_unlock(&p->job->driver->lock);
}

/* Does the report tell of an attempt that is over?  At the end of a job it does not matter. */
static bool report_is_old(const struct peer *p, const json_t *report, enum xaction_state state)
{
    const struct jobs_env *env = &p->job->driver->env;
    _cleanup_state_ const struct cluster_state *s = env->state(env->ctx);
    const struct job *job = jobs_find(&s->jobs, p->job->id);
    json_int_t attempt = json_integer_value(json_object_get(report, "attempt"));
    return state != XACTION_NONE && job != NULL && attempt != (json_int_t)job->attempt &&
           (job->state == JOB_QUEUED || job->state == JOB_RUNNING);
}

static bool is_left_out(const struct peer *p)
{
    const struct jobs_env *env = &p->job->driver->env;
    _cleanup_state_ const struct cluster_state *s = env->state(env->ctx);
    const struct job *job = jobs_find(&s->jobs, p->job->id);
    return job != NULL && job_leaves_out(job, p->id);
}

/* What steps decide upon; false: it was known. */
static bool peer_learn(struct peer *p, enum xaction_state state, const json_t *error)
{
    const char *name = json_string_value(json_object_get(error, "code"));
    const char *text = json_string_value(json_object_get(error, "message"));
    int code = name != NULL ? error_from_name(name) : 0;
    code = code != 0 ? code : E_INTERNAL;
    text = text != NULL ? text : "no reason was given";
    bool same = p->heard && p->state == state && p->error_code == code;
    if (same && strcmp(p->error_message, text) == 0)
        return false;
    p->heard = true;
    p->state = state;
    p->error_code = code;
    free(p->error_message);
    p->error_message = xstrdup(text);
    return true;
}

static bool peer_note(struct peer *p, const json_t *report)
{
    if (is_left_out(p))
        return false;
    enum xaction_state state;
    const char *name = json_string_value(json_object_get(report, "state"));
    if (name == NULL || xaction_state_from_name(name, &state) != 0) {
        log_warn("job report not understood", lstr("job", p->job->id), lstr("node", p->id));
        return false;
    }
    peer_keep_report(p, report);
    return !report_is_old(p, report, state) &&
           peer_learn(p, state, json_object_get(report, "error"));
}

/* One line for each silence. */
static void peer_note_silence(struct peer *p, const struct error *err)
{
    if (err != NULL && !p->silent)
        log_warn("target not asked about a job", lstr("job", p->job->id), lstr("node", p->id),
                 lerr(err));
    else if (err == NULL && p->silent)
        log_info("target asked about a job again", lstr("job", p->job->id), lstr("node", p->id));
    p->silent = err != NULL;
}

static bool documents_changed(const struct tracked *t)
{
    _cleanup_state_ const struct cluster_state *s = t->driver->env.state(t->driver->env.ctx);
    return s->version != t->decided_upon;
}

/* A step looks at all participants, so that an answer that tells nothing new takes none. */
static void peer_answered(void *arg, const json_t *report, const struct error *err)
{
    struct peer *p = arg;
    bool waited = p->silent || p->owed;
    p->asking = false;
    peer_note_silence(p, report == NULL ? err : NULL);
    if (report == NULL)
        return; /* the next tick tries again */
    if (peer_note(p, report) || waited || documents_changed(p->job))
        tracked_step(p->job, false);
    if (p->moved)
        peer_ask(p);
}

/* --- moves ------------------------------------------------------------------------------------ */

/* What it did is done again, and counted, by others. */
static void forget_reports(struct tracked *t, const struct job *job)
{
    pthread_mutex_lock(&t->driver->lock);
    for (size_t i = 0; i < t->peer_count; i++) {
        if (job_leaves_out(job, t->peers[i].id))
            json_decref(steal(t->peers[i].report));
    }
    pthread_mutex_unlock(&t->driver->lock);
}

static void move_done(void *arg, const struct error *err)
{
    struct move *m = arg;
    struct tracked *t = m->tracked;
    bool ended = job_ended(m->job->state);
    t->moving = false;
    t->failed_since = err == NULL ? 0 : t->failed_since;
    if (err != NULL) {
        log_warn("job move not committed", lstr("job", t->id),
                 lstr("to", job_state_name(m->job->state)), lerr(err));
        t->brevity += err->code == E_TOO_LARGE && t->brevity < JOB_REPORT_NONE;
    } else {
        log_info("job moved", lstr("job", t->id), lstr("to", job_state_name(m->job->state)),
                 lu64("attempt", m->job->attempt), lu64("without", m->job->without_count));
        job_count_failure(m->job);
        forget_reports(t, m->job);
        for (size_t i = 0; i < t->peer_count; i++) {
            t->peers[i].heard = false;
            t->peers[i].last = CONTROLLER_NOTHING;
        }
    }
    job_unref(m->job);
    free(m);
    if (err == NULL && ended)
        jobs_driver_wake(t->driver); /* others may have waited for it */
    else if (err == NULL)
        tracked_step(t, true);
}

static struct job *job_moved(const struct tracked *t, const struct job *job,
                             const struct controller_peer *peers, size_t n,
                             const struct controller_verdict *v, int64_t now)
{
    struct job *next = job_copy(job);
    next->state = v->next;
    if (v->next == JOB_RUNNING && job->started_ms == 0)
        next->started_ms = now;
    if (v->next == JOB_QUEUED)
        next->attempt++;
    for (size_t i = 0; v->sheds && i < n; i++) {
        if (peers[i].spared)
            job_leave_out(next, peers[i].id);
    }
    if (v->next == JOB_STOPPING) {
        next->stop_as = v->stop_as;
        free(next->error_code);
        free(next->error_message);
        next->error_code = xstrdup(error_name(v->cause.code));
        next->error_message = xstrdup(v->cause.message);
    }
    if (job_ended(v->next)) {
        next->ended_ms = now;
        json_decref(next->report);
        next->report = job_report_brief(tracked_reports(t), (enum job_brevity)t->brevity);
    }
    return next;
}

static void tracked_move(struct tracked *t, const struct job *job,
                         const struct controller_peer *peers, size_t n,
                         const struct controller_verdict *v)
{
    const struct jobs_env *env = &t->driver->env;
    struct move *m = xcalloc(1, sizeof *m);
    m->tracked = t;
    m->job = job_moved(t, job, peers, n, v, env->wall_ms(env->ctx));
    t->moving = true;
    const struct command cmd = {.kind = CMD_JOB_UPDATE, .name = t->id, .job = m->job};
    env->commit(env->ctx, &cmd, move_done, m);
}

/* --- one step --------------------------------------------------------------------------------- */

/* Those that the job does not go on without; at[i] is the place of the i-th among all. */
static size_t fill_peers(const struct tracked *t, const struct job *job,
                         const struct cluster_state *s, struct controller_peer *peers, size_t *at)
{
    size_t n = 0;
    for (size_t i = 0; i < t->peer_count; i++) {
        const struct peer *p = &t->peers[i];
        const struct node *node = smap_node(&s->smap, p->id);
        if (job_leaves_out(job, p->id))
            continue;
        at[n] = i;
        peers[n++] = (struct controller_peer){
            .id = p->id,
            .heard = p->heard,
            .silent = p->silent,
            .reachable = node != NULL && node->state != NODE_UNREACHABLE,
            .gone = node == NULL,
            .state = p->state,
            .error_code = p->error_code,
            .error_message = p->error_message,
        };
    }
    return n;
}

static void note_away(struct tracked *t, const struct cluster_state *s)
{
    for (size_t i = 0; i < t->peer_count; i++) {
        struct peer *p = &t->peers[i];
        const struct node *n = smap_node(&s->smap, p->id);
        bool away = n != NULL && n->state == NODE_UNREACHABLE;
        p->away_since = !away ? 0 : p->away_since == 0 ? t->driver->beats : p->away_since;
    }
}

static bool is_away(const struct tracked *t, size_t at, const struct controller_peer *peer)
{
    const struct jobs_driver *d = t->driver;
    uint64_t since = t->peers[at].away_since;
    return since != 0 && d->beats - since + 1 >= d->limits.away_ticks && !peer->reachable;
}

/* All of those that have been away for so long, or none. */
static void spare_peers(const struct tracked *t, const struct job *job,
                        const struct cluster_state *s, struct controller_peer *peers,
                        const size_t *at, size_t n)
{
    const struct jobs_env *env = &t->driver->env;
    size_t away = 0;
    for (size_t i = 0; i < n; i++)
        away += peers[i].gone || is_away(t, at[i], &peers[i]);
    if (away == 0 || env->spares == NULL || job->without_count + away > env->spares(job, s))
        return;
    for (size_t i = 0; i < n; i++)
        peers[i].spared = !peers[i].gone && is_away(t, at[i], &peers[i]);
}

/* The participants are the cluster's targets at the job's creation; of some kinds only those that
 * answered then, which say by themselves what they fit. */
static int check_fits(const struct tracked *t, const struct job *job, const struct cluster_state *s,
                      struct error *err)
{
    const struct job_kind *kind = job_kind_find(job->kind);
    bool fixed = kind == NULL || !kind->outlasts_members;
    int code = fixed ? job_check_targets(job, s, t->peer_count, err) : 0;
    return code != 0 ? code : t->driver->env.fits(job, s, err);
}

static bool anybody_failed(const struct controller_peer *peers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peers[i].heard && peers[i].state == XACTION_FAILED)
            return true;
    }
    return false;
}

static bool may_begin_again(const struct tracked *t, const struct job *job)
{
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    return kind != NULL && kind->again && job->attempt + 1 < t->driver->limits.attempts_max;
}

static void peer_send(struct peer *p, const struct cluster_state *s, const struct job *job,
                      enum controller_order order)
{
    const struct node *node = smap_node(&s->smap, p->id);
    p->owed = p->asking && (p->owed || order != CONTROLLER_NOTHING);
    if (p->asking || node == NULL)
        return;
    const struct jobs_env *env = &p->job->driver->env;
    p->asking = true;
    p->moved = false;
    if (order != CONTROLLER_NOTHING)
        p->last = order;
    env->send(env->ctx, node, order, job, peer_answered, p);
}

static void peer_ask(struct peer *p)
{
    const struct jobs_env *env = &p->job->driver->env;
    _cleanup_state_ const struct cluster_state *s = env->state(env->ctx);
    const struct job *job = jobs_find(&s->jobs, p->job->id);
    p->moved = p->asking;
    if (job != NULL && !job_ended(job->state))
        peer_send(p, s, job, CONTROLLER_NOTHING);
}

void jobs_driver_moved(struct jobs_driver *d, const char *job_id, const char *node_id)
{
    struct tracked *t = tracked_find(d, job_id);
    for (size_t i = 0; t != NULL && i < t->peer_count; i++) {
        if (strcmp(t->peers[i].id, node_id) == 0)
            peer_ask(&t->peers[i]);
    }
}

static void judge(const struct tracked *t, const struct job *job, struct controller_verdict *v)
{
    const struct jobs_env *env = &t->driver->env;
    _cleanup_json_ json_t *reports = tracked_reports(t);
    struct error cause = ERROR_INIT;
    if (env->judge != NULL && env->judge(job, reports, &cause) != 0)
        *v = (struct controller_verdict){JOB_STOPPING, .stop_as = JOB_FAILED, .cause = cause};
}

/* At a tick everybody is asked, and orders that have not had their effect yet are sent again.
 * Between ticks only new orders go out, so that an answer never brings the same question at once.
 */
static void tracked_step(struct tracked *t, bool tick)
{
    const struct jobs_env *env = &t->driver->env;
    _cleanup_state_ const struct cluster_state *s = env->state(env->ctx);
    const struct job *job = jobs_find(&s->jobs, t->id);
    t->decided_upon = s->version;
    if (t->moving || job == NULL || job_ended(job->state))
        return;
    _cleanup_free_ struct controller_peer *peers = xcalloc(t->peer_count, sizeof *peers);
    _cleanup_free_ enum controller_order *orders = xcalloc(t->peer_count, sizeof *orders);
    _cleanup_free_ size_t *at = xcalloc(t->peer_count, sizeof *at);
    size_t n = fill_peers(t, job, s, peers, at);
    note_away(t, s);
    spare_peers(t, job, s, peers, at, n);
    struct controller_verdict v;
    struct error unfit = ERROR_INIT;
    check_fits(t, job, s, &unfit);
    if (t->failed_since == 0 && anybody_failed(peers, n))
        t->failed_since = t->driver->beats;
    bool patient = t->failed_since == 0 || t->driver->beats - t->failed_since < PATIENCE_TICKS;
    controller_step(job, peers, n, unfit.code != 0 ? &unfit : NULL, patient,
                    may_begin_again(t, job), &v, orders);
    if (v.next == JOB_COMMITTING)
        judge(t, job, &v);
    if (v.next != job->state || v.sheds) {
        tracked_move(t, job, peers, n, &v);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct peer *p = &t->peers[at[i]];
        bool fresh = orders[i] != CONTROLLER_NOTHING && orders[i] != p->last;
        if (fresh || tick)
            peer_send(p, s, job, orders[i]);
    }
}

/* --- the tick --------------------------------------------------------------------------------- */

static bool tracked_idle(const struct tracked *t)
{
    for (size_t i = 0; i < t->peer_count; i++) {
        if (t->peers[i].asking)
            return false;
    }
    return !t->moving;
}

static void drop_ended(struct jobs_driver *d, const struct cluster_state *s)
{
    for (struct tracked **at = &d->jobs; *at != NULL;) {
        struct tracked *t = *at;
        const struct job *job = jobs_find(&s->jobs, t->id);
        if ((job != NULL && !job_ended(job->state)) || !tracked_idle(t)) {
            at = &t->next;
            continue;
        }
        pthread_mutex_lock(&d->lock);
        *at = t->next;
        pthread_mutex_unlock(&d->lock);
        tracked_free(t);
    }
}

static void forget_done(void *arg, const struct error *err)
{
    struct jobs_driver *d = arg;
    d->forgetting = false;
    if (err != NULL)
        log_warn("ended job not forgotten", lerr(err));
}

/* The documents of ended jobs change rarely, and take time to measure. */
static struct ended_jobs find_ended(struct jobs_driver *d, const struct jobs *jobs)
{
    bool measured = d->measured_version == jobs->version;
    struct ended_jobs e = ended_jobs(jobs, !measured);
    if (measured)
        e.bytes = d->measured_bytes;
    d->measured_version = jobs->version;
    d->measured_bytes = e.bytes;
    return e;
}

/* The oldest ended job goes when its time is over or there are too many: one at a tick. */
static void forget_oldest(struct jobs_driver *d, const struct cluster_state *s)
{
    const struct ended_jobs e = find_ended(d, &s->jobs);
    if (e.oldest == NULL || d->forgetting)
        return;
    int64_t age_ms = d->env.wall_ms(d->env.ctx) - e.oldest->ended_ms;
    if (e.count <= d->limits.keep_max && e.bytes <= d->limits.keep_bytes &&
        age_ms < (int64_t)d->limits.keep_ms)
        return;
    d->forgetting = true;
    const struct command cmd = {.kind = CMD_JOB_FORGET, .name = e.oldest->id};
    d->env.commit(d->env.ctx, &cmd, forget_done, d);
}

/* Jobs that are stopping or committing do no work that counts, and may wait for a target for long;
 * nor does one that takes what is left over, nor one that others may wait for. */
static bool job_waits(const struct jobs_driver *d, const struct job *job,
                      const struct cluster_state *s, uint64_t *working)
{
    const struct job_kind *kind = job_kind_find(job->kind);
    enum job_load load = kind != NULL ? kind->load : JOB_COUNTS;
    if (load == JOB_BESIDE)
        return false;
    bool counts = load == JOB_COUNTS;
    bool full = counts && *working >= d->limits.running_max;
    if (job->state == JOB_QUEUED && (full || job_must_wait(job, s)))
        return true;
    *working += counts && (job->state == JOB_QUEUED || job->state == JOB_RUNNING);
    return false;
}

void jobs_driver_tick(struct jobs_driver *d)
{
    d->beats++;
    jobs_driver_wake(d);
}

void jobs_driver_wake(struct jobs_driver *d)
{
    _cleanup_state_ const struct cluster_state *s = d->env.state(d->env.ctx);
    uint64_t working = 0;
    drop_ended(d, s);
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (job_ended(job->state) || job_waits(d, job, s, &working))
            continue;
        struct tracked *t = tracked_find(d, job->id);
        if (t == NULL)
            t = tracked_new(d, job);
        tracked_step(t, true);
    }
    forget_oldest(d, s);
}
