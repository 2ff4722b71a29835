/* The request: one function per group of fields, in a table; each sees the whole document and the
 * spec so far, so that later groups may lean on earlier ones (the output's extension on the
 * input's). */
#include "sort/spec/spec.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "sort/spec/spec_parts.h"

/* Every field of the document, and those that this release refuses unless they are empty. */
static const char *const fields[] = {"input_bck",
                                     "output_bck",
                                     "bck",
                                     "input_format",
                                     "input_extension",
                                     "extension",
                                     "output_format",
                                     "output_extension",
                                     "output_shard_size",
                                     "wids_index",
                                     "dali_indexes",
                                     "algorithm",
                                     "key_rule",
                                     "max_mem_usage",
                                     "extract_concurrency_max_limit",
                                     "create_concurrency_max_limit",
                                     "dry_run",
                                     "allow_empty",
                                     "description",
                                     "config",
                                     "missing_shards",
                                     "unreadable_shards",
                                     "missing_keys",
                                     "duplicated_records",
                                     "duplicated_output_records",
                                     "ekm_file",
                                     "ekm_file_sep",
                                     "ekm_keys",
                                     "ekm_malformed_line",
                                     "ekm_missing_key",
                                     "order_file",
                                     "order_file_sep",
                                     "dsorter_type",
                                     "stream_multiplier",
                                     "extended_metrics",
                                     NULL};
static const char *const refused_fields[] = {"dsorter_type", "stream_multiplier",
                                             "extended_metrics", NULL};

static const char *const config_fields[] = {"missing_shards",
                                            "unreadable_shards",
                                            "duplicated_records",
                                            "duplicated_output_records",
                                            "ekm_malformed_line",
                                            "ekm_missing_key",
                                            "default_max_mem_usage",
                                            "dsorter_mem_threshold",
                                            "call_timeout",
                                            "compression",
                                            "bundle_multiplier",
                                            "missing_keys",
                                            NULL};
static const char *const refused_config_fields[] = {
    "default_max_mem_usage", "dsorter_mem_threshold", "call_timeout",
    "compression",           "bundle_multiplier",     NULL};

static const char *const algorithm_fields[] = {
    "kind", "decreasing", "seed", "extension", "content_key_type", "format_type", NULL};
static const char *const refused_algorithm_fields[] = {"format_type", NULL};

/* What says the same as a field that is not there. */
bool spec_is_blank(const json_t *v)
{
    switch (v == NULL ? JSON_NULL : json_typeof(v)) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_STRING:
        return json_string_length(v) == 0;
    case JSON_INTEGER:
        return json_integer_value(v) == 0;
    case JSON_OBJECT:
        return json_object_size(v) == 0;
    default:
        return false;
    }
}

int spec_check_fields(json_t *obj, const char *path, const char *const *allowed,
                      const char *const *refused, struct error *err)
{
    int rc = json_only_fields(obj, path, allowed, err);
    if (rc != 0)
        return rc;
    for (; *refused != NULL; refused++) {
        if (!spec_is_blank(json_object_get(obj, *refused)))
            return error_set(err, E_UNSUPPORTED, "field '%s%s%s' is not supported by this release",
                             path, path[0] != '\0' ? "." : "", *refused);
    }
    return 0;
}

/* --- buckets ---------------------------------------------------------------------------------- */

static int check_provider(const char *path, json_t *obj, struct error *err)
{
    const char *provider = "";
    int rc = json_get_str(obj, path, "provider", &provider, err);
    if (rc != 0)
        return rc;
    if (strcmp(provider, "") != 0 && strcmp(provider, "ais") != 0 && strcmp(provider, "dfc") != 0)
        return error_set(err, E_UNSUPPORTED,
                         "field '%s.provider': '%s' is not supported by this release (ais, dfc)",
                         path, provider);
    return 0;
}

static int parse_bucket_object(json_t *obj, const char *field, const char **name, struct error *err)
{
    static const char *const allowed[] = {"name", "provider", "namespace", NULL};
    static const char *const refused[] = {"namespace", NULL};
    int rc = spec_check_fields(obj, field, allowed, refused, err);
    if (rc == 0)
        rc = check_provider(field, obj, err);
    if (rc == 0)
        rc = json_need_str(obj, field, "name", name, err);
    return rc;
}

