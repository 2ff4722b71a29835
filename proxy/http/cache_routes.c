#include "proxy/http/cache_routes.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/http/cache_groups.h"
#include "proxy/primary/proxy.h"

enum { REPORT_MAX = 4096 };

static struct cache_times times_of(const struct proxy *p)
{
    return (struct cache_times){.away_ms = param_live(p->params.cache_away),
                                .settle_ms = param_live(p->params.cache_settle)};
}

static void reply_group(struct http_request *req)
{
    struct proxy *p = http_user(req);
    const struct cache_times times = times_of(p);
    _cleanup_json_ json_t *doc =
        cache_groups_show(p->cache_groups, http_path_param(req, "group"), &times, clock_ms());
    http_reply_json(req, 200, doc);
}

static void group_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (proxy_passed_to_primary(req))
        return;
    if (cache_groups_check_name(http_path_param(req, "group"), &err) != 0)
        http_reply_error(req, &err);
    else
        reply_group(req);
}

static int take_report(struct http_request *req, json_t *doc, struct error *err)
{
    static const char *const fields[] = {"boot", "url", "weight", "drains", "leaves", NULL};
    struct proxy *p = http_user(req);
    const struct cache_times times = times_of(p);
    struct cache_report r = {.group = http_path_param(req, "group"),
                             .id = http_path_param(req, "member")};
    uint64_t weight = 0;
    int rc;
    if ((rc = json_only_fields(doc, "", fields, err)) != 0 ||
        (rc = json_need_str(doc, "", "boot", &r.boot, err)) != 0 ||
        (rc = json_need_str(doc, "", "url", &r.url, err)) != 0 ||
        (rc = json_need_u64(doc, "", "weight", &weight, err)) != 0 ||
        (rc = json_get_bool(doc, "", "drains", &r.drains, err)) != 0 ||
        (rc = json_get_bool(doc, "", "leaves", &r.leaves, err)) != 0)
        return rc;
    if (weight > UINT32_MAX)
        return error_set(err, E_INVALID, "field 'weight': it must be below 2^32");
    r.weight = (uint32_t)weight;
    return cache_groups_report(p->cache_groups, &r, &times, clock_ms(), err);
}

static void report_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int rc = json_parse(data, len, &doc, &err);
    if (rc == 0 && !json_is_object(doc))
        rc = error_set(&err, E_JSON, "the body must be an object");
    if (rc == 0)
        rc = take_report(req, doc, &err);
    if (rc == 0)
        reply_group(req);
    else
        http_reply_error(req, &err);
}

static void report_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, REPORT_MAX, report_body);
}

#define GROUP_REPLY                                                                              \
    "200 and `{\"group\", \"age_ms\" (for how long the primary has listened), \"away_ms\", "     \
    "\"settle_ms\", \"members\": [{\"id\", \"url\", \"state\": present or away, \"weight\" (0: " \
    "it drains), \"earlier_weight\", \"present_ms\" (without a pause), \"silent_ms\"}]}`"

const struct http_route cache_routes[] = {
    {.name = "cache_group_get",
     .method = HTTP_GET,
     .pattern = "/v1/cache-groups/{group}",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_ANY,
     .begin = group_begin,
     .summary = "The members of a cache group, that have reported to the primary.",
     .body = "",
     .reply = GROUP_REPLY,
     .errors = "invalid_argument"},
    {.name = "cache_member_report",
     .method = HTTP_PUT,
     .pattern = "/v1/cache-groups/{group}/members/{member}",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_OPERATE,
     .begin = report_begin,
     .summary = "A member of a cache group reports; dfc-cached does that every few seconds.",
     .body = "`{\"boot\" (of this run), \"url\": \"http://HOST:PORT\", \"weight\", \"drains\": "
             "false, \"leaves\": false}`",
     .reply = GROUP_REPLY,
     .errors = "invalid_argument invalid_json exists overloaded"},
    {.name = NULL},
};
