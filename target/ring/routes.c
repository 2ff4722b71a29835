#include "target/ring/routes.h"

#include <stdatomic.h>
#include <string.h>

#include <xxhash.h>

#include "access/redirect_proof.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/parse.h"
#include "io/reader.h"
#include "ring/frame.h"
#include "target/http/upload_routes.h"
#include "target/node/admit.h"
#include "target/node/target.h"
#include "target/ring/keep.h"
#include "target/ring/ring.h"
#include "target/ring/rings.h"
#include "target/ring/waits.h"

#define SAMPLES "samples"
#define STATUS "status"

/* A call on its way; of the request's arena. */
struct ring_call {
    struct http_request *req;
    const struct cluster_state *state;
    const struct bucket *bucket; /* the state's */
    struct ring *ring;
    void (*serve)(struct ring_call *c);
    char *frames;
    size_t len;
    uint64_t producer, sequence, from;
    enum ring_wish wish;
    bool drops;            /* a push with policy=drop */
    struct ring_wait wait; /* a status with `after`, a push with `wait` or policy=drop */
    atomic_bool waits;     /* it has no reply yet */
};

static void call_end(void *arg)
{
    struct ring_call *c = arg;
    if (c->ring != NULL)
        rings_unref(c->ring);
    if (c->state != NULL)
        state_unref(c->state);
}

static struct ring_call *call_new(struct http_request *req, void (*serve)(struct ring_call *c))
{
    struct ring_call *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct ring_call){.req = req, .serve = serve};
    http_on_end(req, call_end, c);
    return c;
}

static void fail(const struct ring_call *c, struct error *err)
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

static void known(struct http_request *req, void *arg)
{
    (void)req;
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    if (find_ring(c, &err) != 0)
        fail(c, &err);
    else
        c->serve(c);
}

static int number(const struct http_request *req, const char *name, uint64_t *value,
                  struct error *err)
{
    const char *text = http_query(req, name);
    if (text == NULL || parse_u64(text, value, err) == 0)
        return 0;
    return error_recode(err, E_INVALID, "parameter '%s'", name);
}

/* `wait`: until when the call may wait. */
static int read_wait(struct ring_call *c, struct error *err)
{
    const struct target *t = http_user(c->req);
    const uint64_t max_ms = t->params.ring_wait_max;
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

static void prepare_wait(struct ring_call *c, bool (*is_due)(const struct ring_wait *wait),
                         void (*reply)(void *arg))
{
    c->wait.ring = c->ring;
    c->wait.is_due = is_due;
    c->wait.reply = reply;
    c->wait.arg = c;
}

static bool is_waiting(void *arg)
{
    const struct ring_call *c = arg;
    return atomic_load(&c->waits);
}

/* --- push ------------------------------------------------------------------------------------- */

static int push(struct ring_call *c, struct push_done *done, struct error *err)
{
    struct lane_push p = {.frames = c->frames,
                          .len = c->len,
                          .producer = c->producer,
                          .sequence = c->sequence,
                          .sync = c->bucket->props.durability == DURABILITY_SYNC,
                          .drops = c->drops};
    int code = frame_check_push(c->frames, c->len, &p.count, err);
    return code != 0 ? code : ring_push(c->ring, c->state, c->bucket, &p, done, err);
}

/* A push that finds no room waits for it, if it may; then it is tried again. */
static bool push_waits(struct ring_call *c, struct error *err)
{
    const struct target *t = http_user(c->req);
    return err->code == E_RING_FULL && clock_ms() < c->wait.until_ms &&
           rings_wait(t->rings, &c->wait, err) == 0;
}

static void push_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    struct push_done done;
    log_set_request(http_request_id(c->req));
    if (push(c, &done, &err) == 0) {
        metric_add(metric_get(M_ring_pushed_samples_total, NULL), done.count);
        metric_add(metric_get(M_ring_pushed_bytes_total, NULL), c->len);
        rings_wake(c->ring);
        _cleanup_json_ json_t *doc =
            json_pack("{s:s, s:I, s:I}", "lane", done.lane, "first", (json_int_t)done.first,
                      "count", (json_int_t)done.count);
        atomic_store(&c->waits, false);
        http_reply_json(c->req, 201, doc);
    } else if (!push_waits(c, &err)) {
        if (err.code == E_RING_FULL)
            metric_add(metric_get(M_ring_refused_total, NULL), 1);
        atomic_store(&c->waits, false);
        fail(c, &err);
    }
    log_set_request(NULL);
}

