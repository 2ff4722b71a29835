#include "target/ring/keep.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "net/client/client.h"
#include "ring/report.h"
#include "target/copies/object_copy.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"
#include "target/ring/ring.h"
#include "target/ring/status.h"

enum { SEALS_OF_STEP = 64 };

/* What a step knows of the cluster. */
struct where {
    const struct cluster_state *state;
    const struct bucket *bucket;
    const struct node *keeper;
    bool more;                           /* there may be another generation to seal */
    const struct ring_group_call *group; /* of the wish RING_GROUP */
    bool joins;                          /* ring_keeper_joins() of it */
};

static int find_keeper(const struct ring *r, struct where *w, struct error *err)
{
    w->bucket = bmd_bucket_by_id(&w->state->bmd, r->bucket_id);
    if (w->bucket == NULL || state_bucket_is_closed(w->state, w->bucket))
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket is being destroyed");
    return object_copy_owner(w->state, w->bucket, RING_HEAD_OBJECT, &w->keeper, err);
}

static bool is_keeper(const struct ring *r, const struct where *w)
{
    return strcmp(w->keeper->id, r->target->id) == 0;
}

/* --- the head --------------------------------------------------------------------------------- */

static int get_head(const struct ring *r, const struct where *w, struct http_result *result,
                    struct error *err)
{
    char separator = '?';
    _cleanup_buf_ struct buf path = BUF_INIT, url = BUF_INIT;
    location_put_object(&path, w->bucket->name, RING_HEAD_OBJECT);
    buf_printf(&url, "%s/v1/read%s", w->keeper->data_url, buf_str(&path) + strlen("/v1/objects"));
    location_put_version(&url, w->state, w->bucket->id, &separator);
    const struct http_call call = {.method = HTTP_GET,
                                   .url = buf_str(&url),
                                   .node = w->keeper->id,
                                   .reply_max = RING_HEAD_BYTES_MAX,
                                   .total_timeout_ms = r->target->params.call_timeout};
    return http_call_wait(r->target->data_client, &call, result, err);
}

static int load_head(struct ring *r, const struct where *w, struct error *err)
{
    struct http_result result = {.status = 0};
    _cleanup_ring_head_ struct ring_head head = {.generation = 0};
    int code = get_head(r, w, &result, err);
    const bool is_new = code == E_OBJECT_NOT_FOUND;
    if (code == 0)
        code = ring_head_parse(buf_str(&result.body), result.body.len, &head, err);
    if (code == 0 || is_new) {
        pthread_mutex_lock(&r->keep);
        ring_keeper_load(r->keeper, is_new ? NULL : &head);
        snprintf(r->etag, sizeof r->etag, "%s", is_new ? "" : result.etag);
        pthread_mutex_unlock(&r->keep);
    }
    http_result_done(&result);
    return is_new ? 0 : code;
}

static int take_etag(struct ring *r, const struct buf *reply, struct error *err)
{
    const char *etag = "";
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(reply->data, reply->len, &doc, err);
    if (code == 0)
        code = json_need_str(doc, "", "etag", &etag, err);
    if (code == 0)
        snprintf(r->etag, sizeof r->etag, "%s", etag);
    return code;
}

/* The swap.  r->etag is the new one's afterwards. */
static int put_head(struct ring *r, const struct where *w, const struct ring_head *next,
                    struct error *err)
{
    struct copier_reply reply = {.status = 0};
    struct header_lines h;
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_free_ char *url = location_of_copy(w->keeper, w->state, w->bucket, RING_HEAD_OBJECT);
    ring_head_print(next, &text);
    header_lines_begin(&h);
    header_lines_add(&h, OBJECT_COPY_HEADER ": " OBJECT_COPY_RING);
    header_lines_add(&h, "Content-Type: application/json");
    if (*r->etag != '\0')
        header_lines_printf(&h, "If-Match: %s", r->etag);
    else
        header_lines_add(&h, "If-None-Match: *");
    const struct http_call call = {.method = HTTP_PUT,
                                   .url = url,
                                   .node = w->keeper->id,
                                   .headers = h.lines,
                                   .body = text.data,
                                   .body_len = text.len,
                                   .total_timeout_ms = r->target->params.call_timeout,
                                   .once = true};
    int code = object_copier_call(r->target->copier, &call, &reply, err);
    if (code == 0)
        code = take_etag(r, &reply.body, err);
    if (code == 0 && fault_errno("ring.stored") != 0)
        code = error_set(err, E_NET, "the reply is lost");
    header_lines_end(&h);
    buf_done(&reply.body);
    return code;
}

