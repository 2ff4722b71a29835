#include "proxy/ais/bucket_sums.h"

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/ais/job_form.h"

static void add_entry(struct bucket_sums *s, const json_t *entry)
{
    uint64_t size = (uint64_t)json_integer_value(json_object_get(entry, "size"));
    s->min = s->all == 0 || size < s->min ? size : s->min;
    s->max = size > s->max ? size : s->max;
    s->all++;
    s->all_bytes += size;
    if (!json_is_false(json_object_get(entry, "cached"))) {
        s->present++;
        s->present_bytes += size;
    }
}

int bucket_sums_add(struct bucket_sums *s, const struct buf *page, char **next, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(page->data, page->len, &doc, err);
    if (code != 0)
        return code;
    const json_t *entries = json_object_get(doc, "entries");
    const char *token = json_string_value(json_object_get(doc, "next"));
    if (!json_is_array(entries) || token == NULL)
        return error_set(err, E_CORRUPT, "a page of a list is none");
    for (size_t i = 0; i < json_array_size(entries); i++)
        add_entry(s, json_array_get(entries, i));
    *next = token[0] != '\0' ? xstrdup(token) : NULL;
    return 0;
}

json_t *bucket_sums_json(const struct bucket_sums *s, const char *bucket, bool remote)
{
    uint64_t average = s->all > 0 ? s->all_bytes / s->all : 0;
    return json_pack(
        "{s:s, s:s, s:{s:o, s:o}, s:{s:I, s:I, s:I}, s:{s:o, s:o, s:o, s:o}, s:i, s:b}", "name",
        bucket, "provider", "ais", "ObjCount", "obj_count_present", job_form_number(s->present),
        "obj_count_remote", job_form_number(remote ? s->all : 0), "ObjSize", "obj_min_size",
        (json_int_t)s->min, "obj_avg_size", (json_int_t)average, "obj_max_size", (json_int_t)s->max,
        "TotalSize", "size_on_disk", job_form_number(s->present_bytes), "size_all_present_objs",
        job_form_number(s->present_bytes), "size_all_remote_objs",
        job_form_number(remote ? s->all_bytes : 0), "total_disks_size", job_form_number(0),
        "used_pct", 0, "is_present", 1);
}
