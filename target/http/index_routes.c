#include "target/http/index_routes.h"

#include "common/jsonx.h"
#include "common/log.h"
#include "target/disk/reindexer.h"
#include "target/node/target.h"

static json_t *index_json(const struct mountpath *mp)
{
    struct reindexer_status status;
    struct error why = ERROR_INIT;
    int code = index_check(mp->index, &why);
    reindexer_status(mp->reindexer, &status);
    json_t *doc = json_pack(
        "{ss ss ss sb sI sI sI}", "id", mountpath_id(mp), "path", mp->path, "state",
        code == 0             ? "complete"
        : code == E_NOT_READY ? "filling"
                              : "stale",
        "rebuilding", (int)status.running, "files_looked_at", (json_int_t)status.looked_at,
        "rebuilds", (json_int_t)status.runs, "last_ms", (json_int_t)status.ms);
    if (code != 0)
        json_object_set_new(doc, "error", json_string_escaped(why.message));
    if (status.failed.code != 0)
        json_object_set_new(doc, "last_error", json_string_escaped(status.failed.message));
    return doc;
}

static void reply_indexes(struct http_request *req, int http_status,
                          const struct mountpath_set *set)
{
    json_t *list = json_array();
    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(list, index_json(set->all[i]));
    _cleanup_json_ json_t *doc = json_pack("{so}", "indexes", list);
    http_reply_json(req, http_status, doc);
}

static void indexes_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    reply_indexes(req, 200, set);
}

/* --- reindex ---------------------------------------------------------------------------------- */

static bool is_meant(const struct mountpath *mp, const char *which)
{
    return *which == '\0' || strcmp(which, mp->path) == 0 || strcmp(which, mountpath_id(mp)) == 0;
}

/* One that is at it already need not be asked. */
static int ask(const struct mountpath_set *set, const char *which, struct error *err)
{
    size_t asked = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (!is_meant(set->all[i], which))
            continue;
        (void)reindexer_ask(set->all[i]->reindexer, NULL);
        log_info("index is to be rebuilt", lstr("mountpath", set->all[i]->path));
        asked++;
    }
    return asked > 0 ? 0 : error_set(err, E_NOT_FOUND, "no open mountpath is '%.256s'", which);
}

static int parse(const char *data, size_t len, json_t **doc, const char **which, struct error *err)
{
    static const char *const fields[] = {"action", "value", NULL};
    const char *action = NULL;
    int code = json_parse(data, len, doc, err);
    if (code == 0)
        code = json_only_fields(*doc, "", fields, err);
    if (code == 0)
        code = json_need_str(*doc, "", "action", &action, err);
    if (code == 0)
        code = json_get_str(*doc, "", "value", which, err);
    if (code == 0 && strcmp(action, "reindex") != 0)
        code = error_set(err, E_INVALID, "field 'action': '%.64s' is not reindex", action);
    return code;
}

static void reindex_body(struct http_request *req, const char *data, size_t len)
{
    const struct target *t = http_user(req);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    _cleanup_json_ json_t *doc = NULL;
    const char *which = "";
    struct error err = ERROR_INIT;
    if (parse(data, len, &doc, &which, &err) != 0 || ask(set, which, &err) != 0)
        http_reply_error(req, &err);
    else
        reply_indexes(req, 202, set);
}

static void reindex_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    http_collect_body(req, t->params.body_max, reindex_body);
}

const struct http_route index_routes[] = {
    {.name = "indexes",
     .method = HTTP_GET,
     .pattern = "/v1/daemon/indexes",
     .nets = NET_CONTROL,
     .right = RIGHT_SEE,
     .admin = true,
     .begin = indexes_begin,
     .summary = "How the mountpaths' indexes are, by which objects are listed.",
     .body = "",
     .reply = "`{\"indexes\": [{\"id\", \"path\", \"state\": \"complete\\|stale\\|filling\", "
              "\"error\", \"rebuilding\", \"files_looked_at\", \"rebuilds\", \"last_ms\", "
              "\"last_error\"}]}`; the counts are of this run of the target",
     .errors = ""},
    {.name = "reindex",
     .method = HTTP_PUT,
     .pattern = "/v1/daemon/indexes",
     .nets = NET_CONTROL,
     .right = RIGHT_OPERATE,
     .changes = true,
     .admin = true,
     .begin = reindex_begin,
     .summary = "Has indexes rebuilt from the files while the target serves: lists go on with the "
                "old one until the new one is whole.",
     .body = "`{\"action\": \"reindex\", \"value\": a mountpath's path or id; without it all}`",
     .reply = "202 and what GET says; done when `rebuilding` is false again",
     .errors = "not_found invalid_json invalid_argument"},
    {.name = NULL},
};
