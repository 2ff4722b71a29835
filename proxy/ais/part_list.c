#include "proxy/ais/part_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct part {
    uint64_t number;
    const char *tag; /* "": none */
};

static int read_part(json_t *item, size_t i, struct part *out, struct error *err)
{
    static const char *const fields[] = {"part-number", "etag", NULL};
    char path[40];
    snprintf(path, sizeof path, "value[%zu]", i);
    if (!json_is_object(item))
        return error_set(err, E_JSON, "%s is no object", path);
    out->tag = "";
    int code = json_only_fields(item, path, fields, err);
    if (code == 0)
        code = json_need_u64(item, path, "part-number", &out->number, err);
    return code != 0 ? code : json_get_str(item, path, "etag", &out->tag, err);
}

static int compare(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int put_list(const struct part *parts, size_t count, struct buf *out, struct error *err)
{
    _cleanup_json_ json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();
        if (i > 0 && parts[i].number == parts[i - 1].number) {
            json_decref(item);
            continue;
        }
        json_object_set_new(item, "part", json_integer((json_int_t)parts[i].number));
        if (parts[i].tag[0] != '\0')
            json_object_set_new(item, "tag", json_string(parts[i].tag));
        json_array_append_new(list, item);
    }
    _cleanup_free_ char *text = json_dumps(list, JSON_COMPACT);
    if (text == NULL)
        return error_set(err, E_JSON, "field 'value' is no UTF-8 text");
    buf_puts(out, text);
    return 0;
}

int part_list_translate(json_t *value, struct buf *out, struct error *err)
{
    size_t count = json_array_size(value);
    int code = 0;
    if (!json_is_array(value) || count == 0)
        return error_set(err, E_INVALID, "field 'value' must be a list of parts");
    _cleanup_free_ struct part *parts = xcalloc(count, sizeof *parts);
    for (size_t i = 0; i < count && code == 0; i++)
        code = read_part(json_array_get(value, i), i, &parts[i], err);
    if (code != 0)
        return code;
    qsort(parts, count, sizeof *parts, compare);
    return put_list(parts, count, out, err);
}