/* The next head becomes that of the keeper, or is released. */
static int store_head(struct ring *r, const struct where *w, struct ring_head *next,
                      struct error *err)
{
    const uint64_t began_us = clock_us();
    int code = put_head(r, w, next, err);
    pthread_mutex_lock(&r->keep);
    const struct ring_head *old = ring_keeper_head(r->keeper);
    const uint64_t swaps = next->generation - old->generation;
    const uint64_t dropped = next->dropped_total - old->dropped_total;
    if (code == 0)
        ring_keeper_stored(r->keeper, next);
    else
        ring_keeper_unload(r->keeper); /* it may be stored */
    pthread_mutex_unlock(&r->keep);
    if (code == 0 && swaps > 0) {
        metric_add(metric_get(M_ring_swaps_total, NULL), swaps);
        metric_observe_us(metric_get(M_ring_swap_seconds, NULL), clock_us() - began_us);
    }
    if (code == 0)
        metric_add(metric_get(M_ring_dropped_samples_total, NULL), dropped);
    if (code != 0)
        ring_head_done(next);
    return code;
}

/* *done: a head was stored. */
static int seal(struct ring *r, const struct where *w, enum ring_wish wish, bool *done,
                struct error *err)
{
    const struct ring_rules rules = ring_rules_of(r, w->bucket);
    struct ring_head next;
    pthread_mutex_lock(&r->keep);
    *done = ring_keeper_plan(r->keeper, &rules, wish, clock_ms(), (uint64_t)clock_wall_ms(), &next);
    pthread_mutex_unlock(&r->keep);
    return *done ? store_head(r, w, &next, err) : 0;
}

