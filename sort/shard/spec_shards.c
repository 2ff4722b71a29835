/* The fields that name shards: what is read, what is made, and their extensions. */
#include "sort/spec/spec.h"

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "sort/shard/format.h"
#include "sort/spec/spec_parts.h"

#define NAME_MAX_BYTES 1024 /* of an object */

static int check_name(const char *field, const char *name, struct error *err)
{
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX_BYTES || !utf8_valid(name, len))
        return error_set(err, E_SPEC,
                         "field '%s': an object's name has 1 to %d bytes of UTF-8, not %zu", field,
                         NAME_MAX_BYTES, len);
    return 0;
}

/* --- extensions ------------------------------------------------------------------------------- */

static int extension_check(const char *field, const char *extension, struct error *err)
{
    if (format_of_extension(extension) != NULL)
        return 0;
    return error_set(err, E_SPEC, "field '%s': '%s' is not an archive's extension (%s)", field,
                     extension, format_extensions());
}

/* A field's extension, else that of the text of another field, else the default. */
static int extension_choose(const char *field, const char *given, const char *text_field,
                            const char *text, const char *fallback, char **out, struct error *err)
{
    const char *chosen = given;
    const char *blame = field;
    if (chosen[0] == '\0') {
        chosen = text == NULL ? NULL : format_extension_of(text);
        blame = text_field;
    }
    if (chosen == NULL)
        chosen = fallback;
    int rc = extension_check(blame, chosen, err);
    if (rc == 0)
        *out = xstrdup(chosen);
    return rc;
}

/* The text with the extension: appended where it has none, an error where it has another, also one
 * of an archive that no format reads: "x.rar.tar" would be no tar to its readers. */
static int extension_apply(const char *field, const char *text, const char *extension, char **out,
                           struct error *err)
{
    const char *there = format_extension_of(text);
    if (there != NULL && strcmp(there, extension) != 0)
        return error_set(err, E_SPEC, "field '%s': '%s' does not end with '%s'", field, text,
                         extension);
    const char *foreign = there != NULL ? NULL : format_foreign_extension_of(text);
    if (foreign != NULL)
        return extension_check(field, foreign, err);
    *out = there != NULL ? xstrdup(text) : xprintf("%s%s", text, extension);
    return 0;
}

/* --- input ------------------------------------------------------------------------------------ */

struct input {
    const char *field;
    const char *template; /* one of these three */
    const char *prefix;
    json_t *names;
};

static int parse_input_object(json_t *obj, struct input *in, struct error *err)
{
    static const char *const allowed[] = {"template", "objnames", "prefix", NULL};
    int rc = json_only_fields(obj, "input_format", allowed, err);
    if (rc == 0)
        rc = json_get_str(obj, "input_format", "template", &in->template, err);
    if (rc == 0)
        rc = json_get_str(obj, "input_format", "prefix", &in->prefix, err);
    if (rc == 0)
        rc = json_get_array(obj, "input_format", "objnames", &in->names, err);
    if (rc != 0)
        return rc;
    /* AIStore's clients send the forms that they do not use as empty ones. */
    if (in->template != NULL && in->template[0] == '\0')
        in->template = NULL;
    if (in->names != NULL && json_array_size(in->names) == 0)
        in->names = NULL;
    if ((in->template != NULL) + (in->prefix != NULL) + (in->names != NULL) != 1)
        return error_set(err, E_SPEC,
                         "field 'input_format' must have one of 'template', 'objnames', 'prefix'");
    in->field = in->template != NULL ? "input_format.template"
                : in->prefix != NULL ? "input_format.prefix"
                                     : "input_format.objnames";
    return 0;
}

static int parse_input_form(json_t *doc, struct input *in, struct error *err)
{
    json_t *v = json_object_get(doc, "input_format");
    if (v == NULL || json_is_null(v))
        return error_set(err, E_SPEC, "field 'input_format' is missing");
    if (json_is_object(v))
        return parse_input_object(v, in, err);
    if (!json_is_string(v) || json_string_length(v) == 0)
        return error_set(err, E_SPEC,
                         "field 'input_format' must be a template, or an object with 'template', "
                         "'objnames' or 'prefix'");
    in->template = json_string_value(v);
    in->field = "input_format";
    return 0;
}

