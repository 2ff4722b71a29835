#include "proxy/ais/ais_sort.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/job_text.h"
#include "proxy/ais/sort_form.h"
#include "proxy/http/job_rights.h"
#include "proxy/jobs/sort_job.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/job_start.h"
#include "proxy/primary/job_stop.h"
#include "proxy/primary/proxy.h"

/* --- starting --------------------------------------------------------------------------------- */

/* By which this cluster is called: as the client has done, and by its nodes' public URLs. */
static const char *const *hosts_of(struct http_request *req, const struct cluster_state *s)
{
    const char **hosts = arena_alloc(http_arena(req), (s->smap.count + 2) * sizeof *hosts);
    const char *called = http_header(req, "Host");
    size_t count = 0;
    if (called != NULL)
        hosts[count++] = called;
    for (size_t i = 0; i < s->smap.count; i++) {
        const char *scheme = strstr(s->smap.nodes[i].public_url, "://");
        if (scheme != NULL)
            hosts[count++] = arena_strdup(http_arena(req), scheme + 3);
    }
    return hosts;
}

static int start(struct http_request *req, const char *data, size_t len, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    struct job *job = NULL;
    int code = json_parse(data, len, &doc, err);
    if (code == 0)
        code = sort_form_request(doc, hosts_of(req, s), err);
    if (code == 0)
        code = job_rights_sort(req, doc, err);
    if (code == 0)
        code = sort_job_make(s, doc, clock_wall_ms(), &job, err);
    if (code == 0)
        job_start_as(req, job, job_text_reply);
    return code;
}

static void start_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (start(req, data, len, &err) != 0)
        http_reply_error(req, &err);
}

void ais_sort_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, JOB_SPEC_MAX, start_body);
}

/* --- looking, ending -------------------------------------------------------------------------- */

/* NULL: refused, and why. */
static const struct job *find(const struct http_request *req, const struct cluster_state *s,
                              struct error *err)
{
    const char *id = http_query(req, "uuid");
    const struct job *job = id != NULL ? jobs_find(&s->jobs, id) : NULL;
    if (id == NULL)
        error_set(err, E_INVALID, "parameter 'uuid', the sort's id, is missing");
    else if (job == NULL || strcmp(job->kind, "sort") != 0)
        error_set(err, E_JOB_NOT_FOUND, "no sort has the id '%.64s'", id);
    else
        return job;
    return NULL;
}

/* {"t1": info, …} */
static json_t *infos_of(struct proxy *p, const struct job *job)
{
    _cleanup_json_ json_t *heard =
        job_ended(job->state) ? json_deep_copy(job->report) : job_glue_reports(p, job->id);
    json_t *infos = json_object();
    for (size_t i = 0; i < job->participant_count; i++) {
        const char *id = job->participants[i];
        json_object_set_new(infos, id, sort_form_info(job, json_object_get(heard, id)));
    }
    return infos;
}

void ais_sort_info_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct error err = ERROR_INIT;
    const struct job *job = find(req, s, &err);
    if (job == NULL) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *infos = infos_of(p, job);
    proxy_reply_masked(req, infos);
}

static void stopped(void *arg, const struct error *err)
{
    struct http_request *req = arg;
    if (err != NULL && err->code != E_JOB_STATE) {
        proxy_reply_error(req, err);
        return;
    }
    job_glue_wake(http_user(req));
    http_reply_empty(req, 200);
}

/* Of one that has ended nothing is left to do. */
void ais_sort_abort_begin(struct http_request *req)
{
    if (proxy_passed_to_primary(req))
        return;
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    struct error err = ERROR_INIT;
    const struct job *job = find(req, s, &err);
    if (job == NULL)
        http_reply_error(req, &err);
    else if (job_may_stop(job))
        job_stop(p, job, stopped, req);
    else
        http_reply_empty(req, 200);
}
