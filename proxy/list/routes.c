#include "proxy/list/routes.h"

#include "common/parse.h"
#include "proxy/list/archives.h"
#include "proxy/list/list.h"
#include "proxy/primary/proxy.h"

static void query_text(const struct http_request *req, const char *name, const char **out)
{
    const char *value = http_query(req, name);
    if (value != NULL)
        *out = value;
}

static int parse_query(const struct http_request *req, struct list_request *r, struct error *err)
{
    const char *limit = http_query(req, "limit");
    const char *partial = http_query(req, "partial");
    const char *cached = http_query(req, "cached");
    const char *internal = http_query(req, "internal");
    const char *archives = http_query(req, "archives");
    int code = 0;
    query_text(req, "prefix", &r->prefix);
    query_text(req, "delimiter", &r->delimiter);
    query_text(req, "start_after", &r->start_after);
    query_text(req, "token", &r->token);
    if (limit != NULL && (code = parse_u64(limit, &r->limit, err)) != 0)
        error_wrap(err, "parameter 'limit'");
    else if (partial != NULL && (code = parse_bool(partial, &r->partial, err)) != 0)
        error_wrap(err, "parameter 'partial'");
    else if (cached != NULL && (code = parse_bool(cached, &r->cached, err)) != 0)
        error_wrap(err, "parameter 'cached'");
    else if (internal != NULL && (code = parse_bool(internal, &r->internal, err)) != 0)
        error_wrap(err, "parameter 'internal'");
    else if (archives != NULL && (code = parse_bool(archives, &r->members, err)) != 0)
        error_wrap(err, "parameter 'archives'");
    return code;
}

static void list_begin(struct http_request *req)
{
    if (proxy_enter_objects(req) == NULL)
        return;
    struct list_request r = LIST_REQUEST_DEFAULT(http_path_param(req, "bucket"));
    struct error err = ERROR_INIT;
    if (parse_query(req, &r, &err) != 0)
        http_reply_error(req, &err);
    else
        list_archives_start(req, &r);
}

const struct http_route list_routes[] = {
    {.name = "object_list",
     .method = HTTP_GET,
     .pattern = "/v1/objects/{bucket}",
     .nets = NET_PUBLIC | NET_CONTROL, /* targets' jobs read it, too */
     .right = RIGHT_LIST,
     .begin = list_begin,
     .summary = "A page of a bucket's objects, in bytewise order of names.",
     .query =
         HTTP_PARAMETERS({"prefix", "text"},
                         {"delimiter", "text: names are shown up to it, as one entry of prefixes"},
                         {"start_after", "name"}, {"token", "next of the page before"},
                         {"limit", "1 to 10000 (default 1000)"},
                         {"partial", "true: without targets that cannot be asked"},
                         {"cached", "true: only stored objects of a bucket with a backend"},
                         {"internal", "true: also names that begin with `.dfc-`, which only a "
                                      "prefix that begins so shows otherwise"},
                         {"archives", "true: also the plain files in archives, each as "
                                      "ARCHIVE/MEMBER behind its archive; needs the right `read`"}),
     .body = "",
     .reply = "`{\"entries\": [{\"name\", \"size\", \"version\", \"checksum\", "
              "\"md5\" in a bucket with etag md5, \"modified_ms\"}], \"prefixes\": [\"a/\"], "
              "\"next\": \"\", \"incomplete\": "
              "false}`; a name that only the backend has is `{\"name\", \"size\", \"version\": "
              "\"0.0.0\", "
              "\"etag\", \"modified_ms\", \"cached\": false}`; a member of an archive is "
              "`{\"name\", \"size\", \"version\" of the archive, \"modified_ms\", \"member\": "
              "true}`, with `\"escaped\": true` if its name is no UTF-8",
     .errors = "archive_damaged archive_limit bucket_not_found invalid_name node_unreachable "
               "no_targets backend_denied "
               "backend_error backend_unavailable backend_timeout"},
    {.name = NULL},
};