static bool has_room(const struct ring_wait *wait)
{
    return ring_has_room(wait->ring, wait->value);
}

static void push_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    if (c->drops && c->wait.until_ms == 0)
        c->wait.until_ms = clock_ms() + t->params.call_timeout;
    c->wait.value = c->len;
    prepare_wait(c, has_room, push_in_thread);
    if (rings_run(t->rings, push_in_thread, c, &err) != 0)
        fail(c, &err);
}

static int read_push(struct ring_call *c, struct error *err)
{
    const char *producer = http_query(c->req, "producer");
    if (strcmp(http_path_param(c->req, "object"), SAMPLES) != 0)
        return error_set(err, E_NOT_FOUND, "samples are pushed to …/" SAMPLES);
    if (producer != NULL) {
        c->producer = XXH3_64bits(producer, strlen(producer));
        c->producer += c->producer == 0; /* 0 is none */
    }
    if ((producer == NULL) != (http_query(c->req, "sequence") == NULL))
        return error_set(err, E_INVALID, "parameters 'producer' and 'sequence' go together");
    const char *policy = http_query(c->req, "policy");
    c->drops = policy != NULL && strcmp(policy, "drop") == 0;
    if (policy != NULL && !c->drops && strcmp(policy, "block") != 0)
        return error_set(err, E_INVALID, "parameter 'policy' is block or drop, not '%.40s'",
                         policy);
    int code = number(c->req, "sequence", &c->sequence, err);
    return code != 0 ? code : read_wait(c, err);
}

static void push_body(struct http_request *req, const char *data, size_t len)
{
    struct ring_call *c = call_new(req, push_serve);
    struct error err;
    c->frames = (char *)(uintptr_t)data; /* the request's own memory: its heads are stamped there */
    c->len = len;
    if (read_push(c, &err) != 0) {
        fail(c, &err);
        return;
    }
    if (atomic_load(&c->waits))
        http_be_patient(req, is_waiting, c);
    upload_begin_as_known(req, known, c);
}

struct memory {
    struct rings *rings;
    uint64_t bytes;
};

static void memory_end(void *arg)
{
    const struct memory *m = arg;
    rings_give_memory(m->rings, m->bytes);
}

static int take_memory(struct http_request *req, uint64_t bytes, struct error *err)
{
    struct target *t = http_user(req);
    struct memory *m = arena_alloc(http_arena(req), sizeof *m);
    *m = (struct memory){.rings = t->rings, .bytes = bytes};
    if (!rings_take_memory(t->rings, bytes))
        return error_set(err, E_OVERLOAD,
                         "target '%s' receives as many pushes as ring_memory allows; try again",
                         t->id);
    http_on_end(req, memory_end, m);
    return 0;
}

static void push_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    struct ring_call call = {.req = req};
    const int64_t length = http_content_length(req);
    const uint64_t max = t->params.ring_push_max;
    struct error err = ERROR_INIT;
    int code = read_push(&call, &err);
    if (code == 0 && length > 0 && (uint64_t)length > max)
        code = error_set(&err, E_TOO_LARGE, "a push has at most %llu bytes (ring_push_max)",
                         (unsigned long long)max);
    if (code == 0)
        code = take_memory(req, length >= 0 ? (uint64_t)length : max, &err);
    if (code != 0)
        fail(&call, &err);
    else
        http_collect_body(req, max, push_body);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int find_samples(struct ring_call *c, uint64_t *from, struct lane_range *range,
                        struct reader **reader, struct error *err)
{
    uint64_t count = 1;
    struct lane *lane;
    const char *name = http_query(c->req, "lane");
    int code = name == NULL ? error_set(err, E_INVALID,
                                        "parameter 'lane' is missing: the head "
                                        "of the ring has the lanes")
                            : number(c->req, "from", from, err);
    if (code == 0)
        code = number(c->req, "count", &count, err);
    if (code == 0 && count == 0)
        code = error_set(err, E_INVALID, "parameter 'count' is at least 1");
    if (code == 0)
        code = ring_find(c->ring, name, *from, count, range, &lane, err);
    if (code != 0)
        return code;
    *reader = reader_ref(lane_mountpath(lane)->reader);
    lane_unref(lane);
    return 0;
}

