#include "target/slices/read.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "net/http/pipe.h"
#include "target/node/call.h"
#include "target/slices/ec.h"
#include "target/slices/source.h"
#include "target/node/read_range.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 512 << 10 };

struct serving {
    struct object_call *call; /* until it is replied to */
    struct object object;
    struct read_range range;
    void (*head)(const struct object_call *call, const struct attr *a,
                 const struct read_range *range);
    struct bpipe *pipe;
    bool replied;
    char *name;
    char *request_id; /* the request may end before its bytes are counted */
    struct ec_reading reading;
};

static void serving_free(struct serving *v)
{
    bpipe_unref(v->pipe);
    state_unref(v->reading.state);
    free(v->request_id);
    free(v->name);
    free(v);
}

static void reply(struct serving *v)
{
    v->replied = true;
    v->head(v->call, &v->object.attr, &v->range);
    http_reply_pipe(v->call->req, v->range.status, (int64_t)v->range.length, v->pipe);
}

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct serving *v = ctx;
    if (!v->replied)
        reply(v);
    return bpipe_write(v->pipe, data, len, err);
}

static void end(struct serving *v, struct error *err)
{
    if (!v->replied) {
        object_call_fail(v->call, "get", err);
        return;
    }
    if (err->code != 0 && err->code != E_CANCELLED)
        log_error("object cut off", lstr("name", v->name), lerr(err));
    bpipe_finish(v->pipe, err->code != 0 ? err : NULL);
}

/* In a reader's thread. */
static void serve(void *arg)
{
    struct serving *v = arg;
    struct error err = ERROR_INIT;
    struct ec_bad bad;
    log_set_request(v->request_id);
    (void)ec_source_range(&v->reading, v->range.offset, v->range.length, take, v, &bad, &err);
    end(v, &err); /* what it said is in err */
    ec_source_report(&v->reading, &bad);
    log_set_request(NULL);
    serving_free(v);
}

static struct serving *serving_new(struct object_call *call, const struct object *o,
                                   const struct read_range *range)
{
    struct serving *v = xcalloc(1, sizeof *v);
    v->call = call;
    v->range = *range;
    v->pipe = bpipe_new(PIPE_BYTES);
    v->name = xstrdup(call->name);
    v->request_id = xstrdup(http_request_id(call->req));
    object_clone(o, &v->object);
    v->reading = (struct ec_reading){.target = call->target,
                                     .state = state_current(call->target->state),
                                     .bucket_id = call->bucket->id,
                                     .name = v->name};
    return v;
}

void ec_read_reply(struct object_call *call, const struct object *o, const struct read_range *range,
                   void (*head)(const struct object_call *call, const struct attr *a,
                                const struct read_range *range))
{
    struct error err = ERROR_INIT;
    struct serving *v = serving_new(call, o, range);
    v->head = head;
    int code = ec_manifest_parse(o->attr.slices, &v->reading.manifest, &err);
    if (code == 0 && http_method(call->req) == HTTP_HEAD) {
        bpipe_finish(v->pipe, NULL);
        reply(v);
        serving_free(v);
        return;
    }
    if (code == 0)
        code = pool_submit(call->target->ec->readers, serve, v, &err);
    if (code == 0)
        return;
    object_call_fail(call, "get", &err);
    serving_free(v);
}