static int check_template_names(const char *field, const struct name_template *t, struct error *err)
{
    uint64_t count = template_count(t);
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    template_name(t, count - 1, &name);
    return check_name(field, buf_str(&name), err);
}

static int parse_input_template(struct sort_spec *s, const char *field, const char *text,
                                struct error *err)
{
    s->input_kind = SORT_INPUT_TEMPLATE;
    int rc = template_parse(text, &s->input_template, err);
    if (rc != 0)
        return error_wrap(err, "field '%s'", field);
    uint64_t count = template_count(s->input_template);
    if (template_kind(s->input_template) == TEMPLATE_FMT)
        return error_set(err, E_SPEC, "field '%s': '%s' has no end; say where the input ends",
                         field, text);
    if (count > SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "field '%s': '%s' names %llu shards; the limit is %u", field,
                         text, (unsigned long long)count, SORT_SHARDS_MAX);
    return check_template_names(field, s->input_template, err);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_names_differ(const struct sort_spec *s, const char *field, struct error *err)
{
    _cleanup_free_ char **sorted = xcalloc(s->input_name_count, sizeof *sorted);
    memcpy(sorted, s->input_names, s->input_name_count * sizeof *sorted);
    qsort(sorted, s->input_name_count, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < s->input_name_count; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return error_set(err, E_SPEC, "field '%s' names '%s' twice", field, sorted[i]);
    }
    return 0;
}

static int parse_input_names(struct sort_spec *s, const char *field, json_t *names,
                             struct error *err)
{
    s->input_kind = SORT_INPUT_LIST;
    size_t count = json_array_size(names);
    if (count > SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "field '%s' names %zu shards; the limit is %u", field, count,
                         SORT_SHARDS_MAX);
    s->input_names = xcalloc(count, sizeof *s->input_names);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(names, i));
        if (text == NULL)
            return error_set(err, E_SPEC, "field '%s' must hold strings", field);
        int rc = check_name(field, text, err);
        if (rc == 0)
            rc = extension_apply(field, text, s->input_extension, &s->input_names[i], err);
        if (rc != 0)
            return rc;
        s->input_name_count++;
        rc = check_name(field, s->input_names[i], err); /* with the extension */
        if (rc != 0)
            return rc;
    }
    return check_names_differ(s, field, err);
}

/* AIStore's "train/shard*" is the prefix without its star. */
static int parse_input_prefix(struct sort_spec *s, const char *field, const char *prefix,
                              bool starred, struct error *err)
{
    s->input_kind = SORT_INPUT_PREFIX;
    size_t len = strlen(prefix);
    if (len > NAME_MAX_BYTES || !utf8_valid(prefix, len))
        return error_set(err, E_SPEC, "field '%s' must be at most %d bytes of UTF-8", field,
                         NAME_MAX_BYTES);
    if (starred && len > 0 && prefix[len - 1] == '*')
        len--;
    s->input_prefix = xstrndup(prefix, len);
    return 0;
}

/* Whether a text has a range in it; one without is a prefix. */
static int has_range(const char *field, const char *text, bool *has, struct error *err)
{
    struct name_template *t = NULL;
    int rc = template_parse(text, &t, err);
    if (rc != 0)
        return error_wrap(err, "field '%s'", field);
    *has = template_kind(t) != TEMPLATE_PREFIX;
    template_free(t);
    return 0;
}

static int parse_input_text(struct sort_spec *s, const struct input *in, struct error *err)
{
    bool ranged = false;
    int rc = has_range(in->field, in->template, &ranged, err);
    if (rc != 0)
        return rc;
    if (!ranged)
        return parse_input_prefix(s, in->field, in->template, true, err);
    _cleanup_free_ char *text = NULL;
    rc = extension_apply(in->field, in->template, s->input_extension, &text, err);
    return rc != 0 ? rc : parse_input_template(s, in->field, text, err);
}