static void fail_read(struct ring_call *c, uint64_t count, struct error *err)
{
    char text[24];
    if (err->code == E_GENERATION_GONE && count == 0)
        metric_add(metric_get(M_ring_gone_total, NULL), 1);
    if (err->code == E_GENERATION_GONE && count > 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)count);
        http_reply_header(c->req, "Dfc-Ring-Lost", text);
    }
    fail(c, err);
}

/* The sample is not where it was: was the reader too slow? */
static void why_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    uint64_t count = 0;
    log_set_request(http_request_id(c->req));
    (void)ring_why_gone(c->ring, http_query(c->req, "lane"), c->from, &count, &err);
    fail_read(c, count, &err);
    log_set_request(NULL);
}

static void read_in_thread(void *arg)
{
    struct ring_call *c = arg;
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    struct lane_range range = {.count = 0};
    struct reader *reader;
    char count[24];
    log_set_request(http_request_id(c->req));
    int code = find_samples(c, &c->from, &range, &reader, &err);
    if (code == E_GENERATION_GONE && range.count == 0) {
        if (rings_run_long(t->rings, why_in_thread, c, &err) != 0)
            fail_read(c, 0, &err);
    } else if (code != 0) {
        fail_read(c, range.count, &err);
    } else {
        metric_add(metric_get(M_ring_read_samples_total, NULL), range.count);
        snprintf(count, sizeof count, "%llu", (unsigned long long)range.count);
        http_reply_header(c->req, "Dfc-Ring-Count", count);
        http_reply_constant(c->req, "Content-Type", "application/octet-stream");
        http_reply_file(c->req, 200, range.fd, range.offset, range.length, reader);
    }
    log_set_request(NULL);
}

static void read_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    if (rings_run(t->rings, read_in_thread, c, &err) != 0)
        fail(c, &err);
}

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
    fail(c, &err);
}

static bool is_beyond(const struct ring_wait *wait)
{
    return ring_is_beyond(wait->ring, wait->value);
}

static void status_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    prepare_wait(c, is_beyond, status_reply);
    if (!atomic_load(&c->waits) || is_beyond(&c->wait))
        status_reply(c);
    else if (rings_wait(t->rings, &c->wait, &err) != 0)
        fail(c, &err);
}

static int read_poll(struct ring_call *c, struct error *err)
{
    if ((http_query(c->req, "after") == NULL) != (http_query(c->req, "wait") == NULL))
        return error_set(err, E_INVALID,
                         "parameters 'after' and 'wait' go together, as in after=42&wait=30s");
    int code = number(c->req, "after", &c->wait.value, err);
    if (code == 0)
        code = read_wait(c, err);
    if (code == 0 && atomic_load(&c->waits))
        http_be_patient(c->req, is_waiting, c);
    return code;
}

static void get_begin(struct http_request *req)
{
    const char *what = http_path_param(req, "object");
    const bool reads = strcmp(what, SAMPLES) == 0;
    struct ring_call *c = call_new(req, reads ? read_serve : status_serve);
    struct error err;
    int code = 0;
    if (!reads && strcmp(what, STATUS) != 0)
        code = error_set(&err, E_NOT_FOUND, "a ring has …/" SAMPLES " and …/" STATUS);
    else if (!reads)
        code = read_poll(c, &err);
    if (code != 0)
        fail(c, &err);
    else
        upload_begin_as_known(req, known, c);
}

static void wish_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    uint64_t generation;
    log_set_request(http_request_id(c->req));
    int code = ring_wish(c->ring, c->wish, &generation, &err);
    rings_wake(c->ring); /* calls may wait for this generation */
    if (code != 0) {
        fail(c, &err);
    } else {
        _cleanup_json_ json_t *doc = json_pack("{s:I}", "generation", (json_int_t)generation);
        http_reply_json(c->req, 200, doc);
    }
    log_set_request(NULL);
}

static void wish_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
    if (rings_run_long(t->rings, wish_in_thread, c, &err) != 0)
        fail(c, &err);
}

static const struct wish_path {
    enum http_method method;
    const char *path;
    enum ring_wish wish;
} wish_paths[] = {
    {HTTP_PUT, "generation", RING_SWAP},
    {HTTP_PUT, "pause", RING_PAUSE},
    {HTTP_PUT, "resume", RING_RESUME},
    {HTTP_DELETE, SAMPLES, RING_CLEAR},
};