/* *name stays as it is where the field is absent. */
static int parse_bucket(json_t *doc, const char *field, char **name, struct error *err)
{
    json_t *v = json_object_get(doc, field);
    if (spec_is_blank(v))
        return 0;
    const char *text = json_string_value(v);
    if (json_is_object(v)) {
        int rc = parse_bucket_object(v, field, &text, err);
        if (rc != 0)
            return rc;
    } else if (text == NULL) {
        return error_set(err, E_SPEC, "field '%s' must be a name or {\"name\": …}", field);
    }
    if (text[0] == '\0')
        return error_set(err, E_SPEC, "field '%s' names no bucket", field);
    if (*name != NULL && strcmp(*name, text) != 0)
        return error_set(err, E_SPEC, "field '%s' is given twice, differently", field);
    free(*name);
    *name = xstrdup(text);
    return 0;
}

static int parse_buckets(json_t *doc, struct sort_spec *s, struct error *err)
{
    int rc = parse_bucket(doc, "bck", &s->input_bucket, err); /* its name until 2020 */
    if (rc == 0)
        rc = parse_bucket(doc, "input_bck", &s->input_bucket, err);
    if (rc == 0)
        rc = parse_bucket(doc, "output_bck", &s->output_bucket, err);
    if (rc != 0)
        return rc;
    if (s->input_bucket == NULL)
        return error_set(err, E_SPEC, "field 'input_bck' is missing");
    if (s->output_bucket == NULL)
        s->output_bucket = xstrdup(s->input_bucket);
    return 0;
}

/* --- order ------------------------------------------------------------------------------------ */

#define ALGORITHMS "alphanumeric, shuffle, none, md5, natural, content"

static int parse_kind(const char *kind, enum sort_algorithm *out, struct error *err)
{
    if (kind[0] == '\0')
        return 0;
    for (int i = SORT_ALPHANUMERIC; i <= SORT_CONTENT; i++) {
        if (strcmp(kind, spec_algorithm_names[i]) == 0) {
            *out = (enum sort_algorithm)i;
            return 0;
        }
    }
    return error_set(err, E_SPEC, "field 'algorithm.kind': '%s' is no algorithm (" ALGORITHMS ")",
                     kind);
}

static int parse_content_type(const char *text, enum sort_content_type *out, struct error *err)
{
    for (int i = SORT_CONTENT_INT; i <= SORT_CONTENT_STRING; i++) {
        if (strcmp(text, spec_content_names[i]) == 0) {
            *out = (enum sort_content_type)i;
            return 0;
        }
    }
    return error_set(err, E_SPEC,
                     "field 'algorithm.content_key_type': '%s' is not one of int, float, string",
                     text);
}

static int parse_content(json_t *algorithm, struct sort_spec *s, struct error *err)
{
    const char *extension = "";
    const char *type = "";
    int rc = json_get_str(algorithm, "algorithm", "extension", &extension, err);
    if (rc == 0)
        rc = json_get_str(algorithm, "algorithm", "content_key_type", &type, err);
    if (rc != 0)
        return rc;
    if (s->algorithm != SORT_CONTENT)
        return extension[0] == '\0' && type[0] == '\0'
                   ? 0
                   : error_set(err, E_SPEC,
                               "fields 'algorithm.extension' and 'algorithm.content_key_type' go "
                               "with 'content' alone");
    if (extension[0] == '\0')
        return error_set(err, E_SPEC,
                         "field 'algorithm.extension' is missing: which member holds the key, such "
                         "as '.cls'?");
    if (extension[0] != '.' || strchr(extension, '/') != NULL)
        return error_set(
            err, E_SPEC,
            "field 'algorithm.extension': '%s' is not an extension such as '.cls': it must begin "
            "with a dot and have no slash",
            extension);
    s->content_extension = xstrdup(extension);
    return parse_content_type(type, &s->content_type, err);
}

static int parse_seed(json_t *algorithm, struct sort_spec *s, struct error *err)
{
    json_t *v = json_object_get(algorithm, "seed");
    if (v == NULL || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0))
        return 0;
    s->seed_given = true;
    if (json_is_string(v)) {
        if (parse_u64(json_string_value(v), &s->seed, err) != 0)
            return error_recode(err, E_SPEC, "field 'algorithm.seed'");
        return 0;
    }
    return json_get_u64(algorithm, "algorithm", "seed", &s->seed, err);
}

