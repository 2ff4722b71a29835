#include "target/ring/routes.h"

#include <string.h>

#include <xxhash.h>

#include "access/redirect_proof.h"
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

#define SAMPLES "samples"
#define STATUS "status"
#define GENERATION "generation"

/* A call on its way; of the request's arena. */
struct ring_call {
    struct http_request *req;
    const struct cluster_state *state;
    const struct bucket *bucket; /* the state's */
    struct ring *ring;
    void (*serve)(struct ring_call *c);
    char *frames;
    size_t len;
    uint64_t producer, sequence;
    enum ring_wish wish;
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

/* --- push ------------------------------------------------------------------------------------- */

static int push(struct ring_call *c, struct push_done *done, struct error *err)
{
    struct lane_push p = {.frames = c->frames,
                          .len = c->len,
                          .producer = c->producer,
                          .sequence = c->sequence,
                          .sync = c->bucket->props.durability == DURABILITY_SYNC};
    int code = frame_check_push(c->frames, c->len, &p.count, err);
    return code != 0 ? code : ring_push(c->ring, c->state, c->bucket, &p, done, err);
}

static void push_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    struct push_done done;
    log_set_request(http_request_id(c->req));
    if (push(c, &done, &err) != 0) {
        if (err.code == E_RING_FULL)
            metric_add(metric_get(M_ring_refused_total, NULL), 1);
        fail(c, &err);
    } else {
        metric_add(metric_get(M_ring_pushed_samples_total, NULL), done.count);
        metric_add(metric_get(M_ring_pushed_bytes_total, NULL), c->len);
        rings_wake(c->ring);
        _cleanup_json_ json_t *doc =
            json_pack("{s:s, s:I, s:I}", "lane", done.lane, "first", (json_int_t)done.first,
                      "count", (json_int_t)done.count);
        http_reply_json(c->req, 201, doc);
    }
    log_set_request(NULL);
}

static void push_serve(struct ring_call *c)
{
    const struct target *t = http_user(c->req);
    struct error err = ERROR_INIT;
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
    return number(c->req, "sequence", &c->sequence, err);
}

static void push_body(struct http_request *req, const char *data, size_t len)
{
    struct ring_call *c = call_new(req, push_serve);
    struct error err;
    c->frames = (char *)(uintptr_t)data; /* the request's own memory: its heads are stamped there */
    c->len = len;
    if (read_push(c, &err) != 0)
        fail(c, &err);
    else
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

static int find_samples(struct ring_call *c, struct lane_range *range, struct reader **reader,
                        struct error *err)
{
    uint64_t from = 0, count = 1;
    struct lane *lane;
    const char *name = http_query(c->req, "lane");
    int code = name == NULL ? error_set(err, E_INVALID,
                                        "parameter 'lane' is missing: the head "
                                        "of the ring has the lanes")
                            : number(c->req, "from", &from, err);
    if (code == 0)
        code = number(c->req, "count", &count, err);
    if (code == 0 && count == 0)
        code = error_set(err, E_INVALID, "parameter 'count' is at least 1");
    if (code == 0)
        code = ring_find(c->ring, name, from, count, range, &lane, err);
    if (code != 0)
        return code;
    *reader = reader_ref(lane_mountpath(lane)->reader);
    lane_unref(lane);
    return 0;
}

static void read_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    struct lane_range range;
    struct reader *reader;
    char count[24];
    log_set_request(http_request_id(c->req));
    if (find_samples(c, &range, &reader, &err) != 0) {
        if (err.code == E_GENERATION_GONE)
            metric_add(metric_get(M_ring_gone_total, NULL), 1);
        fail(c, &err);
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

static void status_serve(struct ring_call *c)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    if (ring_status(c->ring, c->bucket, &doc, &err) == 0) {
        http_reply_json(c->req, 200, doc);
        return;
    }
    rings_wake(c->ring);
    fail(c, &err);
}

static void get_begin(struct http_request *req)
{
    const char *what = http_path_param(req, "object");
    const bool reads = strcmp(what, SAMPLES) == 0;
    struct ring_call *c = call_new(req, reads ? read_serve : status_serve);
    struct error err;
    if (!reads && strcmp(what, STATUS) != 0) {
        error_set(&err, E_NOT_FOUND, "a ring has …/" SAMPLES " and …/" STATUS);
        fail(c, &err);
        return;
    }
    upload_begin_as_known(req, known, c);
}

static void wish_in_thread(void *arg)
{
    struct ring_call *c = arg;
    struct error err = ERROR_INIT;
    uint64_t generation;
    log_set_request(http_request_id(c->req));
    if (ring_wish(c->ring, c->wish, &generation, &err) != 0) {
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

static void wish_begin(struct http_request *req, const char *path, enum ring_wish wish)
{
    struct ring_call *c = call_new(req, wish_serve);
    struct error err;
    c->wish = wish;
    if (strcmp(http_path_param(req, "object"), path) == 0) {
        upload_begin_as_known(req, known, c);
        return;
    }
    error_set(&err, E_NOT_FOUND, "this call is for …/%s", path);
    fail(c, &err);
}

static void swap_begin(struct http_request *req)
{
    wish_begin(req, GENERATION, RING_SWAP);
}

static void clear_begin(struct http_request *req)
{
    wish_begin(req, SAMPLES, RING_CLEAR);
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
     .query = HTTP_PARAMETERS(
         {"producer", "name of the maker"},
         {"sequence", "number of its push: a repeated one gets the same answer"}, FROM_PROXY),
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
                              {"count", "at most so many (default 1)"}, FROM_PROXY),
     .body = "",
     .reply = "200 frames, of as many samples as header `Dfc-Ring-Count` says; or "
              "`{\"ring\", \"keeper\", \"cap\", \"keep\", \"fill\", \"lanes\", \"head\"}`",
     .errors = RING_ERRORS " generation_gone mountpath_disabled"},
    {.name = "ring_swap",
     .method = HTTP_PUT,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .changes = true,
     .signs = RING_SIGNS("PUT"),
     .begin = swap_begin,
     .summary = "`/generation`: the samples that are in no generation become one, at most cap.",
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
     .begin = clear_begin,
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
     .body = "`{\"node\", \"lanes\": [{\"lane\", \"first\", \"count\", \"closed\", \"drained\"}]}`",
     .reply = "200 `{\"lanes\": [{\"release\", \"forget\"}]}`, in the same order",
     .errors = "invalid_argument bucket_not_found not_a_ring not_ready"},
    {.name = NULL},
};
