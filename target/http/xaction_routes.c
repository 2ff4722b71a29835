#include "target/http/xaction_routes.h"

#include <assert.h>

#include "common/jsonx.h"
#include "common/parse.h"
#include "target/node/call.h"
#include "target/node/member.h"
#include "target/node/target.h"
#include "xaction/course.h"
#include "xaction/xaction.h"

enum { ORDER_BODY_MAX = JOB_DOCUMENT_MAX + 1024 };
#define ORDER_MAGIC 0x0dde1ca1

/* An order on its way; in the request's arena. */
struct order_call {
    unsigned magic;
    struct http_request *req;
    enum xaction_order order;
    struct job *job;
};

static void reply_report(struct http_request *req, struct xactions *x, const char *job_id)
{
    _cleanup_json_ json_t *report = xactions_report(x, job_id);
    http_reply_json(req, 200, report);
}

static void report_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    reply_report(req, t->xactions, http_path_param(req, "job"));
}

static int parse_order(struct http_request *req, const char *data, size_t len,
                       enum xaction_order *order, struct job **job, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *action = NULL;
    json_t *job_doc = NULL;
    int code = json_parse(data, len, &doc, err);
    if (code == 0)
        code = json_need_str(doc, "", "action", &action, err);
    if (code == 0)
        code = xaction_order_from_name(action, order, err);
    if (code == 0)
        code = json_get_object(doc, "", "job", &job_doc, err);
    if (code == 0 && job_doc == NULL)
        code = error_set(err, E_JSON, "field 'job' is missing");
    if (code == 0)
        code = job_from_json(job_doc, job, err);
    if (code == 0 && strcmp((*job)->id, http_path_param(req, "job")) != 0) {
        code = error_set(err, E_INVALID, "the body is for job '%s'", (*job)->id);
        job_unref(*job);
    }
    return code;
}

static int check_begins(struct target *t, const struct job *job, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    return xaction_may_begin(&s->jobs, job, err);
}

/* The state may have changed since it was looked at, and been settled before the job was known
 * here: then this is the only one to see that it has begun for nothing. */
static int stop_late(struct target *t, const struct job *job, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct job *known = jobs_find(&s->jobs, job->id);
    if (known != NULL && !job_ended(known->state))
        return 0;
    return xactions_order(t->xactions, XACTION_STOP, job, err);
}

static int prepare(struct target *t, const struct job *job, struct error *err)
{
    int code = check_begins(t, job, err);
    if (code == 0)
        code = xactions_order(t->xactions, XACTION_PREPARE, job, err);
    return code != 0 ? code : stop_late(t, job, err);
}

static void carry_out(const struct order_call *call)
{
    struct target *t = http_user(call->req);
    struct error err = ERROR_INIT;
    int code = call->order == XACTION_PREPARE
                   ? prepare(t, call->job, &err)
                   : xactions_order(t->xactions, call->order, call->job, &err);
    /* An order that comes too late or too early is answered by how things stand. */
    if (code != 0 && code != E_JOB_STATE)
        http_reply_error(call->req, &err);
    else
        reply_report(call->req, t->xactions, http_path_param(call->req, "job"));
}

static void refreshed(void *arg)
{
    struct order_call *call = arg;
    assert(call->magic == ORDER_MAGIC);
    carry_out(call);
}

static void drop_job(void *arg)
{
    job_unref(arg);
}

static void order_body(struct http_request *req, const char *data, size_t len)
{
    struct target *t = http_user(req);
    struct order_call *call = arena_alloc(http_arena(req), sizeof *call);
    *call = (struct order_call){.magic = ORDER_MAGIC, .req = req};
    struct error err = ERROR_INIT;
    bool ahead = false;
    int code = parse_order(req, data, len, &call->order, &call->job, &err);
    if (code == 0) {
        http_on_end(req, drop_job, call->job);
        code = sender_is_ahead(req, &ahead, &err);
    }
    if (code != 0)
        http_reply_error(req, &err);
    else if (ahead)
        member_refresh(t->member, http_query(req, "dfcv"), refreshed, call);
    else
        carry_out(call);
}

static void order_begin(struct http_request *req)
{
    http_collect_body(req, ORDER_BODY_MAX, order_body);
}

const struct http_route xaction_routes[] = {
    {.name = "xaction_report",
     .method = HTTP_GET,
     .pattern = "/v1/xactions/{job}",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .begin = report_begin,
     .summary = "A target's report on a job.",
     .body = "",
     .reply = "`{\"state\", \"error\", \"status\"}`; state `none` for a job that it does not know",
     .errors = ""},
    {.name = "xaction_order",
     .method = HTTP_POST,
     .pattern = "/v1/xactions/{job}",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .fenced = true,
     .begin = order_begin,
     .summary = "An order of the primary: prepare, run, commit or stop. Idempotent.",
     .query = HTTP_PARAMETERS({"dfcv", "the sender's state version"}),
     .body = "`{\"action\": \"prepare\\|run\\|commit\\|stop\", \"job\": {…}}`",
     .reply = "the report, as GET gives it",
     .errors = "unsupported not_ready stale_map (of a term that is over)"},
    {.name = NULL},
};
