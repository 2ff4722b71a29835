#include "sort/task/plan.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

enum { TARGETS_MAX = 4096 };

json_t *sort_plan_json(const struct sort_plan *p)
{
    json_t *targets = json_array();
    for (size_t i = 0; i < p->count; i++)
        json_array_append_new(targets, json_pack("{s:s, s:I, s:s}", "id", p->ids[i], "weight",
                                                 (json_int_t)p->nodes[i].weight, "data_url",
                                                 p->data_urls[i]));
    char salt[17];
    snprintf(salt, sizeof salt, "%016llx", (unsigned long long)p->salt);
    json_t *doc = json_pack("{s:s, s:I, s:I, s:O, s:o}", "salt", salt, "input_bucket_id",
                            (json_int_t)p->input_bucket_id, "output_bucket_id",
                            (json_int_t)p->output_bucket_id, "output_props", p->output_props,
                            "targets", targets);
    if (p->ekm_bucket_id != 0)
        json_object_set_new(doc, "ekm_bucket_id", json_integer((json_int_t)p->ekm_bucket_id));
    return doc;
}

static int plan_parse_salt(json_t *doc, uint64_t *salt, struct error *err)
{
    const char *text = NULL;
    int code = json_need_str(doc, "plan", "salt", &text, err);
    if (code != 0)
        return code;
    unsigned char bytes[8];
    code = parse_hex(text, bytes, sizeof bytes, err);
    if (code != 0)
        return error_wrap(err, "field 'plan.salt'");
    *salt = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *salt = *salt << 8 | bytes[i];
    return 0;
}

static int plan_parse_target(json_t *item, struct sort_plan *p, struct error *err)
{
    const char *name = NULL;
    const char *url = NULL;
    uint64_t weight = 0;
    int code = json_need_str(item, "plan.targets", "id", &name, err);
    if (code == 0)
        code = json_need_str(item, "plan.targets", "data_url", &url, err);
    if (code == 0)
        code = json_need_u64(item, "plan.targets", "weight", &weight, err);
    if (code != 0)
        return code;
    if (weight > UINT32_MAX)
        return error_set(err, E_JSON, "field 'plan.targets.weight' is above 4294967295");
    p->ids[p->count] = xstrdup(name);
    p->data_urls[p->count] = xstrdup(url);
    p->nodes[p->count] = (struct hrw_node){.seed = hrw_seed(name), .weight = (uint32_t)weight};
    p->count++;
    return 0;
}

static int plan_parse_targets(json_t *doc, struct sort_plan *p, struct error *err)
{
    json_t *targets = NULL;
    int code = json_get_array(doc, "plan", "targets", &targets, err);
    if (code != 0)
        return code;
    size_t count = json_array_size(targets);
    if (count == 0 || count > TARGETS_MAX)
        return error_set(err, E_JSON, "field 'plan.targets' must have 1 to %d elements",
                         TARGETS_MAX);
    p->ids = xcalloc(count, sizeof *p->ids);
    p->data_urls = xcalloc(count, sizeof *p->data_urls);
    p->nodes = xcalloc(count, sizeof *p->nodes);
    while (code == 0 && p->count < count)
        code = plan_parse_target(json_array_get(targets, p->count), p, err);
    return code;
}

int sort_plan_parse(json_t *doc, struct sort_plan **out, struct error *err)
{
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = xcalloc(1, sizeof *p);
    json_t *props = NULL;
    int code = plan_parse_salt(doc, &p->salt, err);
    if (code == 0)
        code = json_need_u64(doc, "plan", "input_bucket_id", &p->input_bucket_id, err);
    if (code == 0)
        code = json_need_u64(doc, "plan", "output_bucket_id", &p->output_bucket_id, err);
    if (code == 0)
        code = json_get_u64(doc, "plan", "ekm_bucket_id", &p->ekm_bucket_id, err);
    if (code == 0)
        code = json_get_object(doc, "plan", "output_props", &props, err);
    if (code == 0 && props == NULL)
        code = error_set(err, E_JSON, "field 'plan.output_props' is missing");
    if (code == 0)
        code = plan_parse_targets(doc, p, err);
    if (code != 0)
        return code;
    p->output_props = json_deep_copy(props);
    *out = steal(p);
    return code;
}

void sort_plan_free(struct sort_plan *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->count; i++) {
        free(p->ids[i]);
        free(p->data_urls[i]);
    }
    free(p->ids);
    free(p->data_urls);
    json_decref(p->output_props);
    free(p->nodes);
    free(p->left);
    free(p);
}

/* In how many steps a target has gone, or 0. */
static unsigned left_as(const struct sort_plan *p, size_t number)
{
    for (size_t i = 0; i < p->left_count; i++) {
        if (p->left[i] == number)
            return (unsigned)i + 1;
    }
    return 0;
}

/* The first in rank that has not left; *since: when the last one before it has. */
static size_t owner_since(const struct sort_plan *p, uint64_t bucket_id, const char *name,
                          unsigned *since)
{
    uint64_t key = hrw_key(bucket_id, name, strlen(name));
    *since = 0;
    if (p->left_count == 0)
        return hrw_best(key, p->nodes, p->count);
    _cleanup_free_ size_t *ranked = xcalloc(p->left_count + 1, sizeof *ranked);
    size_t n = hrw_rank(key, p->nodes, p->count, p->left_count + 1, ranked);
    for (size_t i = 0; i < n; i++) {
        unsigned left = left_as(p, ranked[i]);
        if (left == 0)
            return ranked[i];
        *since = left > *since ? left : *since;
    }
    return SIZE_MAX;
}

unsigned sort_plan_owner(const struct sort_plan *p, uint64_t bucket_id, const char *name)
{
    unsigned since;
    size_t owner = owner_since(p, bucket_id, name, &since);
    return owner == SIZE_MAX ? 0 : (unsigned)owner;
}

int sort_plan_owned_since(const struct sort_plan *p, uint64_t bucket_id, const char *name,
                          unsigned number)
{
    unsigned since;
    return owner_since(p, bucket_id, name, &since) == number ? (int)since : -1;
}

void sort_plan_leave_out(struct sort_plan *p, unsigned number)
{
    if (left_as(p, number) != 0)
        return;
    p->left = xrealloc(p->left, (p->left_count + 1) * sizeof *p->left);
    p->left[p->left_count++] = number;
}

int sort_plan_number(const struct sort_plan *p, const char *id)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->ids[i], id) == 0)
            return (int)i;
    }
    return -1;
}
