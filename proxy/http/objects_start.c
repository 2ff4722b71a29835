#include "proxy/http/objects_start.h"

#include "common/clock.h"
#include "proxy/http/job_rights.h"
#include "proxy/jobs/objects_job.h"
#include "proxy/primary/job_start.h"
#include "proxy/primary/proxy.h"

int objects_start(struct http_request *req, const char *kind, json_t *value,
                  void (*reply)(struct http_request *req, const char *id), struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const char *bucket = http_path_param(req, "bucket");
    struct job *job = NULL;
    int code = job_rights_objects(req, kind, bucket, value, err);
    if (code == 0)
        code = objects_job_make(s, kind, bucket, value, clock_wall_ms(), &job, err);
    if (code == 0)
        job_start_as(req, job, reply);
    return code;
}

bool objects_start_has(const char *kind)
{
    const struct job_kind *k = job_kind_find(kind);
    return k != NULL && k->objects != NULL;
}