static int serve_group(struct ring *r, struct where *w, struct error *err)
{
    struct ring_head next;
    pthread_mutex_lock(&r->keep);
    const uint64_t generation = ring_keeper_head(r->keeper)->generation;
    w->joins = ring_keeper_joins(r->keeper, w->group);
    const enum ring_group_reply reply = ring_keeper_group(r->keeper, w->group, clock_ms(), &next);
    pthread_mutex_unlock(&r->keep);
    switch (reply) {
    case RING_GROUP_KNOWN:
        return 0;
    case RING_GROUP_AHEAD:
        return error_set(err, E_INVALID,
                         "parameter 'done' is %llu, and the last generation is %llu",
                         (unsigned long long)w->group->done, (unsigned long long)generation);
    case RING_GROUP_MANY:
        return error_set(err, E_OVERLOAD, "a ring has at most %d groups", RING_GROUPS_MAX);
    case RING_GROUP_STORES:
        break;
    }
    return store_head(r, w, &next, err);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void answer_all(const struct ring *r, const struct ring_report *reports, size_t count,
                       struct ring_answer *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ring_keeper_answer(r->keeper, &reports[i]);
}

int ring_take_counts(struct ring *r, json_t *doc, json_t **answer, struct error *err)
{
    const char *node;
    size_t count;
    _cleanup_free_ struct ring_report *reports = NULL;
    int code = ring_reports_from_json(doc, &node, &reports, &count, err);
    if (code != 0)
        return code;
    _cleanup_free_ struct ring_answer *answers = xcalloc(count + 1, sizeof *answers);
    pthread_mutex_lock(&r->keep);
    ring_keeper_report(r->keeper, node, reports, count, clock_ms());
    answer_all(r, reports, count, answers);
    pthread_mutex_unlock(&r->keep);
    *answer = ring_answers_to_json(answers, count);
    return 0;
}

static int send_report(struct ring *r, const struct where *w, const struct ring_report *reports,
                       size_t count, struct ring_answer *answers, struct error *err)
{
    _cleanup_free_ char *url =
        xprintf("%s/v1/ring-counts/%llu", w->keeper->data_url, (unsigned long long)r->bucket_id);
    _cleanup_json_ json_t *doc = ring_reports_to_json(r->target->id, reports, count);
    _cleanup_json_ json_t *reply = NULL;
    int code = http_json_wait(r->target->data_client, w->keeper->id, HTTP_POST, url, doc,
                              r->target->params.call_timeout, &reply, err);
    return code != 0 ? code : ring_answers_from_json(reply, answers, count, err);
}

/* --- a step ----------------------------------------------------------------------------------- */

/* As the keeper: what is full is sealed. */
static int keep(struct ring *r, struct where *w, enum ring_wish wish, struct error *err)
{
    bool done = true;
    pthread_mutex_lock(&r->keep);
    const bool is_loaded = ring_keeper_is_loaded(r->keeper);
    pthread_mutex_unlock(&r->keep);
    int code = is_loaded ? 0 : load_head(r, w, err);
    if (code == 0 && wish == RING_GROUP) {
        code = serve_group(r, w, err);
    } else if (code == 0 && wish != RING_WHEN_FULL) {
        code = seal(r, w, wish, &done, err);
        if (code == 0 && !done)
            code =
                error_set(err, E_NO_GENERATION, "the ring has no sample that is in no generation");
    }
    for (int i = 0; i < SEALS_OF_STEP && done && code == 0; i++)
        code = seal(r, w, RING_WHEN_FULL, &done, err);
    w->more = code == 0 && done;
    return code;
}

static int report_here(struct ring *r, struct where *w, enum ring_wish wish,
                       const struct ring_report *reports, size_t count, struct ring_answer *answers,
                       struct error *err)
{
    pthread_mutex_lock(&r->keep);
    ring_keeper_report(r->keeper, r->target->id, reports, count, clock_ms());
    pthread_mutex_unlock(&r->keep);
    int code = keep(r, w, wish, err);
    pthread_mutex_lock(&r->keep);
    answer_all(r, reports, count, answers);
    pthread_mutex_unlock(&r->keep);
    return code;
}

static void note_keeper(struct ring *r, bool is_here)
{
    pthread_mutex_lock(&r->keep);
    r->is_elsewhere = !is_here;
    pthread_mutex_unlock(&r->keep);
}

/* What it finds is in *w, which has no state afterwards.  *more: another step may find something to
 * do. */
static int step(struct ring *r, enum ring_wish wish, struct where *w, bool *more, struct error *err)
{
    _cleanup_state_ const struct cluster_state *state = state_current(r->target->state);
    _cleanup_free_ struct ring_report *reports = NULL;
    size_t count = 0;
    *more = false;
    w->state = state;
    int code = find_keeper(r, w, err);
    note_keeper(r, code == 0 && is_keeper(r, w));
    if (code == 0)
        code = ring_reports(r, &reports, &count, err);
    if (code != 0)
        return code;
    _cleanup_free_ struct ring_answer *answers = xcalloc(count + 1, sizeof *answers);
    if (is_keeper(r, w)) {
        code = report_here(r, w, wish, reports, count, answers, err);
    } else if (wish != RING_WHEN_FULL) {
        return error_set(err, E_STALE_MAP, "target '%s' is the keeper of the ring", w->keeper->id);
    } else {
        pthread_mutex_lock(&r->keep);
        ring_keeper_unload(r->keeper);
        pthread_mutex_unlock(&r->keep);
        code = send_report(r, w, reports, count, answers, err);
    }
    if (code == 0)
        ring_apply(r, reports, answers, count);
    *more = code == 0 && (w->more || ring_is_pressed(r));
    return code;
}

int ring_step(struct ring *r, bool *more)
{
    struct where w = {.more = false};
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&r->step);
    int code = step(r, RING_WHEN_FULL, &w, more, &err);
    pthread_mutex_unlock(&r->step);
    if (code != 0 && code != E_BUCKET_NOT_FOUND) {
        metric_add(metric_get(M_ring_failed_steps_total, NULL), 1);
        log_info("a step of a ring has failed and is tried again", lu64("bucket", r->bucket_id),
                 lerr(&err));
    }
    return code;
}

