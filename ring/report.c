#include "ring/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

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

json_t *ring_reports_to_json(const char *node, const struct ring_report *reports, size_t count)
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
    if (code == 0 && (out->first > RING_ORDINAL_MAX || out->count > RING_ORDINAL_MAX))
        code = error_set(err, E_INVALID, "lanes: '%.120s' has an ordinal above 2^48", lane);
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

int ring_reports_from_json(json_t *doc, const char **node, struct ring_report **out, size_t *count,
                           struct error *err)
{
    json_t *lanes = NULL;
    int code = json_need_str(doc, "", "node", node, err);
    if (code == 0)
        code = json_get_array(doc, "", "lanes", &lanes, err);
    *count = code == 0 ? json_array_size(lanes) : 0;
    _cleanup_free_ struct ring_report *reports = xcalloc(*count + 1, sizeof *reports);
    for (size_t i = 0; i < *count && code == 0; i++)
        code = report_of_json(json_array_get(lanes, i), &reports[i], err);
    *out = code == 0 ? steal(reports) : NULL;
    return code;
}

json_t *ring_answers_to_json(const struct ring_answer *answers, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:b}", "release", (json_int_t)answers[i].release,
                            "sealed", (json_int_t)answers[i].sealed, "taken",
                            (json_int_t)answers[i].taken, "forget", (int)answers[i].forget));
    return json_pack("{s:o}", "lanes", list);
}

int ring_answers_from_json(json_t *doc, struct ring_answer *out, size_t count, struct error *err)
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
