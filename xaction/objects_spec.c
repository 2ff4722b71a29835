#include "xaction/objects_spec.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "common/jsonx.h"
#include "common/mem.h"

void objects_spec_free(struct objects_spec *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->name_count; i++)
        free(s->names[i]);
    free(s->names);
    template_free(s->name_template);
    free(s->prefix);
    free(s->to);
    free(s->prepend);
    free(s->description);
    free(s);
}

/* --- which objects ---------------------------------------------------------------------------- */

static int parse_list(json_t *list, struct objects_spec *s, struct error *err)
{
    size_t count = json_array_size(list);
    s->which = OBJECTS_LIST;
    s->names = xcalloc(count + 1, sizeof *s->names);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(item);
        if (name == NULL)
            return error_set(err, E_JSON, "field 'value.list[%zu]' must be a string", i);
        if (object_name_check(name, json_string_length(item), err) != 0)
            return error_wrap(err, "field 'value.list[%zu]'", i);
        s->names[s->name_count++] = xstrdup(name);
    }
    return 0;
}

static int check_template(const struct name_template *t, struct error *err)
{
    switch (template_kind(t)) {
    case TEMPLATE_PREFIX:
        return error_set(err, E_SPEC,
                         "field 'value.template': '%s' has no range, as name-{00..31} has; name "
                         "objects in 'list', or give their beginning as 'prefix'",
                         template_text(t));
    case TEMPLATE_FMT:
        return error_set(err, E_SPEC,
                         "field 'value.template': '%s' has no end; write name-{00..31} or "
                         "name-@31",
                         template_text(t));
    case TEMPLATE_BASH:
    case TEMPLATE_AT:
        break;
    }
    if (template_count(t) > OBJECTS_NAMES_MAX)
        return error_set(err, E_SPEC,
                         "field 'value.template': '%s' makes %llu names, more than %d; give a "
                         "prefix, or do it in parts",
                         template_text(t), (unsigned long long)template_count(t),
                         OBJECTS_NAMES_MAX);
    return 0;
}

static int parse_template(const char *text, struct objects_spec *s, struct error *err)
{
    s->which = OBJECTS_TEMPLATE;
    if (template_parse(text, &s->name_template, err) != 0)
        return error_wrap(err, "field 'value.template'");
    return check_template(s->name_template, err);
}

static int parse_prefix(const char *text, struct objects_spec *s, struct error *err)
{
    s->which = OBJECTS_PREFIX;
    s->prefix = xstrdup(text);
    if (*text != '\0' && object_name_check(text, strlen(text), err) != 0)
        return error_wrap(err, "field 'value.prefix'");
    return 0;
}

static int parse_which(json_t *value, bool may_be_all, struct objects_spec *s, struct error *err)
{
    const char *template = NULL;
    const char *prefix = NULL;
    json_t *list = NULL;
    int r;
    if ((r = json_get_array(value, "value", "list", &list, err)) != 0 ||
        (r = json_get_str(value, "value", "template", &template, err)) != 0 ||
        (r = json_get_str(value, "value", "prefix", &prefix, err)) != 0)
        return r;
    int given = (list != NULL) + (template != NULL) + (prefix != NULL);
    if (given > 1)
        return error_set(err, E_SPEC, "only one of 'list', 'template' and 'prefix' may be given");
    if (list != NULL)
        return parse_list(list, s, err);
    if (template != NULL)
        return parse_template(template, s, err);
    if (prefix == NULL && !may_be_all)
        return error_set(err, E_SPEC, "one of 'list', 'template' and 'prefix' must be given");
    return parse_prefix(prefix != NULL ? prefix : "", s, err);
}

/* --- the rest --------------------------------------------------------------------------------- */

static int parse_copy(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *to = NULL;
    const char *prepend = "";
    int r;
    if ((r = json_need_str(value, "value", "to", &to, err)) != 0 ||
        (r = json_get_str(value, "value", "prepend", &prepend, err)) != 0)
        return r;
    if (bucket_name_check(to, err) != 0)
        return error_wrap(err, "field 'value.to'");
    if (*prepend != '\0' && object_name_check(prepend, strlen(prepend), err) != 0)
        return error_wrap(err, "field 'value.prepend'");
    s->to = xstrdup(to);
    s->prepend = xstrdup(prepend);
    return 0;
}

