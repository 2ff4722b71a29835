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
#include "target/ring/call.h"
#include "target/ring/keep.h"
#include "target/ring/keeper_calls.h"
#include "target/ring/ring.h"
#include "target/ring/rings.h"
#include "target/ring/waits.h"

#define SAMPLES "samples"
#define STATUS "status"

/* --- push ------------------------------------------------------------------------------------- */

/* Samples are not moved: what came to a target that leaves would go with it.  A client may know an
 * older map, and a push may have waited. */
static int check_stays(const struct target *t, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *self = smap_node(&s->smap, t->id);
    if (self != NULL && node_owns(self))
        return 0;
    return error_set(err, E_STALE_MAP, "target '%s' is leaving: push to another one", t->id);
}

static int push(struct ring_call *c, struct push_done *done, struct error *err)
{
    struct lane_push p = {.frames = c->frames,
                          .len = c->len,
                          .producer = c->producer,
                          .sequence = c->sequence,
                          .sync = c->bucket->props.durability == DURABILITY_SYNC,
                          .drops = c->drops};
    int code = frame_check_push(c->frames, c->len, &p.count, err);
    if (code == 0)
        code = check_stays(http_user(c->req), err);
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
        else
            rings_wake(c->ring); /* the room that it had taken may be what another one waits for */
        atomic_store(&c->waits, false);
        ring_call_fail(c, &err);
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
    if (!c->has_policy)
        c->drops = c->bucket->props.ring_drops;
    if (c->drops && c->wait.until_ms == 0)
        c->wait.until_ms = clock_ms() + t->params.call_timeout;
    c->wait.value = c->len;
    ring_call_prepare_wait(c, has_room, push_in_thread);
    if (rings_run(t->rings, push_in_thread, c, &err) != 0)
        ring_call_fail(c, &err);
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
    c->has_policy = policy != NULL;
    c->drops = policy != NULL && strcmp(policy, "drop") == 0;
    if (policy != NULL && !c->drops && strcmp(policy, "block") != 0)
        return error_set(err, E_INVALID, "parameter 'policy' is block or drop, not '%.40s'",
                         policy);
    int code = ring_call_number(c->req, "sequence", &c->sequence, err);
    return code != 0 ? code : ring_call_read_wait(c, err);
}

static void push_body(struct http_request *req, const char *data, size_t len)
{
    struct ring_call *c = ring_call_new(req, push_serve);
    struct error err;
    c->frames = (char *)(uintptr_t)data; /* the request's own memory: its heads are stamped there */
    c->len = len;
    if (read_push(c, &err) != 0) {
        ring_call_fail(c, &err);
        return;
    }
    if (atomic_load(&c->waits))
        http_be_patient(req, ring_call_is_waiting, c);
    upload_begin_as_known(req, ring_call_known, c);
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
        ring_call_fail(&call, &err);
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
                            : ring_call_number(c->req, "from", from, err);
    if (code == 0)
        code = ring_call_number(c->req, "count", &count, err);
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
        metric_add(metric_get(M_ring_lost_reads_total, NULL), 1);
        snprintf(text, sizeof text, "%llu", (unsigned long long)count);
        http_reply_header(c->req, "Dfc-Ring-Lost", text);
    }
    ring_call_fail(c, err);
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
        ring_call_fail(c, &err);
}

static void get_begin(struct http_request *req)
{
    const char *what = http_path_param(req, "object");
    const bool reads = strcmp(what, SAMPLES) == 0;
    struct ring_call *c = ring_call_new(req, reads ? read_serve : ring_status_serve);
    struct error err;
    int code = 0;
    if (!reads && strcmp(what, STATUS) != 0)
        code = error_set(&err, E_NOT_FOUND, "a ring has …/" SAMPLES " and …/" STATUS);
    else if (!reads)
        code = ring_status_read(c, &err);
    if (code != 0)
        ring_call_fail(c, &err);
    else
        upload_begin_as_known(req, ring_call_known, c);
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
                                    "that are in no generation (default: the ring's)"},
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
         "`{\"ring\", \"keeper\", \"cap\", \"keep\", \"swap\", \"policy\", "
         "\"fill\", \"lanes\", \"head\"}`",
     .errors = RING_ERRORS " generation_gone mountpath_disabled overloaded"},
    {.name = "ring_swap",
     .method = HTTP_PUT,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .changes = true,
     .signs = RING_SIGNS("PUT"),
     .begin = ring_wish_begin,
     .summary = "`/generation`: the samples that are in no generation become one, at most cap; "
                "`/pause`: full ones wait, until `/resume`; `/groups`: a group of readers joins, "
                "stays, or acknowledges.",
     .query = HTTP_PARAMETERS({"group", "of `/groups`: name of a group of readers"},
                              {"done", "the last generation that the group has consumed"},
                              {"lease", "how long the group may be silent, as 30s"}, FROM_PROXY),
     .body = "",
     .reply = "200 `{\"generation\": number}`, of `/groups` with `\"joined\"`",
     .errors = RING_ERRORS " no_generation"},
    {.name = "ring_clear",
     .method = HTTP_DELETE,
     .pattern = RING_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .changes = true,
     .signs = RING_SIGNS("DELETE"),
     .begin = ring_wish_begin,
     .summary = "`/samples`: drops all generations, and all samples that the keeper knows.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "",
     .reply = "200 `{\"generation\": number}`: the last one that there was",
     .errors = RING_ERRORS},
    {.name = "ring_leave",
     .method = HTTP_DELETE,
     .pattern = "/v1/rings/{bucket}/groups",
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE, /* as to join */
     .changes = true,
     .signs = RING_SIGNS("DELETE"),
     .object = "groups",
     .begin = ring_leave_begin,
     .summary = "A group of readers leaves.",
     .query = HTTP_PARAMETERS({"group", "name of the group"}, FROM_PROXY),
     .body = "",
     .reply = "200 `{\"generation\": number, \"joined\": false}`",
     .errors = RING_ERRORS},
    {.name = "ring_counts",
     .method = HTTP_POST,
     .pattern = "/v1/ring-counts/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = ring_counts_begin,
     .summary = "Tells the keeper of a ring what the lanes of a target have.",
     .body = "`{\"node\", \"lanes\": [{\"lane\", \"first\", \"count\", \"closed\", \"drained\", "
             "\"drop_to\", \"holes\"}]}`",
     .reply =
         "200 `{\"lanes\": [{\"release\", \"sealed\", \"taken\", \"forget\"}]}`, in the same order",
     .errors = "invalid_argument bucket_not_found not_a_ring not_ready"},
    {.name = NULL},
};
