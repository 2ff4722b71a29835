#include "proxy/http/object_copies.h"

#include <string.h>

#include "cluster/placement/owners.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/proxy.h"

enum { VERIFY_MS = 600000 }; /* all bytes are read */

/* One target's. */
struct asked {
    struct survey *survey;
    char *node; /* id */
    char *url;
    json_t *entry;
};

struct survey {
    struct proxy *proxy;
    struct http_request *req;
    json_t *doc;
    bool of_slices; /* it is asked for these by now */
    size_t pending;
    size_t count;
    struct asked asked[];
};

static void survey_free(struct survey *v)
{
    for (size_t i = 0; i < v->count; i++) {
        free(v->asked[i].node);
        free(v->asked[i].url);
    }
    json_decref(v->doc);
    free(v);
}

static void ask_all(void *arg);

/* Where a target has said one that can be. */
static json_t *shape_of(json_t *entry)
{
    json_t *ec = json_object_get(entry, "ec");
    json_t *data = json_object_get(ec, "data"), *parity = json_object_get(ec, "parity");
    bool sound = json_is_integer(data) && json_integer_value(data) > 0 &&
                 json_integer_value(data) <= EC_DATA_SLICES_MAX && json_is_integer(parity) &&
                 json_integer_value(parity) >= 0 && json_integer_value(parity) < COPIES_MAX &&
                 json_is_string(json_object_get(ec, "tag"));
    return sound ? ec : NULL;
}

/* What the name stands for, by who acts for it, or else by anybody: NULL, or its slices' shape. */
static json_t *ec_of(const struct survey *v)
{
    json_t *ec = NULL;
    for (size_t i = 0; i < v->count; i++) {
        json_t *entry = v->asked[i].entry, *found = shape_of(entry);
        bool acts = json_is_true(json_object_get(entry, "acting"));
        if (acts && json_is_true(json_object_get(entry, "found")))
            return found;
        ec = ec != NULL ? ec : found;
    }
    return ec;
}

static json_int_t slices_of(json_t *ec)
{
    return json_integer_value(json_object_get(ec, "data")) +
           json_integer_value(json_object_get(ec, "parity"));
}

static bool is_there(const struct survey *v, json_int_t slice)
{
    for (size_t i = 0; i < v->count; i++) {
        size_t k;
        json_t *s;
        json_array_foreach(json_object_get(v->asked[i].entry, "slices"), k, s)
        {
            if (json_integer_value(json_object_get(s, "slice")) == slice &&
                json_object_get(s, "error") == NULL && !json_is_false(json_object_get(s, "intact")))
                return true;
        }
    }
    return false;
}

/* Those that no target has whole. */
static void put_missing(const struct survey *v)
{
    json_t *missing = json_array();
    for (json_int_t i = 0; i < slices_of(json_object_get(v->doc, "ec")); i++) {
        if (!is_there(v, i))
            json_array_append_new(missing, json_integer(i));
    }
    json_object_set_new(v->doc, "slices_missing", missing);
}

static void ask_for_slices(struct survey *v, json_t *ec)
{
    v->of_slices = true;
    json_object_set(v->doc, "ec", ec);
    for (size_t i = 0; i < v->count; i++) {
        char *url = v->asked[i].url;
        v->asked[i].url =
            xprintf("%s%ctag=%s&slices=%lld", url, strchr(url, '?') != NULL ? '&' : '?',
                    json_string_value(json_object_get(ec, "tag")), slices_of(ec));
        free(url);
    }
    ask_all(v);
}

/* All have answered. */
static void conclude(struct survey *v)
{
    json_t *ec = v->of_slices ? NULL : ec_of(v);
    if (ec != NULL) {
        ask_for_slices(v, ec);
        return;
    }
    if (v->of_slices)
        put_missing(v);
    http_reply_json(v->req, 200, v->doc);
    survey_free(v);
}

static void answered(void *arg, struct http_result *r)
{
    struct asked *a = arg;
    struct survey *v = a->survey;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int code = http_result_error(r, a->url, &err);
    if (code == 0)
        code = json_parse(r->body.data, r->body.len, &doc, &err);
    if (code == 0)
        json_object_update(a->entry, doc);
    else
        json_object_set_new(
            a->entry, "error",
            json_pack("{s:s, s:s}", "code", error_name(err.code), "message", err.message));
    if (--v->pending == 0)
        conclude(v);
}

