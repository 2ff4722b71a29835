#include "proxy/ais/ais_copies.h"

#include <string.h>

#include "access/guard.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/custom_props.h"
#include "proxy/ais/object_pass.h"
#include "proxy/primary/proxy.h"

static int check_names(const char *bucket, const char *object, struct error *err)
{
    int code = bucket_name_check(bucket, err);
    return code != 0 ? code : object_name_check(object, strlen(object), err);
}

static struct pass_spec source_of(const struct http_request *req)
{
    return (struct pass_spec){.bucket = http_path_param(req, "bucket"),
                              .object = http_path_param(req, "object")};
}

/* --- a copy ----------------------------------------------------------------------------------- */

/* "ais/@#/BUCKET/OBJECT": the SDK's path of an object in a bucket without a namespace. */
static int read_destination(struct http_request *req, struct pass_spec *spec, struct error *err)
{
    static const char before[] = "ais/@#/";
    const char *to = http_query(req, "object_to");
    size_t skip = sizeof before - 1;
    const char *slash =
        to != NULL && strncmp(to, before, skip) == 0 ? strchr(to + skip, '/') : NULL;
    if (slash == NULL)
        return error_set(err, E_INVALID,
                         "parameter 'object_to': '%.64s' is not the path of an object, "
                         "ais/@#/BUCKET/OBJECT",
                         to != NULL ? to : "");
    spec->to_bucket = arena_strndup(http_arena(req), to + skip, (size_t)(slash - to) - skip);
    spec->to_object = slash + 1;
    return 0;
}

static int check_copy(struct http_request *req, const struct pass_spec *spec, struct error *err)
{
    static const struct ais_refusal refusals[] = {
        {"latest-ver", "false", "a copy of the backend's newest version"},
        {"synchronize", "false", "a copy that deletes"},
        {"etl_name", NULL, "ETL"},
        {"etl_args", NULL, "ETL"},
        {"etl_pipeline", NULL, "ETL"},
        {NULL},
    };
    int code = ais_check_refused(req, refusals, err);
    if (code != 0 || (code = check_names(spec->bucket, spec->object, err)) != 0 ||
        (code = check_names(spec->to_bucket, spec->to_object, err)) != 0 ||
        (code = guard_ask(req, RIGHT_WRITE, spec->to_bucket, spec->to_object, err)) != 0)
        return code;
    if (strcmp(spec->bucket, spec->to_bucket) == 0 && strcmp(spec->object, spec->to_object) == 0)
        return error_set(err, E_INVALID, "parameter 'object_to': an object is no copy of itself");
    return http_content_length(req) == 0 ? 0 : error_set(err, E_INVALID, "a copy takes no body");
}

void ais_object_copy_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    struct pass_spec spec = source_of(req);
    if (proxy_enter_objects(req) == NULL)
        return;
    if (ais_check_common(req, &err) != 0 || read_destination(req, &spec, &err) != 0 ||
        check_copy(req, &spec, &err) != 0)
        http_reply_error(req, &err);
    else
        object_pass(req, &spec);
}

/* --- other metadata --------------------------------------------------------------------------- */

static int read_replaces(const struct http_request *req, bool *out, struct error *err)
{
    const char *text = http_query(req, "set-new-custom");
    *out = text != NULL && strcmp(text, "true") == 0;
    if (text == NULL || *out || strcmp(text, "false") == 0)
        return 0;
    return error_set(err, E_INVALID, "parameter 'set-new-custom': '%.32s' is not true or false",
                     text);
}

/* The SDK sends no action. */
static int read_props(const char *data, size_t len, json_t **doc, json_t **props, struct error *err)
{
    const char *action = "";
    int code = json_parse(data, len, doc, err);
    if (code != 0)
        return code;
    if (!json_is_object(*doc))
        return error_set(err, E_JSON, "the body must be an object with the field 'value'");
    if ((code = json_get_str(*doc, "", "action", &action, err)) != 0)
        return code;
    if (action[0] != '\0')
        return ais_refuse_action(action, err);
    *props = json_object_get(*doc, "value");
    return custom_props_check(*props, err);
}

static void patch_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    struct pass_spec spec = source_of(req);
    spec.to_bucket = spec.bucket;
    spec.to_object = spec.object;
    if (ais_check_common(req, &err) != 0 || check_names(spec.bucket, spec.object, &err) != 0 ||
        read_replaces(req, &spec.replaces, &err) != 0 ||
        read_props(data, len, &doc, &spec.props, &err) != 0)
        http_reply_error(req, &err);
    else
        object_pass(req, &spec);
}

void ais_object_patch_begin(struct http_request *req)
{
    const struct proxy *p = proxy_enter_objects(req);
    if (p != NULL)
        http_collect_body(req, p->params.body_max, patch_body);
}