static int wish_of(struct ring *r, enum ring_wish wish, struct where *w, uint64_t *generation,
                   struct error *err)
{
    bool more;
    pthread_mutex_lock(&r->step);
    int code = step(r, wish, w, &more, err);
    pthread_mutex_lock(&r->keep);
    *generation = ring_keeper_head(r->keeper)->generation;
    pthread_mutex_unlock(&r->keep);
    pthread_mutex_unlock(&r->step);
    return code;
}

int ring_wish(struct ring *r, enum ring_wish wish, uint64_t *generation, struct error *err)
{
    struct where w = {.more = false};
    return wish_of(r, wish, &w, generation, err);
}

int ring_group(struct ring *r, const struct ring_group_call *call, uint64_t *generation,
               bool *joined, struct error *err)
{
    struct where w = {.group = call};
    int code = wish_of(r, RING_GROUP, &w, generation, err);
    *joined = code == 0 && w.joins;
    return code;
}

/* A copy of the head that is stored, or of the one that the keeper has loaded. */
static int read_head(struct ring *r, struct ring_head *out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *state = state_current(r->target->state);
    struct where w = {.state = state};
    struct http_result result = {.status = 0};
    *out = (struct ring_head){.generation = 0};
    pthread_mutex_lock(&r->keep);
    const bool is_here = !r->is_elsewhere && ring_keeper_is_loaded(r->keeper);
    if (is_here)
        ring_head_copy(ring_keeper_head(r->keeper), out);
    pthread_mutex_unlock(&r->keep);
    if (is_here)
        return 0;
    int code = find_keeper(r, &w, err);
    if (code == 0)
        code = get_head(r, &w, &result, err);
    if (code == 0)
        code = ring_head_parse(buf_str(&result.body), result.body.len, out, err);
    http_result_done(&result);
    return code == E_OBJECT_NOT_FOUND ? 0 : code;
}

int ring_why_gone(struct ring *r, const char *lane, uint64_t ordinal, uint64_t *count,
                  struct error *err)
{
    _cleanup_ring_head_ struct ring_head head;
    char node[RING_LANE_MAX];
    uint64_t generation;
    *count = 0;
    int code = read_head(r, &head, err);
    if (code != 0)
        return code;
    if (!ring_lane_node(lane, node) || !ring_head_has(&head, lane, ordinal, &generation, count))
        return error_set(err, E_GENERATION_GONE,
                         "no kept generation has sample %llu of lane '%s': read the head again",
                         (unsigned long long)ordinal, lane);
    return error_set(err, E_GENERATION_GONE,
                     "samples %llu to %llu of lane '%s' are lost with a disk of target '%s', or "
                     "the target itself, and generation %llu has them: read its other samples",
                     (unsigned long long)ordinal, (unsigned long long)(ordinal + *count - 1), lane,
                     node, (unsigned long long)generation);
}

bool ring_is_beyond(struct ring *r, uint64_t generation)
{
    pthread_mutex_lock(&r->keep);
    const bool is_beyond =
        r->is_elsewhere ||
        (ring_keeper_is_loaded(r->keeper) && ring_keeper_head(r->keeper)->generation > generation);
    pthread_mutex_unlock(&r->keep);
    return is_beyond;
}
