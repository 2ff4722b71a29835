#include "proxy/ais/ais_lists.h"

#include <string.h>

#include "access/guard.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/ais_summary.h"
#include "proxy/ais/list_form.h"
#include "proxy/list/archives.h"
#include "proxy/list/list.h"
#include "proxy/list/merge.h"
#include "proxy/primary/proxy.h"

static const char msgpack_type[] = "application/msgpack";

/* One that waits for its page; of the request's arena. */
struct asked {
    struct http_request *req;
    struct list_flags flags;
    const char *uuid;
};

static void listed(void *arg, const struct error *failure, const struct buf *page)
{
    const struct asked *a = arg;
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    _cleanup_buf_ struct buf form = BUF_INIT;
    if (failure != NULL || list_form_put(page, &a->flags, a->uuid, &form, &err) != 0)
        proxy_reply_error(a->req, &err);
    else
        http_reply_data(a->req, 200, msgpack_type, form.data, form.len);
}

static int read_value(json_t *value, struct list_request *l, const char **flags, const char **uuid,
                      struct error *err)
{
    const char *target = "", *token = "";
    uint64_t limit = 0;
    int code;
    if ((code = json_get_str(value, "value", "prefix", &l->prefix, err)) != 0 ||
        (code = json_get_str(value, "value", "start_after", &l->start_after, err)) != 0 ||
        (code = json_get_str(value, "value", "continuation_token", &token, err)) != 0 ||
        (code = json_get_str(value, "value", "flags", flags, err)) != 0 ||
        (code = json_get_str(value, "value", "uuid", uuid, err)) != 0 ||
        (code = json_get_str(value, "value", "target", &target, err)) != 0 ||
        (code = json_get_u64(value, "value", "pagesize", &limit, err)) != 0)
        return code;
    if (target[0] != '\0')
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.target': a list of one target's "
                         "objects is not supported");
    if (token[0] != '\0')
        l->token = token;
    if (limit > 0)
        l->limit = limit < LIST_LIMIT_MAX ? limit : LIST_LIMIT_MAX;
    return 0;
}

/* Texts of `doc` are copied by list_start(), but for what lives until the reply. */
static int list(struct http_request *req, json_t *value, struct error *err)
{
    struct list_request l = LIST_REQUEST_DEFAULT(http_path_param(req, "bucket"));
    struct asked *a = arena_alloc(http_arena(req), sizeof *a);
    const char *flags = "", *uuid = "";
    int code = read_value(value, &l, &flags, &uuid, err);
    if (code == 0)
        code = list_flags_parse(flags, &a->flags, err);
    if (code == 0)
        code = guard_ask(req, RIGHT_LIST, l.bucket, l.prefix, err);
    if (code != 0)
        return code;
    a->req = req;
    a->uuid = uuid[0] != '\0' ? arena_strdup(http_arena(req), uuid) : http_request_id(req);
    l.cached = a->flags.cached;
    l.members = a->flags.members;
    l.delimiter = a->flags.no_recursion ? "/" : "";
    l.done = listed;
    l.arg = a;
    list_archives_start(req, &l);
    return 0;
}

static int run(struct http_request *req, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *value = NULL;
    const char *action = NULL;
    int code = ais_check_common(req, err);
    if (code != 0 || (code = ais_read_action(data, len, &doc, &action, err)) != 0 ||
        (code = json_get_object(doc, "", "value", &value, err)) != 0)
        return code;
    _cleanup_json_ json_t *empty = json_object();
    value = value != NULL ? value : empty;
    if (strcmp(action, "list") == 0)
        return list(req, value, err);
    return strcmp(action, "summary-bck") == 0 ? ais_summary_start(req, value, err)
                                              : ais_refuse_action(action, err);
}

static void list_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (run(req, data, len, &err) != 0)
        http_reply_error(req, &err);
}

void ais_list_begin(struct http_request *req)
{
    const struct proxy *p = proxy_enter_objects(req);
    if (p != NULL)
        http_collect_body(req, p->params.body_max, list_body);
}