static int parse_algorithm(json_t *doc, struct sort_spec *s, struct error *err)
{
    json_t *a = NULL;
    const char *kind = "";
    int rc = json_get_object(doc, "", "algorithm", &a, err);
    if (rc != 0 || a == NULL)
        return rc;
    rc = json_get_str(a, "algorithm", "kind", &kind, err);
    if (rc == 0)
        rc = parse_kind(kind, &s->algorithm, err);
    if (rc == 0)
        rc = spec_check_fields(a, "algorithm", algorithm_fields, refused_algorithm_fields, err);
    if (rc == 0)
        rc = json_get_bool(a, "algorithm", "decreasing", &s->decreasing, err);
    if (rc == 0)
        rc = parse_seed(a, s, err);
    if (rc == 0)
        rc = parse_content(a, s, err);
    if (rc != 0)
        return rc;
    if (s->seed_given && s->algorithm != SORT_SHUFFLE)
        return error_set(err, E_SPEC, "field 'algorithm.seed' goes with 'shuffle' alone");
    if (s->decreasing && s->algorithm == SORT_NONE)
        return error_set(err, E_SPEC,
                         "field 'algorithm.decreasing' reverses the key, and 'none' has none");
    return 0;
}

static int parse_key_rule(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *rule = "";
    int rc = json_get_str(doc, "", "key_rule", &rule, err);
    if (rc != 0)
        return rc;
    if (strcmp(rule, "last_dot") == 0)
        s->key_rule = SORT_KEY_LAST_DOT;
    else if (rule[0] != '\0' && strcmp(rule, "first_dot") != 0)
        return error_set(err, E_SPEC, "field 'key_rule': '%s' is neither first_dot nor last_dot",
                         rule);
    return 0;
}

/* --- limits ----------------------------------------------------------------------------------- */

static int parse_percent(const char *text, size_t len, unsigned *out, struct error *err)
{
    _cleanup_free_ char *digits = xstrndup(text, len - 1);
    uint64_t percent = 0;
    if (parse_u64(digits, &percent, NULL) != 0 || percent < 1 || percent > 100)
        return error_set(err, E_SPEC, "field 'max_mem_usage': '%s' is not within 1%% and 100%%",
                         text);
    *out = (unsigned)percent;
    return 0;
}

static int parse_memory(json_t *doc, struct sort_spec *s, struct error *err)
{
    json_t *v = json_object_get(doc, "max_mem_usage");
    if (spec_is_blank(v))
        return 0;
    const char *text = json_string_value(v);
    size_t len = text == NULL ? 0 : strlen(text);
    if (len > 0 && text[len - 1] == '%')
        return parse_percent(text, len, &s->max_mem_percent, err);
    int rc = json_get_size(doc, "", "max_mem_usage", &s->max_mem_bytes, err);
    if (rc == 0 && s->max_mem_bytes > SPEC_SIZE_MAX)
        return error_set(err, E_SPEC, "field 'max_mem_usage' exceeds 4 EiB");
    return rc;
}

static int parse_concurrency(json_t *doc, const char *field, unsigned *out, struct error *err)
{
    uint64_t n = 0;
    int rc = json_get_u64(doc, "", field, &n, err);
    if (rc != 0)
        return rc;
    if (n > SORT_CONCURRENCY_MAX)
        return error_set(err, E_SPEC, "field '%s': %llu exceeds %d", field, (unsigned long long)n,
                         SORT_CONCURRENCY_MAX);
    *out = (unsigned)n;
    return 0;
}

static int parse_limits(json_t *doc, struct sort_spec *s, struct error *err)
{
    int rc = parse_memory(doc, s, err);
    if (rc == 0)
        rc = parse_concurrency(doc, "extract_concurrency_max_limit", &s->extract_concurrency, err);
    if (rc == 0)
        rc = parse_concurrency(doc, "create_concurrency_max_limit", &s->create_concurrency, err);
    return rc;
}

/* --- policies --------------------------------------------------------------------------------- */

static int parse_policy(json_t *obj, const char *path, const char *field, enum sort_policy *out,
                        bool *given, struct error *err)
{
    const char *text = "";
    int rc = json_get_str(obj, path, field, &text, err);
    if (rc != 0 || text[0] == '\0')
        return rc;
    for (int i = SORT_ABORT; i <= SORT_IGNORE; i++) {
        if (strcmp(text, spec_policy_names[i]) != 0)
            continue;
        if (*given && *out != (enum sort_policy)i)
            return error_set(err, E_SPEC, "field '%s' is given twice, differently", field);
        *out = (enum sort_policy)i;
        *given = true;
        return 0;
    }
    return error_set(err, E_SPEC, "field '%s%s%s': '%s' is not one of abort, warn, ignore", path,
                     path[0] != '\0' ? "." : "", field, text);
}