static void wish_begin(struct http_request *req)
{
    struct ring_call *c = call_new(req, wish_serve);
    struct error err;
    for (size_t i = 0; i < sizeof wish_paths / sizeof *wish_paths; i++) {
        const struct wish_path *w = &wish_paths[i];
        if (w->method != http_method(req) || strcmp(http_path_param(req, "object"), w->path) != 0)
            continue;
        c->wish = w->wish;
        upload_begin_as_known(req, known, c);
        return;
    }
    error_set(&err, E_NOT_FOUND, "a ring has …/generation, …/pause, …/resume and …/" SAMPLES);
    fail(c, &err);
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

static void counts_begin(struct http_request *req)
{
    http_collect_body(req, RING_HEAD_BYTES_MAX, counts_body);
}

/* --- the table -------------------------------------------------------------------------------- */

#define RING_PATTERN "/v1/rings/{bucket}/{object}"
#define FROM_PROXY                                                               \
    {"dfcb", "the bucket's id, from a proxy's redirect"},                        \
        {"dfcv", "the state version, from there"},                               \
    {                                                                            \
        "dfca", "with access control: the proxy's decision about this very call" \
    }
#define RING_ERRORS "invalid_argument bucket_not_found not_a_ring not_found stale_map not_ready"

const struct http_route ring_routes[] = {
    {.name = "ring_push",
     .method = HTTP_POST,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = RING_SIGNS("POST"),
     .begin = push_begin,
     .summary = "`/samples`: appends samples to the ring.",
     .query =
         HTTP_PARAMETERS({"producer", "name of the maker"},
                         {"sequence", "number of its push: a repeated one gets the same answer"},
                         {"wait", "so long at most for room, as 30s; then 429"},
                         {"policy", "of a push into a full ring: block, or drop the oldest samples "
                                    "that are in no generation"},
                         FROM_PROXY),
     .body = "frames, one behind the other",
     .reply = "201 `{\"lane\", \"first\", \"count\"}` when they are stored",
     .errors = RING_ERRORS " bad_sample checksum_mismatch ring_full too_large no_space overloaded"},
    {.name = "ring_get",
     .method = HTTP_GET,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .signs = RING_SIGNS("GET"),
     .begin = get_begin,
     .summary = "`/samples`: samples of a lane of this target; `/status`: the ring, as its keeper "
                "knows it.",
     .query = HTTP_PARAMETERS({"lane", "the lane"}, {"from", "ordinal of the first sample"},
                              {"count", "at most so many (default 1)"},
                              {"after", "of a status: wait for a generation beyond this one"},
                              {"wait", "so long at most, as 30s; the reply then has no such one"},
                              FROM_PROXY),
     .body = "",
     .reply =
         "200 frames, of as many samples as header `Dfc-Ring-Count` says, or 410, whose header "
         "`Dfc-Ring-Lost` has the number of samples from `from` on that are lost; or "
         "`{\"ring\", \"keeper\", \"cap\", \"keep\", \"fill\", \"lanes\", \"head\"}`",
     .errors = RING_ERRORS " generation_gone mountpath_disabled overloaded"},
    {.name = "ring_swap",
     .method = HTTP_PUT,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .changes = true,
     .signs = RING_SIGNS("PUT"),
     .begin = wish_begin,
     .summary = "`/generation`: the samples that are in no generation become one, at most cap; "
                "`/pause`: full ones wait, until `/resume`.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "",
     .reply = "200 `{\"generation\": number}`",
     .errors = RING_ERRORS " no_generation"},
    {.name = "ring_clear",
     .method = HTTP_DELETE,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .changes = true,
     .signs = RING_SIGNS("DELETE"),
     .begin = wish_begin,
     .summary = "`/samples`: drops all generations, and all samples that the keeper knows.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "",
     .reply = "200 `{\"generation\": number}`: the last one that there was",
     .errors = RING_ERRORS},
    {.name = "ring_counts",
     .method = HTTP_POST,
     .pattern = "/v1/ring-counts/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = counts_begin,
     .summary = "Tells the keeper of a ring what the lanes of a target have.",
     .body = "`{\"node\", \"lanes\": [{\"lane\", \"first\", \"count\", \"closed\", \"drained\", "
             "\"drop_to\", \"holes\"}]}`",
     .reply =
         "200 `{\"lanes\": [{\"release\", \"sealed\", \"taken\", \"forget\"}]}`, in the same order",
     .errors = "invalid_argument bucket_not_found not_a_ring not_ready"},
    {.name = NULL},
};
