#include "xaction/burn_spec.h"

#include <string.h>

#include "cluster/documents/names.h"
#include "common/jsonx.h"
#include "common/mem.h"

void burn_spec_free(struct burn_spec *s)
{
    if (s == NULL)
        return;
    free(s->prefix);
    free(s->csv);
    free(s->image);
    free(s->from);
    free(s->base);
    json_decref(s->remove);
    free(s->to);
    free(s->names);
    free(s->description);
    json_decref(s->identifiers);
    free(s);
}

/* A text that is given, checked as a name or the beginning of one. */
static int take_name(json_t *value, const char *field, bool may_be_empty, char **out,
                     struct error *err)
{
    const char *text = NULL;
    int code = json_get_str(value, "value", field, &text, err);
    if (code != 0 || text == NULL)
        return code;
    if (!(may_be_empty && *text == '\0') &&
        (code = object_name_check(text, strlen(text), err)) != 0)
        return error_wrap(err, "field 'value.%s'", field);
    *out = xstrdup(text);
    return 0;
}

static int take_inputs(json_t *value, struct burn_spec *s, struct error *err)
{
    int code = take_name(value, "prefix", true, &s->prefix, err);
    if (code == 0)
        code = take_name(value, "csv", false, &s->csv, err);
    if (code == 0)
        code = take_name(value, "from", false, &s->from, err);
    if (code == 0 && s->prefix != NULL && s->csv != NULL)
        return error_set(err, E_SPEC, "only one of 'prefix' and 'csv' may be given");
    if (code == 0 && s->prefix == NULL && s->csv == NULL && s->from == NULL)
        return error_set(err, E_SPEC,
                         "one of 'prefix' and 'csv', or 'from', must be given (prefix \"\": all of "
                         "the bucket)");
    return code;
}

static int take_removals(json_t *value, struct burn_spec *s, struct error *err)
{
    json_t *paths = NULL, *path;
    size_t i;
    int code = json_get_array(value, "value", "remove", &paths, err);
    if (code != 0 || paths == NULL)
        return code;
    if (s->from == NULL)
        return error_set(err, E_SPEC, "field 'value.remove' needs 'from', an older image");
    json_array_foreach(paths, i, path)
    {
        if (!json_is_string(path))
            return error_set(err, E_JSON, "field 'value.remove[%zu]' must be a string", i);
    }
    s->remove = json_deep_copy(paths);
    return 0;
}

static int take_store(json_t *value, struct burn_spec *s, struct error *err)
{
    const char *store = "refer";
    int code = json_get_str(value, "value", "store", &store, err);
    if (code == 0)
        code = take_name(value, "base", false, &s->base, err);
    if (code != 0)
        return code;
    s->packs = strcmp(store, "pack") == 0;
    s->stores = s->packs || strcmp(store, "unique") == 0;
    if (!s->stores && strcmp(store, "refer") != 0)
        return error_set(err, E_SPEC,
                         "field 'value.store' is '%.32s': it must be refer, unique or pack", store);
    if (s->base != NULL && !s->stores)
        return error_set(err, E_SPEC, "field 'value.base' needs 'store' unique or pack");
    if (s->stores && s->unchecked)
        return error_set(err, E_SPEC,
                         "'check' false does not go with 'store' %s: the objects are read", store);
    return 0;
}

static int take_output(json_t *value, struct burn_spec *s, struct error *err)
{
    const char *to = NULL;
    int code = take_name(value, "image", false, &s->image, err);
    if (code == 0 && s->image == NULL)
        return error_set(err, E_SPEC, "field 'value.image', the image's name, is missing");
    if (code == 0 && s->image[strlen(s->image) - 1] == '/')
        return error_set(err, E_NAME, "field 'value.image': '%.100s' names no object", s->image);
    if (code == 0)
        code = json_get_str(value, "value", "to", &to, err);
    if (code == 0 && to != NULL && (code = bucket_name_check(to, err)) != 0)
        return error_wrap(err, "field 'value.to'");
    if (code == 0 && to != NULL)
        s->to = xstrdup(to);
    return code;
}

static int take_flags(json_t *value, struct burn_spec *s, struct error *err)
{
    bool check = true;
    int code;
    if ((code = json_get_bool(value, "value", "digest", &s->digest, err)) != 0 ||
        (code = json_get_bool(value, "value", "check", &check, err)) != 0 ||
        (code = json_get_bool(value, "value", "joliet", &s->joliet, err)) != 0 ||
        (code = json_get_bool(value, "value", "allow_empty", &s->allow_empty, err)) != 0)
        return code;
    s->unchecked = !check;
    s->dated = json_object_get(value, "date") != NULL;
    return json_get_i64(value, "value", "date", &s->date_s, err);
}

static int take_names(json_t *value, struct burn_spec *s, struct error *err)
{
    const char *names = "any";
    int code = json_get_str(value, "value", "names", &names, err);
    if (code != 0)
        return code;
    if (strcmp(names, "any") != 0 && strcmp(names, "portable") != 0 &&
        strcmp(names, "extended") != 0)
        return error_set(err, E_SPEC,
                         "field 'value.names' is '%.32s': it must be any, portable or extended",
                         names);
    s->names = xstrdup(names);
    return 0;
}

static int take_identifiers(json_t *value, struct burn_spec *s, struct error *err)
{
    const char *name;
    json_t *given = NULL, *text;
    int code = json_get_object(value, "value", "identifiers", &given, err);
    if (code != 0 || given == NULL)
        return code;
    json_object_foreach(given, name, text)
    {
        if (!json_is_string(text))
            return error_set(err, E_JSON, "field 'value.identifiers.%.32s' must be a string", name);
    }
    s->identifiers = json_deep_copy(given);
    return 0;
}

static int parse(json_t *value, struct burn_spec *s, struct error *err)
{
    static const char *const fields[] = {
        "prefix",      "csv",    "image", "to",   "digest",      "check",
        "joliet",      "names",  "date",  "from", "identifiers", "allow_empty",
        "description", "remove", "store", "base", NULL};
    const char *description = "";
    int code;
    if ((code = json_only_fields(value, "value", fields, err)) != 0 ||
        (code = take_inputs(value, s, err)) != 0 || (code = take_output(value, s, err)) != 0 ||
        (code = take_flags(value, s, err)) != 0 || (code = take_names(value, s, err)) != 0 ||
        (code = take_removals(value, s, err)) != 0 || (code = take_store(value, s, err)) != 0 ||
        (code = take_identifiers(value, s, err)) != 0 ||
        (code = json_get_str(value, "value", "description", &description, err)) != 0)
        return code;
    s->description = xstrdup(description);
    return 0;
}

int burn_spec_parse(json_t *value, struct burn_spec **out, struct error *err)
{
    _cleanup_(burn_spec_freep)
    struct burn_spec *s = xcalloc(1, sizeof *s);
    int code = parse(value, s, err);
    if (code == 0)
        *out = steal(s);
    return code;
}