int spec_parse_input(json_t *doc, struct sort_spec *s, struct error *err)
{
    struct input in = {0};
    const char *given = "";
    const char *old = "";
    int rc = parse_input_form(doc, &in, err);
    if (rc == 0)
        rc = json_get_str(doc, "", "extension", &old, err);
    if (rc == 0)
        rc = json_get_str(doc, "", "input_extension", &given, err);
    if (rc != 0)
        return rc;
    if (given[0] != '\0' && old[0] != '\0' && strcmp(given, old) != 0)
        return error_set(err, E_SPEC, "field 'extension' (input_extension) is given twice");
    const char *field = given[0] == '\0' ? "extension" : "input_extension";
    if (given[0] == '\0')
        given = old;
    rc = extension_choose(field, given, in.field, in.template, ".tar", &s->input_extension, err);
    if (rc != 0)
        return rc;
    s->input_shards = format_of_extension(s->input_extension);
    if (in.template != NULL)
        return parse_input_text(s, &in, err);
    if (in.names != NULL)
        return parse_input_names(s, in.field, in.names, err);
    return parse_input_prefix(s, in.field, in.prefix, false, err);
}

/* --- output ----------------------------------------------------------------------------------- */

int spec_output_template(const char *field, const char *text, const char *extension,
                         struct name_template **out, struct error *err)
{
    _cleanup_free_ char *whole = NULL;
    _cleanup_(template_freep)
    struct name_template *t = NULL;
    int rc = extension_apply(field, text, extension, &whole, err);
    if (rc != 0)
        return rc;
    rc = template_parse(whole, &t, err);
    if (rc != 0)
        return error_wrap(err, "field '%s'", field);
    if (template_kind(t) == TEMPLATE_PREFIX)
        return error_set(err, E_SPEC,
                         "field '%s': '%s' has no range, such as %%06d or {0000..9999}", field,
                         whole);
    rc = check_template_names(field, t, err);
    if (rc == 0)
        *out = steal(t);
    return rc;
}

static int parse_output_size(json_t *doc, struct sort_spec *s, struct error *err)
{
    static const char field[] = "output_shard_size";
    if (!spec_is_blank(json_object_get(doc, field))) {
        int rc = json_get_size(doc, "", field, &s->output_shard_size, err);
        if (rc != 0)
            return rc;
    }
    if (s->output_shard_size > SPEC_SIZE_MAX)
        return error_set(err, E_SPEC, "field '%s' exceeds 4 EiB", field);
    if (s->output_shard_size == 0 && s->ekm_file != NULL)
        return error_set(err, E_SPEC, "field '%s' is needed with 'ekm_file'", field);
    if (s->output_shard_size == 0 && template_kind(s->output_template) == TEMPLATE_FMT)
        return error_set(err, E_SPEC,
                         "field '%s' is needed, since '%s' does not say how many shards there are",
                         field, template_text(s->output_template));
    return 0;
}

/* No shard ends so, nor an index of one. */
static bool names_index(const char *name)
{
    size_t len = strlen(name);
    return len > 5 && strcmp(name + len - 5, ".json") == 0;
}

static int parse_indexes(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *wids = "";
    int rc = json_get_str(doc, "", "wids_index", &wids, err);
    if (rc == 0)
        rc = json_get_bool(doc, "", "dali_indexes", &s->dali_indexes, err);
    if (rc == 0 && s->dali_indexes && s->output_shards->encoder_new != NULL)
        return error_set(err, E_SPEC,
                         "field 'dali_indexes': DALI reads plain tars (.tar), not '%s'",
                         s->output_extension);
    if (rc != 0 || wids[0] == '\0')
        return rc;
    if (!names_index(wids))
        return error_set(err, E_SPEC,
                         "field 'wids_index': '%s' is no object's name that ends with "
                         "'.json'",
                         wids);
    s->wids_index = xstrdup(wids);
    return check_name("wids_index", wids, err);
}

int spec_parse_output(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *text = NULL;
    const char *given = "";
    int rc = s->ekm_file != NULL ? 0 : json_need_str(doc, "", "output_format", &text, err);
    if (rc == 0)
        rc = json_get_str(doc, "", "output_extension", &given, err);
    if (rc == 0)
        rc = extension_choose("output_extension", given, "output_format", text, s->input_extension,
                              &s->output_extension, err);
    if (rc != 0)
        return rc;
    s->output_shards = format_of_extension(s->output_extension);
    if (s->output_shards->read_only)
        return error_set(err, E_SPEC,
                         "field 'output_extension': '%s' is an input's alone: set it to one of %s",
                         s->output_extension, format_output_extensions());
    if (text != NULL)
        rc = spec_output_template("output_format", text, s->output_extension, &s->output_template,
                                  err);
    if (rc == 0)
        rc = parse_output_size(doc, s, err);
    return rc != 0 ? rc : parse_indexes(doc, s, err);
}
