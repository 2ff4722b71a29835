/* The SDK names jobs in a JSON body, also of a GET.  The primary answers, since targets report to
 * it. */
#include "proxy/ais/ais_jobs.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/job_form.h"
#include "proxy/ais/job_text.h"
#include "proxy/jobs/bare_job.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/job_start.h"
#include "proxy/primary/job_stop.h"
#include "proxy/primary/proxy.h"

/* --- which jobs ------------------------------------------------------------------------------- */

/* "": any.  The SDK writes the fields in two ways. */
struct wanted {
    const char *id, *kind, *node;
    bool active; /* those alone that have not ended */
};

static int read_either(json_t *doc, const char *path, const char *name, const char *other,
                       const char **out, struct error *err)
{
    int code = json_get_str(doc, path, name, out, err);
    return code != 0 ? code : json_get_str(doc, path, other, out, err);
}

static int read_wanted(json_t *doc, const char *path, struct wanted *w, struct error *err)
{
    int code;
    *w = (struct wanted){.id = "", .kind = "", .node = ""};
    if ((code = read_either(doc, path, "ID", "id", &w->id, err)) != 0 ||
        (code = read_either(doc, path, "Kind", "kind", &w->kind, err)) != 0 ||
        (code = read_either(doc, path, "DaemonID", "node", &w->node, err)) != 0)
        return code;
    return json_get_bool(doc, path, "show_active", &w->active, err);
}

static bool takes_part(const struct job *job, const char *node)
{
    for (size_t i = 0; i < job->participant_count; i++) {
        if (strcmp(job->participants[i], node) == 0)
            return true;
    }
    return false;
}

/* An id says all. */
static bool is_wanted(const struct wanted *w, const struct job *job)
{
    if (w->id[0] != '\0')
        return strcmp(job->id, w->id) == 0;
    return job_form_is_of(job, w->kind) && (w->node[0] == '\0' || takes_part(job, w->node)) &&
           !(w->active && job_ended(job->state));
}

static int no_job(const char *id, struct error *err)
{
    return error_set(err, E_JOB_NOT_FOUND, "no job has the id '%.64s'", id);
}

static int check_id(const struct cluster_state *s, const struct wanted *w, struct error *err)
{
    return w->id[0] == '\0' || jobs_find(&s->jobs, w->id) != NULL ? 0 : no_job(w->id, err);
}

/* --- looking ---------------------------------------------------------------------------------- */

struct question {
    const char *what;
    /* The reply, or NULL and the error. */
    json_t *(*answer)(struct proxy *p, const struct cluster_state *s, const struct wanted *w,
                      struct error *err);
};

static json_t *one_status(struct proxy *p, const struct cluster_state *s, const struct wanted *w,
                          struct error *err)
{
    (void)p;
    const struct job *job = jobs_find(&s->jobs, w->id);
    if (job == NULL)
        no_job(w->id, err);
    return job != NULL ? job_form_status(job) : NULL;
}

static json_t *all_statuses(struct proxy *p, const struct cluster_state *s, const struct wanted *w,
                            struct error *err)
{
    (void)p;
    (void)err;
    json_t *all = json_array();
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_wanted(w, s->jobs.jobs[i]))
            json_array_append_new(all, job_form_status(s->jobs.jobs[i]));
    }
    return all;
}

/* ["copy-bck[cpy-…]", …] */
static json_t *all_running(struct proxy *p, const struct cluster_state *s, const struct wanted *w,
                           struct error *err)
{
    (void)p;
    (void)err;
    json_t *all = json_array();
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (is_wanted(w, job) && !job_ended(job->state))
            json_array_append_new(all, json_sprintf("%s[%s]", job_form_kind(job), job->id));
    }
    return all;
}

static void add_snapshots(struct proxy *p, const struct cluster_state *s, const struct job *job,
                          json_t *targets)
{
    _cleanup_json_ json_t *heard =
        job_ended(job->state) ? json_deep_copy(job->report) : job_glue_reports(p, job->id);
    for (size_t i = 0; i < job->participant_count; i++) {
        const char *id = job->participants[i];
        json_t *list = json_object_get(targets, id);
        if (list == NULL) {
            list = json_array();
            json_object_set_new(targets, id, list);
        }
        json_array_append_new(list, job_form_snapshot(job, json_object_get(heard, id), &s->bmd));
    }
}

/* {"t1": [snapshot, …], …} */
static json_t *snapshots(struct proxy *p, const struct cluster_state *s, const struct wanted *w,
                         struct error *err)
{
    if (check_id(s, w, err) != 0)
        return NULL;
    json_t *targets = json_object();
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_wanted(w, s->jobs.jobs[i]))
            add_snapshots(p, s, s->jobs.jobs[i], targets);
    }
    return targets;
}

static const struct question questions[] = {
    {"status", one_status},
    {"status_all", all_statuses},
    {"running_all", all_running},
    {"qryxstats", snapshots},
    {NULL},
};

