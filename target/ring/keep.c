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
#include "target/copies/object_copy.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"
#include "target/ring/ring.h"

enum { HEARTBEATS_FRESH = 3, SEALS_OF_STEP = 64 };

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

static struct ring_rules rules_of(const struct ring *r, const struct bucket *b)
{
    return (struct ring_rules){.cap = b->props.ring_cap,
                               .keep = b->props.ring_keep,
                               .fresh_ms = HEARTBEATS_FRESH * r->target->params.ring_heartbeat};
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
    if (code == 0 && reply.status == 307)
        code = error_set(err, E_STALE_MAP, "the keeper of the ring has changed");
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
    int code = put_head(r, w, next, err);
    pthread_mutex_lock(&r->keep);
    const bool swaps = next->generation > ring_keeper_head(r->keeper)->generation;
    if (code == 0)
        ring_keeper_stored(r->keeper, next);
    else
        ring_keeper_unload(r->keeper); /* it may be stored */
    pthread_mutex_unlock(&r->keep);
    if (code == 0 && swaps)
        metric_add(metric_get(M_ring_swaps_total, NULL), 1);
    if (code != 0)
        ring_head_done(next);
    return code;
}

/* *done: a head was stored. */
static int seal(struct ring *r, const struct where *w, enum ring_wish wish, bool *done,
                struct error *err)
{
    const struct ring_rules rules = rules_of(r, w->bucket);
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

static json_t *holes_to_json(const struct ring_report *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->holes_count; i++)
        json_array_append_new(
            list, json_pack("[I, I]", (json_int_t)l->holes[i].from, (json_int_t)l->holes[i].to));
    return list;
}

static int holes_of_json(json_t *item, struct ring_report *out, struct error *err)
{
    json_t *list = NULL;
    uint64_t at = out->first;
    int code = json_get_array(item, "lanes", "holes", &list, err);
    if (code == 0 && json_array_size(list) > RING_HOLES_MAX)
        code = error_set(err, E_INVALID, "lanes.holes has more than %d items", RING_HOLES_MAX);
    for (size_t i = 0; i < json_array_size(list) && code == 0; i++) {
        const json_t *hole = json_array_get(list, i);
        struct ring_range *h = &out->holes[out->holes_count++];
        h->from = (uint64_t)json_integer_value(json_array_get(hole, 0));
        h->to = (uint64_t)json_integer_value(json_array_get(hole, 1));
        if (h->from < at || h->from >= h->to || h->to > INT64_MAX)
            code = error_set(err, E_INVALID, "lanes.holes: %zu is no range behind the others", i);
        at = h->to;
    }
    return code;
}

static json_t *reports_to_json(const char *node, const struct ring_report *reports, size_t count)
{
    json_t *lanes = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct ring_report *l = &reports[i];
        json_t *item = json_pack("{s:s, s:I, s:I, s:b, s:b}", "lane", l->lane, "first",
                                 (json_int_t)l->first, "count", (json_int_t)l->count, "closed",
                                 (int)l->closed, "drained", (int)l->drained);
        if (l->drop_to > 0)
            json_object_set_new(item, "drop_to", json_integer((json_int_t)l->drop_to));
        if (l->holes_count > 0)
            json_object_set_new(item, "holes", holes_to_json(l));
        json_array_append_new(lanes, item);
    }
    return json_pack("{s:s, s:o}", "node", node, "lanes", lanes);
}

static int report_of_json(json_t *item, struct ring_report *out, struct error *err)
{
    const char *lane;
    char node[RING_LANE_MAX];
    *out = (struct ring_report){.count = 0};
    int code = json_need_str(item, "lanes", "lane", &lane, err);
    if (code == 0 && !ring_lane_node(lane, node))
        code = error_set(err, E_INVALID, "lanes: '%.120s' is no lane", lane);
    if (code == 0)
        code = json_need_u64(item, "lanes", "first", &out->first, err);
    if (code == 0)
        code = json_need_u64(item, "lanes", "count", &out->count, err);
    if (code == 0)
        code = json_get_bool(item, "lanes", "closed", &out->closed, err);
    if (code == 0)
        code = json_get_bool(item, "lanes", "drained", &out->drained, err);
    if (code == 0)
        code = json_get_u64(item, "lanes", "drop_to", &out->drop_to, err);
    if (code == 0)
        code = holes_of_json(item, out, err);
    if (code == 0)
        snprintf(out->lane, sizeof out->lane, "%s", lane);
    return code;
}

static void answer_all(const struct ring *r, const struct ring_report *reports, size_t count,
                       struct ring_answer *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ring_keeper_answer(r->keeper, &reports[i]);
}

