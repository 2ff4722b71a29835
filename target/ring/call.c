#include "target/ring/call.h"

#include <string.h>

#include "common/clock.h"
#include "common/parse.h"
#include "target/node/admit.h"
#include "target/node/target.h"
#include "target/ring/rings.h"

static void call_end(void *arg)
{
    struct ring_call *c = arg;
    if (c->ring != NULL)
        rings_unref(c->ring);
    if (c->state != NULL)
        state_unref(c->state);
}

struct ring_call *ring_call_new(struct http_request *req, void (*serve)(struct ring_call *c))
{
    struct ring_call *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct ring_call){.req = req, .serve = serve};
    http_on_end(req, call_end, c);
    return c;
}

void ring_call_fail(const struct ring_call *c, struct error *err)
{
    error_wrap(err, "ring '%s'", http_path_param(c->req, "bucket"));
    http_reply_error(c->req, err);
}

static int find_ring(struct ring_call *c, struct error *err)
{
    struct target *t = http_user(c->req);
    c->state = state_current(t->state);
    int code = admit_find_bucket(c->state, http_path_param(c->req, "bucket"),
                                 http_query(c->req, "dfcb"), &c->bucket, err);
    return code != 0 ? code : rings_get(t->rings, c->state, c->bucket, &c->ring, err);
}

void ring_call_known(struct http_request *req, void *arg)
{
    (void)req;
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    if (find_ring(c, &err) != 0)
        ring_call_fail(c, &err);
    else
        c->serve(c);
}

int ring_call_number(const struct http_request *req, const char *name, uint64_t *value,
                     struct error *err)
{
    const char *text = http_query(req, name);
    if (text == NULL || parse_u64(text, value, err) == 0)
        return 0;
    return error_recode(err, E_INVALID, "parameter '%s'", name);
}

/* `wait`: until when the call may wait. */
int ring_call_read_wait(struct ring_call *c, struct error *err)
{
    const struct target *t = http_user(c->req);
    const uint64_t max_ms = param_live(t->params.ring_wait_max);
    const char *wait = http_query(c->req, "wait");
    uint64_t wait_ms = 0;
    if (wait == NULL)
        return 0;
    if (parse_duration_ms(wait, &wait_ms, err) != 0)
        return error_recode(err, E_INVALID, "parameter 'wait'");
    if (wait_ms > max_ms)
        return error_set(err, E_INVALID,
                         "parameter 'wait' is at most %llu ms (ring_wait_max): ask again after it",
                         (unsigned long long)max_ms);
    c->wait.until_ms = clock_ms() + wait_ms;
    atomic_store(&c->waits, true);
    return 0;
}

void ring_call_prepare_wait(struct ring_call *c, bool (*is_due)(const struct ring_wait *wait),
                            void (*reply)(void *arg))
{
    c->wait.ring = c->ring;
    c->wait.is_due = is_due;
    c->wait.reply = reply;
    c->wait.arg = c;
}

bool ring_call_is_waiting(void *arg)
{
    const struct ring_call *c = arg;
    return atomic_load(&c->waits);
}
