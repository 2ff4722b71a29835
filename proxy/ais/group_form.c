#include "proxy/ais/group_form.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/template.h"
#include "xaction/objects_spec.h"

#define SELECTION "objnames", "template"
#define COPY                                                                                     \
    "prefix", "prepend", "dry_run", "force", "latest-ver", "synchronize", "num-workers", "coer", \
        "ext"

/* --- which objects ---------------------------------------------------------------------------- */

static int select_names(json_t *names, json_t *native, struct error *err)
{
    if (json_array_size(names) == 0)
        return error_set(err, E_SPEC, "field 'value.objnames' names no object");
    json_object_set(native, "list", names);
    return 0;
}

static int select_template(const char *text, json_t *native, struct error *err)
{
    _cleanup_(template_freep)
    struct name_template *t = NULL;
    int code = template_parse(text, &t, err);
    if (code != 0)
        return error_wrap(err, "field 'value.template'");
    bool is_prefix = template_kind(t) == TEMPLATE_PREFIX;
    json_object_set_new(native, is_prefix ? "prefix" : "template",
                        json_string(is_prefix ? template_prefix(t) : text));
    return 0;
}

static int select_objects(json_t *value, json_t *native, struct error *err)
{
    json_t *names = NULL;
    const char *text = NULL;
    int code = json_get_array(value, "value", "objnames", &names, err);
    if (code == 0)
        code = json_get_str(value, "value", "template", &text, err);
    if (code != 0)
        return code;
    if ((names != NULL) == (text != NULL))
        return error_set(err, E_SPEC, "field 'value' must have one of 'objnames' and 'template'");
    return names != NULL ? select_names(names, native, err) : select_template(text, native, err);
}

/* --- options ---------------------------------------------------------------------------------- */

/* Options that must not be set, whatever their type. */
struct refusal {
    const char *option, *what;
};
static const struct refusal refusals[] = {
    {"dry_run", "a dry run"},
    {"latest-ver", "a check for newer versions of the backend (bucket property validate)"},
    {"synchronize", "deleting what the backend does not have"},
    {"ext", "a change of extensions"},
    {"aate", "appending to an archive (make a new one)"},
};

static bool is_set(const json_t *option)
{
    return json_is_true(option) || json_object_size(option) > 0 || json_array_size(option) > 0 ||
           json_string_length(option) > 0 || json_integer_value(option) != 0;
}

static int check_options(json_t *value, const char *const *fields, struct error *err)
{
    int code = json_only_fields(value, "value", fields, err);
    for (size_t i = 0; code == 0 && i < sizeof refusals / sizeof *refusals; i++) {
        if (is_set(json_object_get(value, refusals[i].option)))
            code = error_set(err, E_UNSUPPORTED, "field 'value.%s': %s is not supported",
                             refusals[i].option, refusals[i].what);
    }
    return code;
}

/* A job goes on after an object that fails, whatever "coer" says; then it ends as failed. */
static int begin(json_t *value, const char *const *fields, json_t **native, struct error *err)
{
    *native = json_pack("{s:b}", "allow_empty", 1);
    return check_options(value, fields, err);
}

static int add_text(json_t *value, const char *field, json_t *native, struct error *err)
{
    const char *text = "";
    int code = json_get_str(value, "value", field, &text, err);
    if (code == 0 && text[0] != '\0')
        json_object_set_new(native, field, json_string(text));
    return code;
}

/* After an error the document is dropped. */
static int finish(int code, json_t **native, json_t **out)
{
    if (code == 0)
        *out = steal(*native);
    return code;
}

/* --- actions ---------------------------------------------------------------------------------- */

int group_form_delete(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {SELECTION, "coer", "num-workers", NULL};
    _cleanup_json_ json_t *native = NULL;
    int code = begin(value, fields, &native, err);
    if (code == 0)
        code = select_objects(value, native, err);
    return finish(code, &native, out);
}

/* 0: as many as the target thinks fit; below: one. */
static int add_workers(json_t *value, json_t *native, struct error *err)
{
    int64_t workers = 0;
    int code = json_get_i64(value, "value", "num-workers", &workers, err);
    if (workers < 0)
        workers = 1;
    if (workers > OBJECTS_PARALLEL_MAX)
        workers = OBJECTS_PARALLEL_MAX;
    if (code == 0 && workers > 0)
        json_object_set_new(native, "parallel", json_integer(workers));
    return code;
}

