/* Background jobs over HTTP: POST /v1/sort makes one (buckets.c others), the rest is the same for
 * every kind.  The primary answers; other proxies pass the request on to it, since the targets'
 * reports come there.
 */
#include "proxy/http/job_routes.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/http/job_rights.h"
#include "proxy/jobs/bare_job.h"
#include "proxy/jobs/job_filter.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/job_start.h"
#include "proxy/primary/job_stop.h"
#include "proxy/jobs/job_view.h"
#include "proxy/primary/proxy.h"
#include "proxy/jobs/sort_job.h"

static void reply_no_job(struct http_request *req, const char *id)
{
    struct error err;
    error_set(&err, E_JOB_NOT_FOUND, "no job has the id '%s'", id);
    http_reply_error(req, &err);
}

/* --- starting
 * -------------------------------------------------------------------------------------- */

static void start_body(struct http_request *req, const char *data, size_t len)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    struct job *job = NULL;
    int code = json_parse(data, len, &doc, &err);
    if (code == 0)
        code = job_rights_sort(req, doc, &err);
    if (code == 0)
        code = sort_job_make(state, doc, clock_wall_ms(), &job, &err);
    if (code != 0)
        http_reply_error(req, &err);
    else
        job_start(req, job);
}

/* --- by name alone ---------------------------------------------------------------------------- */

static void start_bare_body(struct http_request *req, const char *data, size_t len)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    struct error err = ERROR_INIT;
    struct job *job = NULL;
    if (bare_job_make(state, data, len, clock_wall_ms(), &job, &err) != 0)
        http_reply_error(req, &err);
    else
        job_start(req, job);
}

static void start_bare_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, start_bare_body);
}

static void start_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, JOB_SPEC_MAX, start_body);
}

/* --- looking
 * --------------------------------------------------------------------------------------- */

static json_t *view_of(struct proxy *p, const struct cluster_state *s, const struct job *job,
                       bool brief)
{
    if (job_ended(job->state))
        return job_view(job, job->report, brief);
    _cleanup_json_ json_t *reports = job_glue_reports(p, job->id);
    json_t *view = job_view(job, reports, brief);
    json_t *waits = job_view_waits(job, s);
    json_object_set_new(view, "waits_for", waits);
    if (!brief && json_array_size(waits) > 0 && strcmp(job->kind, "sort") == 0)
        json_object_set_new(view, "unreachable_shards", sort_job_unreachable(job, s));
    return view;
}

static void reply_job(struct http_request *req, const char *id)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    const struct job *job = jobs_find(&state->jobs, id);
    if (job == NULL) {
        reply_no_job(req, id);
        return;
    }
    _cleanup_json_ json_t *view = view_of(p, state, job, false);
    proxy_reply_masked(req, view);
}

static void reply_list(struct http_request *req, const struct job_filter *f)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    _cleanup_json_ json_t *jobs = json_array();
    for (size_t i = 0; i < state->jobs.count; i++) {
        const struct job *job = state->jobs.jobs[i];
        json_t *view = view_of(p, state, job, true);
        if (job_filter_takes(f, job, json_string_value(json_object_get(view, "state"))))
            json_array_append_new(jobs, view);
        else
            json_decref(view);
    }
    _cleanup_json_ json_t *reply = json_pack("{s:O}", "jobs", jobs);
    proxy_reply_masked(req, reply);
}

static void sort_list(struct http_request *req)
{
    const char *pattern = http_query(req, "regex");
    struct job_filter f = {.kind = "sort"};
    struct error err = ERROR_INIT;
    if (pattern != NULL && job_filter_regex(&f, pattern, &err) != 0)
        http_reply_error(req, &err);
    else
        reply_list(req, &f);
    job_filter_done(&f);
}

static void sort_get_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    const char *id = http_query(req, "id");
    if (id != NULL)
        reply_job(req, id);
    else
        sort_list(req);
}

static void jobs_list_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    const char *kind = http_query(req, "kind");
    struct job_filter f = {.state = http_query(req, "state")};
    struct error err = ERROR_INIT;
    if (kind != NULL && job_filter_kind(&f, kind, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    if (f.state != NULL && !job_view_is_state(f.state)) {
        error_set(&err, E_INVALID, "parameter 'state': '%s' is not a job's state", f.state);
        http_reply_error(req, &err);
        return;
    }
    reply_list(req, &f);
}

static void job_get_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        reply_job(req, http_path_param(req, "id"));
}

/* --- ending
 * ---------------------------------------------------------------------------------------- */

static void abort_done(void *arg, const struct error *err)
{
    struct http_request *req = arg;
    struct proxy *p = http_user(req);
    if (err != NULL) {
        http_reply_error(req, err);
        return;
    }
    http_reply_empty(req, 202);
    job_glue_wake(p);
}

static void abort_job(struct http_request *req, const char *id)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *state = state_current(p->state);
    const struct job *job = jobs_find(&state->jobs, id);
    if (job == NULL) {
        reply_no_job(req, id);
    } else if (!job_may_stop(job)) {
        struct error err;
        error_set(&err, E_JOB_STATE, "job '%s' cannot be aborted: it is %s", id,
                  job_state_name(job->state));
        http_reply_error(req, &err);
    } else {
        job_stop(p, job, abort_done, req);
    }
}

