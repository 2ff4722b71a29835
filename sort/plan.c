#include "sort/plan.h"

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
    p->output_props = json_incref(props);
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
    free(p);
}

unsigned sort_plan_owner(const struct sort_plan *p, uint64_t bucket_id, const char *name)
{
    size_t best = hrw_best(hrw_key(bucket_id, name, strlen(name)), p->nodes, p->count);
    return best == SIZE_MAX ? 0 : (unsigned)best;
}

int sort_plan_number(const struct sort_plan *p, const char *id)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->ids[i], id) == 0)
            return (int)i;
    }
    return -1;
}
