#include "target/ring/keeper_calls.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/utf8.h"
#include "target/http/upload_routes.h"
#include "target/node/admit.h"
#include "target/node/target.h"
#include "target/ring/call.h"
#include "target/ring/keep.h"
#include "target/ring/ring.h"
#include "target/ring/rings.h"
#include "target/ring/status.h"

enum { LEASE_LEAST_MS = 100 };

/* --- the keeper's calls ----------------------------------------------------------------------- */

static void status_reply(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    atomic_store(&c->waits, false);
    if (ring_status(c->ring, c->bucket, &doc, &err) == 0) {
        http_reply_json(c->req, 200, doc);
        return;
    }
    rings_wake(c->ring);
    ring_call_fail(c, &err);
}

static bool is_beyond(const struct ring_wait *wait)
{
    return ring_is_beyond(wait->ring, wait->value);
}

void ring_status_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    ring_call_prepare_wait(c, is_beyond, status_reply);
    if (!atomic_load(&c->waits) || is_beyond(&c->wait))
        status_reply(c);
    else if (rings_wait(t->rings, &c->wait, &err) != 0)
        ring_call_fail(c, &err);
}

int ring_status_read(struct ring_call *c, struct error *err)
{
    if ((http_query(c->req, "after") == NULL) != (http_query(c->req, "wait") == NULL))
        return error_set(err, E_INVALID,
                         "parameters 'after' and 'wait' go together, as in after=42&wait=30s");
    int code = ring_call_number(c->req, "after", &c->wait.value, err);
    if (code == 0)
        code = ring_call_read_wait(c, err);
    if (code == 0 && atomic_load(&c->waits))
        http_be_patient(c->req, ring_call_is_waiting, c);
    return code;
}

static void wish_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    uint64_t generation;
    bool joined = false;
    log_set_request(http_request_id(c->req));
    int code = c->wish == RING_GROUP ? ring_group(c->ring, &c->group, &generation, &joined, &err)
                                     : ring_wish(c->ring, c->wish, &generation, &err);
    rings_wake(c->ring); /* calls may wait for this generation */
    if (code != 0) {
        ring_call_fail(c, &err);
    } else {
        _cleanup_json_ json_t *doc = json_pack("{s:I}", "generation", (json_int_t)generation);
        if (c->wish == RING_GROUP)
            json_object_set_new(doc, "joined", json_boolean(joined));
        http_reply_json(c->req, 200, doc);
    }
    log_set_request(NULL);
}

/* group=NAME, and of a PUT done=GENERATION and lease=TIME. */
static int read_group(struct ring_call *c, struct error *err)
{
    const struct target *t = http_user(c->req);
    const char *name = http_query(c->req, "group"), *lease = http_query(c->req, "lease");
    const uint64_t longest_ms = param_live(t->params.ring_lease_max);
    struct ring_group_call *g = &c->group;
    if (name == NULL || *name == '\0' || strlen(name) >= sizeof g->name)
        return error_set(err, E_INVALID, "parameter 'group' is a name of 1 to %zu bytes",
                         sizeof g->name - 1);
    if (!utf8_valid(name, strlen(name))) /* it stands in the head, which is JSON */
        return error_set(err, E_INVALID, "parameter 'group' is not UTF-8: give another name");
    snprintf(g->name, sizeof g->name, "%s", name);
    g->leaves = http_method(c->req) == HTTP_DELETE;
    g->lease_ms = t->params.ring_lease < longest_ms ? t->params.ring_lease : longest_ms;
    int code = ring_call_number(c->req, "done", &g->done, err);
    if (code == 0 && lease != NULL && parse_duration_ms(lease, &g->lease_ms, err) != 0)
        code = error_recode(err, E_INVALID, "parameter 'lease'");
    if (code == 0 && (g->lease_ms < LEASE_LEAST_MS || g->lease_ms > longest_ms))
        code = error_set(err, E_INVALID, "parameter 'lease' is %d ms to %llu ms (ring_lease_max)",
                         LEASE_LEAST_MS, (unsigned long long)longest_ms);
    return code;
}

static void wish_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    if (rings_run_long(t->rings, wish_in_thread, c, &err) != 0)
        ring_call_fail(c, &err);
}

static void begin_wish(struct http_request *req, enum ring_wish wish)
{
    struct ring_call *c = ring_call_new(req, wish_serve);
    struct error err;
    c->wish = wish;
    if (wish == RING_GROUP && read_group(c, &err) != 0)
        ring_call_fail(c, &err);
    else
        upload_begin_as_known(req, ring_call_known, c);
}

static const struct wish_path {
    enum http_method method;
    const char *path;
    enum ring_wish wish;
} wish_paths[] = {
    {HTTP_PUT, "generation", RING_SWAP},  {HTTP_PUT, "pause", RING_PAUSE},
    {HTTP_PUT, "resume", RING_RESUME},    {HTTP_PUT, "groups", RING_GROUP},
    {HTTP_DELETE, "samples", RING_CLEAR},
};

void ring_wish_begin(struct http_request *req)
{
    struct error err;
    for (size_t i = 0; i < sizeof wish_paths / sizeof *wish_paths; i++) {
        const struct wish_path *w = &wish_paths[i];
        if (w->method == http_method(req) && strcmp(http_path_param(req, "object"), w->path) == 0) {
            begin_wish(req, w->wish);
            return;
        }
    }
    error_set(&err, E_NOT_FOUND,
              "a ring has …/generation, …/pause, …/resume, …/groups and …/samples");
    ring_call_fail(&(struct ring_call){.req = req}, &err);
}

void ring_leave_begin(struct http_request *req)
{
    begin_wish(req, RING_GROUP);
}

/* --- between targets -------------------------------------------------------------------------- */

static int take_counts(struct http_request *req, const char *data, size_t len, json_t **answer,
                       struct error *err)
{
    struct target *t = http_user(req);
    struct ring *r;
    uint64_t id;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    int code = parse_u64(http_path_param(req, "bucket_id"), &id, err);
    const struct bucket *b = code == 0 ? bmd_bucket_by_id(&s->bmd, id) : NULL;
    if (code == 0 && b == NULL)
        code = error_set(err, E_BUCKET_NOT_FOUND, "no bucket has this id");
    if (code == 0)
        code = json_parse(data, len, &doc, err);
    if (code == 0)
        code = rings_get(t->rings, s, b, &r, err);
    if (code != 0)
        return code;
    code = ring_take_counts(r, doc, answer, err);
    rings_wake(r);
    rings_unref(r);
    return code;
}

static void counts_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *answer = NULL;
    if (take_counts(req, data, len, &answer, &err) != 0)
        http_reply_error(req, &err);
    else
        http_reply_json(req, 200, answer);
}

void ring_counts_begin(struct http_request *req)
{
    http_collect_body(req, RING_HEAD_BYTES_MAX, counts_body);
}