static const char *need_id(struct http_request *req)
{
    const char *id = http_query(req, "id");
    if (id == NULL) {
        struct error err;
        error_set(&err, E_INVALID, "parameter 'id' is missing");
        http_reply_error(req, &err);
    }
    return id;
}

static void sort_abort_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    const char *id = need_id(req);
    if (id != NULL)
        abort_job(req, id);
}

static void job_abort_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        abort_job(req, http_path_param(req, "id"));
}

static void forget_done(void *arg, const struct error *err)
{
    if (err != NULL)
        http_reply_error(arg, err);
    else
        http_reply_empty(arg, 204);
}

static void job_moved_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    const char *node = http_query(req, "node");
    struct error err;
    if (node != NULL) {
        job_glue_moved(http_user(req), http_path_param(req, "id"), node);
        http_reply_empty(req, 202);
    } else {
        error_set(&err, E_INVALID, "parameter 'node' is missing");
        http_reply_error(req, &err);
    }
}

static void sort_forget_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    const char *id = need_id(req);
    if (id == NULL)
        return;
    const struct command cmd = {.kind = CMD_JOB_FORGET, .name = id};
    proxy_commit(http_user(req), &cmd, forget_done, req);
}

const struct http_route job_routes[] = {
    {.name = "sort_start",
     .method = HTTP_POST,
     .pattern = "/v1/sort",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = start_begin,
     .summary = "Starts SortDataset.",
     .body = "the specification (docs/reference/sort-spec.md)",
     .reply = "202 `{\"id\": \"srt-…\"}`",
     .errors = "invalid_spec invalid_json not_supported bucket_not_found no_targets "
               "node_unreachable too_large overloaded"},
    {.name = "sort_get",
     .method = HTTP_GET,
     .pattern = "/v1/sort",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = sort_get_begin,
     .summary = "One sort job's document, or a list of them.",
     .query = HTTP_PARAMETERS(
         {"id", "job"},
         {"regex", "what is looked for in the description: a pattern as in an "
                   "external key map (docs/reference/sort-spec.md), without intervals, of "
                   "256 bytes"}),
     .body = "",
     .reply = "the document (docs/reference/jobs.md), or `{\"jobs\": [document, …]}`",
     .errors = "job_not_found invalid_argument"},
    {.name = "sort_abort",
     .method = HTTP_DELETE,
     .pattern = "/v1/sort/abort",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = sort_abort_begin,
     .summary = "Aborts a sort job and removes its output.",
     .query = HTTP_PARAMETERS({"id", "job"}),
     .body = "",
     .reply = "202",
     .errors = "job_not_found job_state"},
    {.name = "sort_forget",
     .method = HTTP_DELETE,
     .pattern = "/v1/sort",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = sort_forget_begin,
     .summary = "Takes an ended sort job off the list.",
     .query = HTTP_PARAMETERS({"id", "job"}),
     .body = "",
     .reply = "204",
     .errors = "job_not_found job_state"},
    {.name = "job_list",
     .method = HTTP_GET,
     .pattern = "/v1/jobs",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = jobs_list_begin,
     .summary = "Background jobs of every kind, the ended ones for a time.",
     .query = HTTP_PARAMETERS({"kind", "word"}, {"state", "word"}),
     .body = "",
     .reply = "`{\"jobs\": [document without targets and spec, …]}`",
     .errors = ""},
    {.name = "job_start",
     .method = HTTP_POST,
     .pattern = "/v1/jobs",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = start_bare_begin,
     .summary = "Starts a job of a kind that is about the whole cluster: cleanup, expire, lru, "
                "rebalance, repair, scrub, trim_copies, validate. An expire may be for one bucket.",
     .body = "`{\"action\": \"start\", \"name\": \"cleanup\"}` (or `lru`, `rebalance`, `repair`, "
             "`trim_copies`); "
             "`{\"action\": \"start\", "
             "\"name\": \"validate\", \"value\": {\"checksums\": bool, \"rate\": size}}`; "
             "`{\"action\": \"start\", \"name\": \"scrub\", \"value\": {\"rate\": size}}`; "
             "`{\"action\": \"start\", \"name\": \"expire\", \"value\": {\"bucket\": name}}`",
     .reply = "202 `{\"id\": \"cln-…\"}`",
     .errors = "invalid_argument invalid_json no_targets node_unreachable overloaded"},
    {.name = "job_get",
     .method = HTTP_GET,
     .pattern = "/v1/jobs/{id}",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = job_get_begin,
     .summary = "One job's document.",
     .body = "",
     .reply = "the document (docs/reference/jobs.md)",
     .errors = "job_not_found"},
    {.name = "job_abort",
     .method = HTTP_DELETE,
     .pattern = "/v1/jobs/{id}",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = job_abort_begin,
     .summary = "Aborts a job and removes its output. Objects that were deleted or copied stay so.",
     .body = "",
     .reply = "202",
     .errors = "job_not_found job_state"},
    {.name = "job_moved",
     .method = HTTP_POST,
     .pattern = "/v1/jobs/{id}/moved",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .begin = job_moved_begin,
     .summary = "A target has finished a step of a job; the primary then asks for its report.",
     .query = HTTP_PARAMETERS({"node", "the target"}),
     .body = "",
     .reply = "202",
     .errors = "invalid_argument"},
    {.name = NULL},
};
