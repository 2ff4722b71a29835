#include "target/jobs/job_notify.h"

#include "common/log.h"
#include "common/mem.h"
#include "target/node/target.h"

struct news {
    struct target *target;
    char *job_id;
    char *url;
};

static void news_free(struct news *n)
{
    free(n->job_id);
    free(n->url);
    free(n);
}

static void sent(void *arg, struct http_result *r)
{
    struct news *n = arg;
    struct error err;
    if (http_result_error(r, n->url, &err) != 0)
        log_debug("primary not told of a job", lstr("job", n->job_id), lerr(&err));
    news_free(n);
}

/* In the control loop's thread. */
static void send_posted(void *arg)
{
    struct news *n = arg;
    struct target *t = n->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *primary = s->primary != NULL ? smap_node(&s->smap, s->primary) : NULL;
    if (primary == NULL) {
        news_free(n);
        return;
    }
    n->url = xprintf("%s/v1/jobs/%s/moved?node=%s", primary->control_url, n->job_id, t->id);
    const struct http_call call = {.method = HTTP_POST,
                                   .url = n->url,
                                   .node = primary->id,
                                   .total_timeout_ms = t->params.call_timeout};
    http_call_start(t->control_client, &call, sent, n);
}

void job_notify(void *target, const char *job_id)
{
    struct target *t = target;
    struct news *n = xcalloc(1, sizeof *n);
    *n = (struct news){.target = t, .job_id = xstrdup(job_id)};
    loop_post(t->control, send_posted, n);
}