int ring_take_counts(struct ring *r, json_t *doc, json_t **answer, struct error *err)
{
    const char *node;
    json_t *lanes = NULL;
    int code = json_need_str(doc, "", "node", &node, err);
    if (code == 0)
        code = json_get_array(doc, "", "lanes", &lanes, err);
    const size_t count = code == 0 ? json_array_size(lanes) : 0;
    _cleanup_free_ struct ring_report *reports = xcalloc(count + 1, sizeof *reports);
    _cleanup_free_ struct ring_answer *answers = xcalloc(count + 1, sizeof *answers);
    for (size_t i = 0; i < count && code == 0; i++)
        code = report_of_json(json_array_get(lanes, i), &reports[i], err);
    if (code != 0)
        return code;
    pthread_mutex_lock(&r->keep);
    ring_keeper_report(r->keeper, node, reports, count, clock_ms());
    answer_all(r, reports, count, answers);
    pthread_mutex_unlock(&r->keep);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:b}", "release", (json_int_t)answers[i].release,
                            "sealed", (json_int_t)answers[i].sealed, "taken",
                            (json_int_t)answers[i].taken, "forget", (int)answers[i].forget));
    *answer = json_pack("{s:o}", "lanes", list);
    return 0;
}

static int take_answers(json_t *doc, size_t count, struct ring_answer *out, struct error *err)
{
    json_t *lanes = NULL;
    int code = json_get_array(doc, "", "lanes", &lanes, err);
    if (code == 0 && json_array_size(lanes) != count)
        code = error_set(err, E_JSON, "the keeper has answered for other lanes");
    for (size_t i = 0; i < count && code == 0; i++) {
        json_t *item = json_array_get(lanes, i);
        code = json_need_u64(item, "lanes", "release", &out[i].release, err);
        if (code == 0)
            code = json_get_u64(item, "lanes", "sealed", &out[i].sealed, err);
        if (code == 0)
            code = json_get_u64(item, "lanes", "taken", &out[i].taken, err);
        if (code == 0)
            code = json_get_bool(item, "lanes", "forget", &out[i].forget, err);
    }
    return code;
}

static int send_report(struct ring *r, const struct where *w, const struct ring_report *reports,
                       size_t count, struct ring_answer *answers, struct error *err)
{
    _cleanup_free_ char *url =
        xprintf("%s/v1/ring-counts/%llu", w->keeper->data_url, (unsigned long long)r->bucket_id);
    _cleanup_json_ json_t *doc = reports_to_json(r->target->id, reports, count);
    _cleanup_json_ json_t *reply = NULL;
    int code = http_json_wait(r->target->data_client, w->keeper->id, HTTP_POST, url, doc,
                              r->target->params.call_timeout, &reply, err);
    return code != 0 ? code : take_answers(reply, count, answers, err);
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

bool ring_step(struct ring *r)
{
    bool more;
    struct where w = {.more = false};
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&r->step);
    int code = step(r, RING_WHEN_FULL, &w, &more, &err);
    pthread_mutex_unlock(&r->step);
    if (code != 0 && code != E_BUCKET_NOT_FOUND)
        log_info("a step of a ring has failed and is tried again", lu64("bucket", r->bucket_id),
                 lerr(&err));
    return more;
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

/* --- for clients ------------------------------------------------------------------------------ */

static json_t *lanes_to_json(const struct ring *r, uint64_t now_ms)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ring_keeper_lanes(r->keeper); i++) {
        struct ring_lane_seen l;
        uint64_t taken = 0;
        ring_keeper_lane(r->keeper, i, &l);
        if (!ring_head_taken(ring_keeper_head(r->keeper), l.report->lane, &taken))
            taken = l.report->first;
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:b, s:I}", "lane",
                                              l.report->lane, "first", (json_int_t)l.report->first,
                                              "count", (json_int_t)l.report->count, "taken",
                                              (json_int_t)taken, "closed", (int)l.report->closed,
                                              "seen_ms", (json_int_t)(now_ms - l.seen_ms)));
    }
    return list;
}

int ring_status(struct ring *r, const struct bucket *b, json_t **out, struct error *err)
{
    const struct ring_rules rules = rules_of(r, b);
    const uint64_t now_ms = clock_ms();
    _cleanup_buf_ struct buf text = BUF_INIT;
    json_t *head = NULL;
    int code = 0;
    pthread_mutex_lock(&r->keep);
    if (ring_keeper_is_loaded(r->keeper)) {
        ring_head_print(ring_keeper_head(r->keeper), &text);
        code = json_parse(text.data, text.len, &head, err);
    } else {
        code = error_set(err, E_NOT_READY, "target '%s' is not the keeper of ring '%s' yet",
                         r->target->id, b->name);
    }
    if (code == 0)
        *out =
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "ring", b->name, "keeper",
                      r->target->id, "cap", (json_int_t)rules.cap, "keep", (json_int_t)rules.keep,
                      "fill", (json_int_t)ring_keeper_fill(r->keeper, &rules, now_ms), "lanes",
                      lanes_to_json(r, now_ms), "head", head);
    pthread_mutex_unlock(&r->keep);
    return code;
}
