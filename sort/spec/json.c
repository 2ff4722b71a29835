/* A spec as the JSON that parses to it. */
#include "sort/spec/spec.h"

#include "common/jsonx.h"
#include "sort/spec/spec_parts.h"

const char *const spec_algorithm_names[] = {[SORT_ALPHANUMERIC] = "alphanumeric",
                                            [SORT_SHUFFLE] = "shuffle",
                                            [SORT_NONE] = "none",
                                            [SORT_MD5] = "md5",
                                            [SORT_NATURAL] = "natural",
                                            [SORT_CONTENT] = "content"};
const char *const spec_content_names[] = {
    [SORT_CONTENT_INT] = "int", [SORT_CONTENT_FLOAT] = "float", [SORT_CONTENT_STRING] = "string"};
const char *const spec_ekm_names[] = {
    [SORT_EKM_AUTO] = "auto", [SORT_EKM_EXACT] = "exact", [SORT_EKM_REGEX] = "regex"};
const char *const spec_policy_names[] = {
    [SORT_ABORT] = "abort", [SORT_WARN] = "warn", [SORT_IGNORE] = "ignore"};

static json_t *input_json(const struct sort_spec *s)
{
    switch (s->input_kind) {
    case SORT_INPUT_TEMPLATE:
        return json_pack("{s:s}", "template", template_text(s->input_template));
    case SORT_INPUT_PREFIX:
        return json_pack("{s:s}", "prefix", s->input_prefix);
    case SORT_INPUT_LIST:
        break;
    }
    json_t *names = json_array();
    for (size_t i = 0; i < s->input_name_count; i++)
        json_array_append_new(names, json_string(s->input_names[i]));
    return json_pack("{s:o}", "objnames", names);
}

static json_t *algorithm_json(const struct sort_spec *s)
{
    json_t *a = json_pack("{s:s, s:b}", "kind", spec_algorithm_names[s->algorithm], "decreasing",
                          (int)s->decreasing);
    if (s->seed_given) {
        char seed[24]; /* as text: JSON's integers end at 2^63 */
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
        json_object_set_new(a, "seed", json_string(seed));
    }
    if (s->algorithm == SORT_CONTENT) {
        json_object_set_new(a, "extension", json_string(s->content_extension));
        json_object_set_new(a, "content_key_type",
                            json_string(spec_content_names[s->content_type]));
    }
    return a;
}

static json_t *memory_json(const struct sort_spec *s)
{
    if (s->max_mem_percent == 0)
        return json_integer((json_int_t)s->max_mem_bytes);
    char text[16];
    snprintf(text, sizeof text, "%u%%", s->max_mem_percent);
    return json_string(text);
}

/* Where the output's names come from. */
static void add_output_names(const struct sort_spec *s, json_t *doc)
{
    if (s->ekm_file == NULL) {
        json_object_set_new(doc, "output_format", json_string(template_text(s->output_template)));
        return;
    }
    json_object_set_new(doc, "ekm_file", json_string(s->ekm_file));
    json_object_set_new(doc, "ekm_file_sep", json_string(s->ekm_separator));
    json_object_set_new(doc, "ekm_keys", json_string(spec_ekm_names[s->ekm_keys]));
    json_object_set_new(doc, "ekm_malformed_line",
                        json_string(spec_policy_names[s->ekm_malformed_line]));
    json_object_set_new(doc, "ekm_missing_key", json_string(spec_policy_names[s->ekm_missing_key]));
}

static void add_indexes(const struct sort_spec *s, json_t *doc)
{
    if (s->wids_index != NULL)
        json_object_set_new(doc, "wids_index", json_string(s->wids_index));
    if (s->dali_indexes)
        json_object_set_new(doc, "dali_indexes", json_true());
}

json_t *sort_spec_json(const struct sort_spec *s)
{
    json_t *doc = json_pack(
        "{s:{s:s}, s:{s:s}, s:o, s:s, s:s, s:I, s:o, s:s, s:o, s:i, s:i, s:b, s:s, s:s, s:s, "
        "s:s, s:s, s:s}",
        "input_bck", "name", s->input_bucket, "output_bck", "name", s->output_bucket,
        "input_format", input_json(s), "input_extension", s->input_extension, "output_extension",
        s->output_extension, "output_shard_size", (json_int_t)s->output_shard_size, "algorithm",
        algorithm_json(s), "key_rule", s->key_rule == SORT_KEY_LAST_DOT ? "last_dot" : "first_dot",
        "max_mem_usage", memory_json(s), "extract_concurrency_max_limit",
        (int)s->extract_concurrency, "create_concurrency_max_limit", (int)s->create_concurrency,
        "dry_run", (int)s->dry_run, "description", s->description, "missing_shards",
        spec_policy_names[s->missing_shards], "missing_keys", spec_policy_names[s->missing_keys],
        "unreadable_shards", spec_policy_names[s->unreadable_shards], "duplicated_records",
        spec_policy_names[s->duplicated_records], "duplicated_output_records",
        spec_policy_names[s->duplicated_output_records]);
    if (s->allow_empty)
        json_object_set_new(doc, "allow_empty", json_true());
    add_output_names(s, doc);
    add_indexes(s, doc);
    return doc;
}