int objects_parse_speed(json_t *value, uint64_t *parallel, uint64_t *rate_bytes_s,
                        struct error *err)
{
    int r;
    *parallel = *rate_bytes_s = 0;
    if ((r = json_get_u64(value, "value", "parallel", parallel, err)) != 0 ||
        (r = json_get_size(value, "value", "rate", rate_bytes_s, err)) != 0)
        return r;
    if (*parallel > OBJECTS_PARALLEL_MAX)
        return error_set(err, E_SPEC, "field 'value.parallel' is at most %d", OBJECTS_PARALLEL_MAX);
    return 0;
}

static int parse_prefetch(json_t *value, struct objects_spec *s, struct error *err)
{
    return objects_parse_speed(value, &s->parallel, &s->rate_bytes_s, err);
}

static int parse_no_more(json_t *value, struct objects_spec *s, struct error *err)
{
    (void)value;
    (void)s;
    (void)err;
    return 0;
}

#define COMMON_FIELDS "list", "template", "prefix", "description", "allow_empty"

struct row {
    const char *kind;
    const char *fields[10];
    bool may_be_all;
    int (*parse)(json_t *value, struct objects_spec *s, struct error *err);
};

/* The kinds that take more … */
static const struct row rows[] = {
    {"copy", {COMMON_FIELDS, "to", "prepend"}, true, parse_copy},
    {"prefetch", {COMMON_FIELDS, "parallel", "rate"}, true, parse_prefetch},
};
/* … and all others. */
static const struct row common = {NULL, {COMMON_FIELDS}, false, parse_no_more};

static const struct row *row_of(const char *kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].kind, kind) == 0)
            return &rows[i];
    }
    return &common;
}

static int spec_parse(const char *kind, json_t *value, struct objects_spec *s, struct error *err)
{
    const struct row *row = row_of(kind);
    const char *description = "";
    int r;
    if ((r = json_only_fields(value, "value", row->fields, err)) != 0 ||
        (r = json_get_str(value, "value", "description", &description, err)) != 0 ||
        (r = json_get_bool(value, "value", "allow_empty", &s->allow_empty, err)) != 0 ||
        (r = parse_which(value, row->may_be_all, s, err)) != 0)
        return r;
    s->description = xstrdup(description);
    return row->parse(value, s, err);
}

int objects_spec_parse(const char *kind, json_t *value, struct objects_spec **out,
                       struct error *err)
{
    _cleanup_(objects_spec_freep)
    struct objects_spec *s = xcalloc(1, sizeof *s);
    int r = spec_parse(kind, value, s, err);
    if (r == 0)
        *out = steal(s);
    return r;
}

uint64_t objects_spec_count(const struct objects_spec *s)
{
    return s->which == OBJECTS_TEMPLATE ? template_count(s->name_template) : s->name_count;
}

const char *objects_spec_name(const struct objects_spec *s, uint64_t i, struct buf *buf)
{
    if (s->which == OBJECTS_LIST)
        return s->names[i];
    buf_clear(buf);
    template_name(s->name_template, i, buf);
    return buf_str(buf);
}

/* --- the plan --------------------------------------------------------------------------------- */

json_t *objects_plan_json(const struct objects_plan *p)
{
    json_t *doc = json_pack("{s:I, s:I, s:I}", "input_bucket_id", (json_int_t)p->input_bucket_id,
                            "term", (json_int_t)p->term, "version", (json_int_t)p->version);
    if (p->output_bucket_id != 0)
        json_object_set_new(doc, "output_bucket_id", json_integer((json_int_t)p->output_bucket_id));
    return doc;
}

int objects_plan_parse(json_t *doc, struct objects_plan *out, struct error *err)
{
    int r;
    *out = (struct objects_plan){0};
    if ((r = json_need_u64(doc, "plan", "input_bucket_id", &out->input_bucket_id, err)) != 0 ||
        (r = json_get_u64(doc, "plan", "output_bucket_id", &out->output_bucket_id, err)) != 0 ||
        (r = json_need_u64(doc, "plan", "term", &out->term, err)) != 0)
        return r;
    return json_need_u64(doc, "plan", "version", &out->version, err);
}
