#include "xaction/objects_spec.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "common/internal_name.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/path.h"

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
    free(s->strip);
    free(s->archive);
    free(s->format);
    template_free(s->shards);
    free(s->path);
    free(s->node);
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

/* Its last name is its longest one, and all have the same characters but digits. */
static int check_last_name(const struct name_template *t, const char *field, struct error *err)
{
    _cleanup_buf_ struct buf last = BUF_INIT;
    template_name(t, template_count(t) - 1, &last);
    int r = object_name_check(buf_str(&last), last.len, err);
    return r != 0 ? error_wrap(err, "field '%s'", field) : 0;
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
    return check_last_name(t, "value.template", err);
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

#define SHARD_SIZE_MAX (UINT64_C(1) << 62) /* below JSON's greatest integer */

enum names { MUST_BE_GIVEN, MAY_BE_ALL, ARE_NOT_GIVEN };

static int parse_which(json_t *value, enum names rule, struct objects_spec *s, struct error *err)
{
    const char *template = NULL;
    const char *prefix = NULL;
    json_t *list = NULL;
    int r;
    s->which = OBJECTS_NONE;
    if (rule == ARE_NOT_GIVEN)
        return 0;
    if ((r = json_get_array(value, "value", "list", &list, err)) != 0 ||
        (r = json_get_str(value, "value", "template", &template, err)) != 0 ||
        (r = json_get_str(value, "value", "prefix", &prefix, err)) != 0)
        return r;
    int given = (list != NULL) + (template != NULL) + (prefix != NULL);
    if (given > 1)
        return error_set(err, E_SPEC, "only one of 'list', 'template' and 'prefix' may be given");
    if ((r = json_get_bool(value, "value", "internal", &s->internal, err)) != 0)
        return r;
    if (s->internal && prefix == NULL)
        return error_set(err, E_SPEC, "field 'value.internal' goes with 'prefix' alone");
    if (prefix == NULL && list == NULL && template == NULL)
        s->internal = true; /* the whole bucket */
    if (list != NULL)
        return parse_list(list, s, err);
    if (template != NULL)
        return parse_template(template, s, err);
    if (prefix == NULL && rule == MUST_BE_GIVEN)
        return error_set(err, E_SPEC, "one of 'list', 'template' and 'prefix' must be given");
    return parse_prefix(prefix != NULL ? prefix : "", s, err);
}

/* --- the fields of a kind --------------------------------------------------------------------- */

/* A text that begins names: the field's default is "". */
static int parse_beginning(json_t *value, const char *field, char **out, struct error *err)
{
    const char *text = "";
    int r = json_get_str(value, "value", field, &text, err);
    if (r == 0 && *text != '\0' && (r = object_name_check(text, strlen(text), err)) != 0)
        error_wrap(err, "field 'value.%s'", field);
    if (r == 0)
        *out = xstrdup(text);
    return r;
}

/* NULL where it may be left out, and is. */
static int parse_to(json_t *value, bool needed, char **out, struct error *err)
{
    const char *to = NULL;
    int r = needed ? json_need_str(value, "value", "to", &to, err)
                   : json_get_str(value, "value", "to", &to, err);
    if (r == 0 && to != NULL && (r = bucket_name_check(to, err)) != 0)
        error_wrap(err, "field 'value.to'");
    if (r == 0 && to != NULL)
        *out = xstrdup(to);
    return r;
}

static int parse_copy(json_t *value, struct objects_spec *s, struct error *err)
{
    int r = parse_to(value, true, &s->to, err);
    return r == 0 ? parse_beginning(value, "prepend", &s->prepend, err) : r;
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

/* --- archive ---------------------------------------------------------------------------------- */

static int check_shards(const struct name_template *t, struct error *err)
{
    if (template_kind(t) == TEMPLATE_PREFIX)
        return error_set(err, E_SPEC,
                         "field 'value.to.template': '%.128s' has no range, as "
                         "train-{00000..99999}.tar has; give one archive as 'archive'",
                         template_text(t));
    return check_last_name(t, "value.to.template", err);
}

static int parse_shard_size(json_t *value, struct objects_spec *s, struct error *err)
{
    int r = json_get_size(value, "value", "shard_size", &s->shard_size, err);
    if (r != 0)
        return r;
    if (s->shards == NULL && s->shard_size > 0)
        return error_set(err, E_SPEC, "field 'value.shard_size' goes with 'to.template' alone");
    if (s->shards != NULL && s->shard_size == 0)
        return error_set(err, E_SPEC,
                         "field 'value.shard_size' is missing: give the bytes of each shard, such "
                         "as \"256MiB\"");
    if (s->shard_size > SHARD_SIZE_MAX)
        return error_set(err, E_SPEC, "field 'value.shard_size' exceeds 4 EiB");
    return 0;
}

/* {"bucket", "template"}. */
static int parse_shards(json_t *to, struct objects_spec *s, struct error *err)
{
    static const char *const fields[] = {"bucket", "template", NULL};
    const char *bucket = NULL, *template = NULL;
    int r;
    if ((r = json_only_fields(to, "value.to", fields, err)) != 0 ||
        (r = json_get_str(to, "value.to", "bucket", &bucket, err)) != 0 ||
        (r = json_need_str(to, "value.to", "template", &template, err)) != 0)
        return r;
    if (bucket != NULL && (r = bucket_name_check(bucket, err)) != 0)
        return error_wrap(err, "field 'value.to.bucket'");
    s->to = bucket != NULL ? xstrdup(bucket) : NULL;
    if ((r = template_parse(template, &s->shards, err)) != 0)
        return error_wrap(err, "field 'value.to.template'");
    return check_shards(s->shards, err);
}

static int parse_archive_name(json_t *value, char **out, struct error *err)
{
    const char *name = NULL;
    int r = json_need_str(value, "value", "archive", &name, err);
    if (r == 0 && (r = object_name_check(name, strlen(name), err)) != 0)
        error_wrap(err, "field 'value.archive'");
    if (r == 0)
        *out = xstrdup(name);
    return r;
}

/* A name that lacks it might become another one's; none is left of a name that is no longer. */
static int check_stripped(const struct objects_spec *s, const char *name, struct error *err)
{
    size_t len = strlen(s->strip);
    if (len == 0 || (strncmp(name, s->strip, len) == 0 && name[len] != '\0'))
        return 0;
    return error_set(err, E_SPEC, "field 'value.strip': '%.128s' does not begin with '%.128s'",
                     name, s->strip);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A reader of the archive could not tell the members apart. */
static int check_list(const struct objects_spec *s, struct error *err)
{
    _cleanup_free_ char **sorted = xcalloc(s->name_count + 1, sizeof *sorted);
    int r = 0;
    memcpy(sorted, s->names, s->name_count * sizeof *sorted);
    qsort(sorted, s->name_count, sizeof *sorted, by_text);
    for (size_t i = 0; i < s->name_count && r == 0; i++) {
        if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            return error_set(err, E_SPEC, "field 'value.list' has '%.128s' twice", sorted[i]);
        r = check_stripped(s, sorted[i], err);
    }
    return r;
}

/* `what` begins all names; its first `len` bytes are in each of them. */
static int check_beginning(const struct objects_spec *s, const char *what, size_t len,
                           struct error *err)
{
    size_t strip = strlen(s->strip);
    if (strip <= len && strncmp(what, s->strip, strip) == 0)
        return 0;
    return error_set(err, E_SPEC,
                     "field 'value.strip': not all names of '%.128s' begin with '%.128s'", what,
                     s->strip);
}

static int check_strip(const struct objects_spec *s, struct error *err)
{
    const char *text;
    switch (s->which) {
    case OBJECTS_LIST:
        return check_list(s, err);
    case OBJECTS_TEMPLATE:
        text = template_text(s->name_template);
        return check_beginning(s, text, strcspn(text, "{@"), err);
    case OBJECTS_PREFIX:
    case OBJECTS_NONE:
        break;
    }
    return check_beginning(s, s->prefix, strlen(s->prefix), err);
}

static int parse_outputs(json_t *value, struct objects_spec *s, struct error *err)
{
    json_t *to = json_object_get(value, "to");
    int r = json_is_object(to) ? parse_shards(to, s, err) : parse_to(value, false, &s->to, err);
    if (r != 0)
        return r;
    if (s->shards == NULL)
        r = parse_archive_name(value, &s->archive, err);
    else if (json_is_string(json_object_get(value, "archive")))
        r = error_set(err, E_SPEC, "only one of 'archive' and 'to.template' may be given");
    return r == 0 ? parse_shard_size(value, s, err) : r;
}

static int parse_members(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *names = "full";
    int r = json_get_str(value, "value", "names", &names, err);
    if (r != 0)
        return r;
    s->bare_members = strcmp(names, "base") == 0;
    if (s->bare_members || strcmp(names, "full") == 0)
        return 0;
    return error_set(err, E_SPEC, "field 'value.names' is '%.32s': it must be full or base", names);
}

static int parse_order(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *order = "name";
    int r = json_get_str(value, "value", "order", &order, err);
    if (r != 0)
        return r;
    s->shuffles = strcmp(order, "shuffle") == 0;
    s->seed_given = json_object_get(value, "seed") != NULL;
    if (!s->shuffles && strcmp(order, "name") != 0)
        return error_set(err, E_SPEC, "field 'value.order' is '%.32s': it must be name or shuffle",
                         order);
    if (!s->shuffles && s->seed_given)
        return error_set(err, E_SPEC, "field 'value.seed' goes with the order 'shuffle' alone");
    return json_get_u64(value, "value", "seed", &s->seed, err);
}

static int parse_archive(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *format = NULL;
    int r;
    s->makes = true;
    if ((r = parse_outputs(value, s, err)) != 0 || (r = parse_members(value, s, err)) != 0 ||
        (r = parse_order(value, s, err)) != 0 ||
        (r = json_get_str(value, "value", "format", &format, err)) != 0 ||
        (r = parse_beginning(value, "prepend", &s->prepend, err)) != 0 ||
        (r = parse_beginning(value, "strip", &s->strip, err)) != 0)
        return r;
    if (format != NULL)
        s->format = xstrdup(format);
    return check_strip(s, err);
}

/* --- the table -------------------------------------------------------------------------------- */

static int parse_unarchive(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *names = "archive";
    int r;
    s->makes = true;
    if ((r = parse_to(value, false, &s->to, err)) != 0 ||
        (r = parse_beginning(value, "prepend", &s->prepend, err)) != 0 ||
        (r = json_get_str(value, "value", "names", &names, err)) != 0)
        return r;
    s->bare_members = strcmp(names, "member") == 0;
    if (s->bare_members || strcmp(names, "archive") == 0)
        return 0;
    return error_set(err, E_SPEC, "field 'value.names' is '%.32s': it must be archive or member",
                     names);
}

static int parse_promote(json_t *value, struct objects_spec *s, struct error *err)
{
    const char *path = NULL, *node = NULL;
    int r;
    if ((r = json_need_str(value, "value", "path", &path, err)) != 0 ||
        (r = json_get_str(value, "value", "node", &node, err)) != 0 ||
        (r = parse_beginning(value, "prepend", &s->prepend, err)) != 0 ||
        (r = json_get_bool(value, "value", "overwrite", &s->overwrites, err)) != 0 ||
        (r = json_get_bool(value, "value", "move", &s->moves, err)) != 0)
        return r;
    const char *flaw = *path == '/' ? path_flaw(path + 1) : "no slash at its beginning";
    if (flaw != NULL)
        return error_set(err, E_SPEC, "field 'value.path': '%.512s' has %s", path, flaw);
    s->path = xstrdup(path);
    s->node = node != NULL ? xstrdup(node) : NULL;
    return 0;
}

struct row {
    const char *kind;
    const char *fields[20]; /* all that the request may have; NULL-terminated */
    enum names names;       /* of objects */
    /* Reads the fields of the kind's own.  NULL: it has none. */
    int (*parse)(json_t *value, struct objects_spec *s, struct error *err);
};

#define COMMON_FIELDS "list", "template", "prefix", "internal", "description", "allow_empty"

/* The kinds that take more … */
static const struct row rows[] = {
    {"copy", {COMMON_FIELDS, "to", "prepend"}, MAY_BE_ALL, parse_copy},
    {"prefetch", {COMMON_FIELDS, "parallel", "rate"}, MAY_BE_ALL, parse_prefetch},
    {"archive",
     {COMMON_FIELDS, "to", "archive", "format", "prepend", "strip", "shard_size", "names", "order",
      "seed"},
     MUST_BE_GIVEN,
     parse_archive},
    {"unarchive", {COMMON_FIELDS, "to", "prepend", "names"}, MUST_BE_GIVEN, parse_unarchive},
    {"promote",
     {"path", "node", "prepend", "overwrite", "move", "description", "allow_empty"},
     ARE_NOT_GIVEN,
     parse_promote},
};
/* … and all others. */
static const struct row common = {NULL, {COMMON_FIELDS}, MUST_BE_GIVEN, NULL};

static const struct row *row_of(const char *kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].kind, kind) == 0)
            return &rows[i];
    }
    return &common;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int spec_parse(const char *kind, json_t *value, struct objects_spec *s, struct error *err)
{
    const struct row *row = row_of(kind);
    const char *description = "";
    int r;
    if ((r = json_only_fields(value, "value", row->fields, err)) != 0 ||
        (r = json_get_str(value, "value", "description", &description, err)) != 0 ||
        (r = json_get_bool(value, "value", "allow_empty", &s->allow_empty, err)) != 0 ||
        (r = parse_which(value, row->names, s, err)) != 0)
        return r;
    s->description = xstrdup(description);
    return row->parse != NULL ? row->parse(value, s, err) : 0;
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

const char *objects_spec_to(const struct objects_spec *s, const char *bucket)
{
    return s->to == NULL && s->makes ? bucket : s->to;
}

const char *objects_spec_begins(const struct objects_spec *s)
{
    if (s->shards != NULL)
        return template_prefix(s->shards);
    return s->archive != NULL ? s->archive : s->prepend;
}

bool objects_spec_skips_internal(const struct objects_spec *s)
{
    return !s->internal && !name_is_internal(s->prefix);
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
