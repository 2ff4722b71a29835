#include "proxy/primary/job_start.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/proxy.h"

struct starting {
    struct http_request *req;
    struct job *job;
    void (*reply)(struct http_request *req, const char *id);
};

static void start_done(void *arg, const struct error *err)
{
    struct starting *s = arg;
    struct proxy *p = http_user(s->req);
    if (err != NULL) {
        http_reply_error(s->req, err);
    } else {
        s->reply(s->req, s->job->id);
        job_glue_wake(p);
    }
    job_unref(s->job);
    free(s);
}

void job_start_reply(struct http_request *req, const char *id)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s}", "id", id);
    http_reply_json(req, 202, doc);
}

void job_start(struct http_request *req, struct job *job)
{
    job_start_as(req, job, job_start_reply);
}

void job_start_as(struct http_request *req, struct job *job,
                  void (*reply)(struct http_request *req, const char *id))
{
    struct starting *s = xcalloc(1, sizeof *s);
    *s = (struct starting){.req = req, .job = job, .reply = reply};
    const struct command cmd = {.kind = CMD_JOB_CREATE, .name = job->id, .job = job};
    proxy_commit(http_user(req), &cmd, start_done, s);
}
