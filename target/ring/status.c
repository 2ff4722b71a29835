#include "target/ring/status.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/metrics.h"
#include "target/node/target.h"
#include "target/ring/ring.h"

enum { HEARTBEATS_FRESH = 3 };

struct ring_rules ring_rules_of(const struct ring *r, const struct bucket *b)
{
    return (struct ring_rules){.cap = b->props.ring_cap,
                               .keep = b->props.ring_keep,
                               .fresh_ms = HEARTBEATS_FRESH * r->target->params.ring_heartbeat,
                               .consumed = b->props.ring_consumed};
}

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

/* With the keeper's lock; takes over `head`. */
static json_t *to_json(const struct ring *r, const struct bucket *b, json_t *head)
{
    const struct ring_rules rules = ring_rules_of(r, b);
    const uint64_t now_ms = clock_ms();
    return json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:o, s:o}", "ring", b->name, "keeper",
                     r->target->id, "cap", (json_int_t)rules.cap, "keep", (json_int_t)rules.keep,
                     "swap", rules.consumed ? "consumed" : "full", "policy",
                     b->props.ring_drops ? "drop" : "block", "fill",
                     (json_int_t)ring_keeper_fill(r->keeper, &rules, now_ms), "lanes",
                     lanes_to_json(r, now_ms), "head", head);
}

int ring_status(struct ring *r, const struct bucket *b, json_t **out, struct error *err)
{
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
        *out = to_json(r, b, head);
    pthread_mutex_unlock(&r->keep);
    return code;
}

void ring_add_totals(struct ring *r, const struct bucket *b, struct ring_totals *sum)
{
    const struct ring_rules rules = ring_rules_of(r, b);
    sum->bytes += ring_bytes_seen(r);
    pthread_mutex_lock(&r->keep);
    if (!r->is_elsewhere && ring_keeper_is_loaded(r->keeper)) {
        const struct ring_head *h = ring_keeper_head(r->keeper);
        const uint64_t fill = ring_keeper_fill(r->keeper, &rules, clock_ms());
        sum->rings++;
        sum->generations += h->generations_count;
        sum->groups += h->groups_count;
        sum->waiting += fill;
        sum->held += fill >= rules.cap && ring_head_is_held(h, rules.consumed);
    }
    pthread_mutex_unlock(&r->keep);
}

void ring_totals_show(const struct ring_totals *sum)
{
    metric_set(metric_get(M_ring_bytes, NULL), (int64_t)sum->bytes);
    metric_set(metric_get(M_ring_kept, NULL), (int64_t)sum->rings);
    metric_set(metric_get(M_ring_generations, NULL), (int64_t)sum->generations);
    metric_set(metric_get(M_ring_groups, NULL), (int64_t)sum->groups);
    metric_set(metric_get(M_ring_waiting_samples, NULL), (int64_t)sum->waiting);
    metric_set(metric_get(M_ring_held, NULL), (int64_t)sum->held);
}