/* In the list loop. */
static void ask_all(void *arg)
{
    struct survey *v = arg;
    bool verify = http_query(v->req, "verify") != NULL;
    v->pending = v->count;
    for (size_t i = 0, count = v->count; i < count; i++) {
        const struct http_call call = {.method = HTTP_GET,
                                       .url = v->asked[i].url,
                                       .node = v->asked[i].node,
                                       .total_timeout_ms =
                                           verify ? VERIFY_MS : v->proxy->params.call_timeout,
                                       .stall_timeout_ms = verify ? VERIFY_MS : 0,
                                       .request_id = http_request_id(v->req)};
        http_call_start(v->proxy->list_client, &call, answered, &v->asked[i]);
    }
}

static char *url_of(const struct http_request *req, const struct node *n, const struct bucket *b,
                    const char *name)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/copies/%llu/", n->data_url, (unsigned long long)b->id);
    buf_put_url_escaped(&url, name, strlen(name), "/");
    if (http_query(req, "verify") != NULL)
        buf_puts(&url, "?verify=true");
    return buf_steal(&url);
}

static json_t *entry_of(const struct owners *o, const struct node *n)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:b}", "node", n->id, "state", node_state_name(n->state),
                     "lag", node_lag_name(n->lag), "owner", (int)owners_has(o, n->id), "acting",
                     (int)(o->acting == n));
}

static struct survey *survey_new(struct http_request *req, const struct cluster_state *s,
                                 const struct bucket *b, const char *name)
{
    struct survey *v = xcalloc(1, sizeof *v + s->smap.count * sizeof v->asked[0]);
    struct owners o;
    owners_of(s, b, name, &o);
    v->proxy = http_user(req);
    v->req = req;
    json_t *copies = json_array();
    v->doc = json_pack("{s:s, s:s, s:I, s:s, s:o}", "bucket", b->name, "name", name,
                       "copies_wanted", (json_int_t)b->props.copies, "awaited",
                       o.awaited != NULL ? o.awaited->id : "", "copies", copies);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET)
            continue;
        json_t *entry = entry_of(&o, n);
        json_array_append_new(copies, entry);
        v->asked[v->count++] = (struct asked){
            .survey = v, .node = xstrdup(n->id), .url = url_of(req, n, b, name), .entry = entry};
    }
    return v;
}

static int survey_begin(struct proxy *p, struct http_request *req, struct error *err)
{
    const char *bucket = http_path_param(req, "bucket");
    const char *name = http_path_param(req, "object");
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    int code = bucket_name_check(bucket, err);
    if (code == 0)
        code = object_name_check(name, strlen(name), err);
    if (code != 0)
        return code;
    const struct bucket *b = bmd_bucket(&s->bmd, bucket);
    if (b == NULL)
        return proxy_no_bucket(p, bucket, err);
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target that could be asked");
    loop_post(p->list_loop, ask_all, survey_new(req, s, b, name));
    return 0;
}

static void copies_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    struct proxy *p = proxy_enter_objects(req);
    if (p != NULL && survey_begin(p, req, &err) != 0)
        http_reply_error(req, &err);
}

const struct http_route object_copies_routes[] = {
    {.name = "object_copies",
     .method = HTTP_GET,
     .pattern = "/v1/copies/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = copies_begin,
     .summary = "What each target has of an object, as it is on its disk.",
     .query = HTTP_PARAMETERS(
         {"verify", "true: each reads its bytes, and compares them with their checksum"}),
     .body = "",
     .reply =
         "`{\"bucket\", \"name\", \"copies_wanted\", \"awaited\": node that may alone have the "
         "last, or \"\", \"copies\": [{\"node\", \"state\", \"lag\", \"owner\", \"acting\", "
         "\"found\", \"version\", \"tombstone\", \"size\", \"modified_ms\", \"checksum\", "
         "\"intact\"; or \"error\": {\"code\", \"message\"}}]}`; of an object in slices also "
         "\"ec\": "
         "{\"data\", \"parity\", \"tag\"}, \"slices_missing\": [those that no target has], and of "
         "each "
         "target \"slices\": [{\"slice\", \"size\", \"intact\" or \"error\"}]",
     .errors = "invalid_name bucket_not_found no_targets"},
    {.name = NULL},
};