static int parse_policies(json_t *doc, struct sort_spec *s, struct error *err)
{
    s->duplicated_output_records = SORT_WARN;
    const struct {
        const char *field;
        enum sort_policy *policy;
    } rows[] = {
        {"missing_shards", &s->missing_shards},
        {"unreadable_shards", &s->unreadable_shards},
        {"missing_keys", &s->missing_keys},
        {"ekm_malformed_line", &s->ekm_malformed_line},
        {"ekm_missing_key", &s->ekm_missing_key},
        {"duplicated_records", &s->duplicated_records},
        {"duplicated_output_records", &s->duplicated_output_records},
    };
    json_t *config = NULL;
    int rc = json_get_object(doc, "", "config", &config, err);
    if (rc == 0 && config != NULL)
        rc = spec_check_fields(config, "config", config_fields, refused_config_fields, err);
    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++) {
        bool given = false;
        rc = parse_policy(doc, "", rows[i].field, rows[i].policy, &given, err);
        if (rc == 0 && config != NULL)
            rc = parse_policy(config, "config", rows[i].field, rows[i].policy, &given, err);
    }
    return rc;
}

static int parse_rest(json_t *doc, struct sort_spec *s, struct error *err)
{
    const char *description = "";
    int rc = json_get_str(doc, "", "description", &description, err);
    if (rc == 0)
        rc = json_get_bool(doc, "", "dry_run", &s->dry_run, err);
    if (rc == 0)
        rc = json_get_bool(doc, "", "allow_empty", &s->allow_empty, err);
    if (rc != 0)
        return rc;
    if (strlen(description) > SORT_DESCRIPTION_MAX)
        return error_set(err, E_SPEC, "field 'description' exceeds %d bytes", SORT_DESCRIPTION_MAX);
    s->description = xstrdup(description);
    return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int check_document(json_t *doc, struct sort_spec *s, struct error *err)
{
    (void)s;
    if (!json_is_object(doc))
        return error_set(err, E_SPEC, "a sort request must be a JSON object");
    return spec_check_fields(doc, "", fields, refused_fields, err);
}

static int (*const steps[])(json_t *doc, struct sort_spec *s, struct error *err) = {
    check_document,  parse_buckets,  spec_parse_input, spec_parse_ekm, spec_parse_output,
    parse_algorithm, parse_key_rule, parse_limits,     parse_policies, parse_rest};

int sort_spec_parse(json_t *doc, struct sort_spec **out, struct error *err)
{
    struct error own = ERROR_INIT;
    _cleanup_(sort_spec_freep)
    struct sort_spec *s = xcalloc(1, sizeof *s);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int rc = steps[i](doc, s, &own);
        if (rc == 0)
            continue;
        /* It is JSON, or we would not be here: what is wrong is the specification. */
        if (rc == E_JSON || rc == E_INVALID)
            rc = E_SPEC;
        return error_set(err, rc, "%s", own.message);
    }
    *out = steal(s);
    return 0;
}

int sort_spec_check_found(const struct sort_spec *s, uint64_t shards, uint64_t records,
                          struct error *err)
{
    if (records > 0 || s->allow_empty)
        return 0;
    if (shards > 0)
        return error_set(err, E_NOTHING_MATCHED,
                         "%llu input shards have no records (set allow_empty to accept that)",
                         (unsigned long long)shards);
    if (s->input_kind == SORT_INPUT_LIST)
        return error_set(err, E_NOTHING_MATCHED,
                         "none of the listed shards exists (set allow_empty to accept that)");
    bool prefix = s->input_kind == SORT_INPUT_PREFIX;
    return error_set(err, E_NOTHING_MATCHED,
                     "%s '%.512s' matches no '%s' shard (set allow_empty to accept that)",
                     prefix ? "prefix" : "template",
                     prefix ? s->input_prefix : template_text(s->input_template),
                     s->input_extension);
}

void sort_spec_free(struct sort_spec *s)
{
    if (s == NULL)
        return;
    free(s->input_bucket);
    free(s->output_bucket);
    template_free(s->input_template);
    for (size_t i = 0; i < s->input_name_count; i++)
        free(s->input_names[i]);
    free(s->input_names);
    free(s->input_prefix);
    free(s->content_extension);
    free(s->input_extension);
    free(s->output_extension);
    template_free(s->output_template);
    free(s->wids_index);
    free(s->ekm_file);
    free(s->ekm_bucket);
    free(s->ekm_object);
    free(s->ekm_separator);
    free(s->member_strip);
    free(s->member_prepend);
    free(s->description);
    free(s);
}
