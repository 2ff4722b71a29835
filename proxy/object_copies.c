#include "proxy/object_copies.h"

#include <string.h>

#include "cluster/owners.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/proxy.h"

enum { VERIFY_MS = 600000 }; /* all bytes are read */

/* One target's. */
struct asked {
    struct survey *survey;
    char *url;
    json_t *entry;
};

struct survey {
    struct proxy *proxy;
    struct http_request *req;
    json_t *doc;
    size_t pending;
    size_t count;
    struct asked asked[];
};

static void survey_free(struct survey *v)
{
    for (size_t i = 0; i < v->count; i++)
        free(v->asked[i].url);
    json_decref(v->doc);
    free(v);
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
    if (--v->pending > 0)
        return;
    http_reply_json(v->req, 200, v->doc);
    survey_free(v);
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
        v->asked[v->count++] =
            (struct asked){.survey = v, .url = url_of(req, n, b, name), .entry = entry};
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
     .begin = copies_begin,
     .summary = "What each target has of an object, as it is on its disk.",
     .query = "verify=true: each reads its bytes, and compares them with their checksum",
     .body = "",
     .reply =
         "`{\"bucket\", \"name\", \"copies_wanted\", \"awaited\": node that may alone have the "
         "last, or \"\", \"copies\": [{\"node\", \"state\", \"lag\", \"owner\", \"acting\", "
         "\"found\", \"version\", \"tombstone\", \"size\", \"modified_ms\", \"checksum\", "
         "\"intact\"; or \"error\": {\"code\", \"message\"}}]}`",
     .errors = "invalid_name bucket_not_found no_targets"},
    {.name = NULL},
};