static const struct question *question_of(const struct http_request *req)
{
    const char *what = http_query(req, "what");
    for (const struct question *q = questions; q->what != NULL; q++) {
        if (what != NULL && strcmp(q->what, what) == 0)
            return q;
    }
    return NULL;
}

static int answer(struct http_request *req, const char *data, size_t len, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    struct wanted w;
    int code = json_parse(data, len, &doc, err);
    if (code == 0 && !json_is_object(doc))
        code = error_set(err, E_JSON, "the body must be an object that says which jobs");
    if (code != 0 || (code = read_wanted(doc, "", &w, err)) != 0)
        return code;
    _cleanup_json_ json_t *reply = question_of(req)->answer(p, s, &w, err);
    if (reply == NULL)
        return err->code;
    proxy_reply_masked(req, reply);
    return 0;
}

static void answer_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (answer(req, data, len, &err) != 0)
        http_reply_error(req, &err);
}

void ais_jobs_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (question_of(req) == NULL)
        ais_refused_begin(req);
    else if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, answer_body);
}

/* --- starting --------------------------------------------------------------------------------- */

static int check_start(json_t *value, const struct wanted *w, struct error *err)
{
    static const char *const scopes[] = {"Bck", "Buckets", "bucket", "buckets"};
    if (w->node[0] != '\0')
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.DaemonID': a job on one target alone is not supported");
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        json_t *scope = json_object_get(value, scopes[i]);
        if (scope != NULL && !json_is_null(scope))
            return error_set(err, E_UNSUPPORTED,
                             "field 'value.%s': a job that is started by its kind is about all "
                             "buckets",
                             scopes[i]);
    }
    return 0;
}

static int start(struct http_request *req, json_t *value, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct wanted w;
    struct job *job = NULL;
    int code = read_wanted(value, "value", &w, err);
    if (code != 0 || (code = check_start(value, &w, err)) != 0)
        return code;
    const char *native = job_form_bare(w.kind);
    if (native == NULL)
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.Kind': no job of the kind '%.64s' is started by its kind "
                         "alone (docs/reference/jobs.md has those that are)",
                         w.kind);
    _cleanup_buf_ struct buf body = BUF_INIT;
    buf_printf(&body, "{\"action\":\"start\",\"name\":\"%s\"}", native);
    code = bare_job_make(s, body.data, body.len, clock_wall_ms(), &job, err);
    if (code == 0)
        job_start_as(req, job, job_text_reply);
    return code;
}

/* --- stopping --------------------------------------------------------------------------------- */

/* Jobs that are stopped one after the other; of the request's arena. */
struct stopping {
    struct http_request *req;
    const char **ids;
    size_t count, next;
};

static void stop_next(struct stopping *s);

/* A job that ended meanwhile needs no stop. */
static void stopped(void *arg, const struct error *err)
{
    struct stopping *s = arg;
    if (err != NULL && err->code != E_JOB_STATE && err->code != E_JOB_NOT_FOUND) {
        proxy_reply_error(s->req, err);
        return;
    }
    job_glue_wake(http_user(s->req));
    stop_next(s);
}

static void stop_next(struct stopping *s)
{
    struct proxy *p = http_user(s->req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    while (s->next < s->count) {
        const struct job *job = jobs_find(&state->jobs, s->ids[s->next++]);
        if (job != NULL && job_may_stop(job)) {
            job_stop(p, job, stopped, s);
            return;
        }
    }
    http_reply_empty(s->req, 200);
}

static int stop(struct http_request *req, json_t *value, struct error *err)
{
    const struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct wanted w;
    int code = read_wanted(value, "value", &w, err);
    if (code == 0 && w.id[0] == '\0' && w.kind[0] == '\0')
        code = error_set(err, E_INVALID, "field 'value.ID' or 'value.Kind' must say which jobs");
    if (code != 0 || (code = check_id(s, &w, err)) != 0)
        return code;
    struct stopping *all = arena_alloc(http_arena(req), sizeof *all);
    *all = (struct stopping){.req = req};
    all->ids = arena_alloc(http_arena(req), (s->jobs.count + 1) * sizeof *all->ids);
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_wanted(&w, s->jobs.jobs[i]))
            all->ids[all->count++] = arena_strdup(http_arena(req), s->jobs.jobs[i]->id);
    }
    stop_next(all);
    return 0;
}

/* --- changes ---------------------------------------------------------------------------------- */

static int change(struct http_request *req, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *none = json_object();
    json_t *value = NULL;
    const char *action = NULL;
    int code = ais_read_action(data, len, &doc, &action, err);
    if (code == 0)
        code = json_get_object(doc, "", "value", &value, err);
    if (code != 0)
        return code;
    value = value != NULL ? value : none;
    if (strcmp(action, "start") == 0)
        return start(req, value, err);
    return strcmp(action, "stop") == 0 ? stop(req, value, err) : ais_refuse_action(action, err);
}

static void change_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (change(req, data, len, &err) != 0)
        http_reply_error(req, &err);
}

void ais_jobs_change_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, change_body);
}
