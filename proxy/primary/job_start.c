#include "proxy/primary/job_start.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/job_glue.h"
#include "proxy/primary/proxy.h"

struct starting {
    struct http_request *req;
    struct job *job;
};

static void start_done(void *arg, const struct error *err)
{
    struct starting *s = arg;
    struct proxy *p = http_user(s->req);
    if (err != NULL) {
        http_reply_error(s->req, err);
    } else {
        _cleanup_json_ json_t *reply = json_pack("{s:s}", "id", s->job->id);
        http_reply_json(s->req, 202, reply);
        job_glue_wake(p);
    }
    job_unref(s->job);
    free(s);
}

void job_start(struct http_request *req, struct job *job)
{
    struct starting *s = xcalloc(1, sizeof *s);
    *s = (struct starting){.req = req, .job = job};
    const struct command cmd = {.kind = CMD_JOB_CREATE, .name = job->id, .job = job};
    proxy_commit(http_user(req), &cmd, start_done, s);
}