int group_form_prefetch(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {SELECTION,     "coer",           "latest-ver",
                                         "num-workers", "blob-threshold", NULL};
    _cleanup_json_ json_t *native = NULL;
    int code = begin(value, fields, &native, err);
    if (code == 0)
        code = select_objects(value, native, err);
    if (code == 0)
        code = add_workers(value, native, err);
    return finish(code, &native, out);
}

static int add_destination(json_t *value, json_t *native, struct error *err)
{
    json_t *to = NULL, *namespace = NULL;
    const char *name = NULL, *provider = "ais";
    int code = json_get_object(value, "value", "tobck", &to, err);
    if (code != 0 || to == NULL)
        return code != 0 ? code : error_set(err, E_JSON, "field 'value.tobck' is missing");
    if ((code = json_need_str(to, "value.tobck", "name", &name, err)) != 0 ||
        (code = json_get_str(to, "value.tobck", "provider", &provider, err)) != 0 ||
        (code = json_get_object(to, "value.tobck", "namespace", &namespace, err)) != 0)
        return code;
    if (strcmp(provider, "ais") != 0)
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.tobck.provider': '%.64s' is not supported (a bucket with a "
                         "backend is of provider ais, too)",
                         provider);
    if (is_set(namespace))
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.tobck.namespace': a namespace is not supported");
    json_object_set_new(native, "to", json_string(name));
    return 0;
}

int group_form_copy(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {SELECTION, COPY, "tobck", NULL};
    _cleanup_json_ json_t *native = NULL;
    int code = begin(value, fields, &native, err);
    if (code == 0 && is_set(json_object_get(value, "prefix")))
        code = error_set(err, E_UNSUPPORTED,
                         "field 'value.prefix': a prefix beside the choice of objects is not "
                         "supported");
    if (code != 0 || (code = select_objects(value, native, err)) != 0 ||
        (code = add_destination(value, native, err)) != 0)
        return code;
    return finish(add_text(value, "prepend", native, err), &native, out);
}

/* AIStore takes extensions and types. */
static const char *extension_of(const char *mime)
{
    static const struct {
        const char *mime, *extension;
    } rows[] = {
        {"application/x-tar", ".tar"},     {"application/gzip", ".tar.gz"},
        {"application/x-gzip", ".tar.gz"}, {"application/x-tgz", ".tgz"},
        {"application/zip", ".zip"},       {"application/x-tar.lz4", ".tar.lz4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].mime, mime) == 0)
            return rows[i].extension;
    }
    return mime;
}

static int add_archive(json_t *value, json_t *native, struct error *err)
{
    const char *name = NULL, *mime = "";
    int code = json_need_str(value, "value", "archname", &name, err);
    if (code == 0)
        code = json_get_str(value, "value", "mime", &mime, err);
    if (code != 0)
        return code;
    json_object_set_new(native, "archive", json_string(name));
    if (mime[0] != '\0')
        json_object_set_new(native, "format", json_string(extension_of(mime)));
    return 0;
}

/* Members are called as their objects, behind the name of the bucket where that is asked for. */
int group_form_archive(json_t *value, const char *bucket, json_t **out, struct error *err)
{
    static const char *const fields[] = {SELECTION, "archname", "mime", "tobck",
                                         "isbn",    "aate",     "coer", NULL};
    _cleanup_json_ json_t *native = NULL;
    bool with_bucket = false;
    int code = begin(value, fields, &native, err);
    if (code != 0 || (code = select_objects(value, native, err)) != 0 ||
        (code = add_destination(value, native, err)) != 0 ||
        (code = json_get_bool(value, "value", "isbn", &with_bucket, err)) != 0)
        return code;
    if (with_bucket)
        json_object_set_new(native, "prepend", json_sprintf("%s/", bucket));
    return finish(add_archive(value, native, err), &native, out);
}

int group_form_copy_bucket(json_t *value, const char *to, json_t **out, struct error *err)
{
    static const char *const fields[] = {COPY, NULL};
    _cleanup_json_ json_t *native = NULL;
    int code = begin(value, fields, &native, err);
    if (code == 0)
        code = add_text(value, "prefix", native, err);
    if (code == 0)
        code = add_text(value, "prepend", native, err);
    if (code == 0)
        json_object_set_new(native, "to", json_string(to));
    return finish(code, &native, out);
}
