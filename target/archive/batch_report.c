#include "target/archive/batch_report.h"

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/parse.h"
#include "common/rng.h"
#include "sort/shard/format.h"
#include "target/archive/batch_spec.h"

void batch_report_boundary(char out[BATCH_BOUNDARY_MAX])
{
    unsigned char bytes[(BATCH_BOUNDARY_MAX - 1) / 2];
    random_bytes(bytes, sizeof bytes);
    format_hex(bytes, sizeof bytes, out);
}

static void set_text(json_t *item, const char *field, const char *text)
{
    if (text != NULL)
        json_object_set_new(item, field, json_string(text));
}

static json_t *item_of(const struct batch_entry *e, const struct batch_seen *seen)
{
    json_t *item = json_object();
    set_text(item, "objname", e->object);
    set_text(item, "bucket", e->bucket);
    set_text(item, "provider", "ais");
    set_text(item, "archpath", e->member);
    set_text(item, "opaque", e->opaque);
    set_text(item, "err_msg", seen->missing);
    json_object_set_new(item, "size", json_integer((json_int_t)seen->size));
    return item;
}

static void put_part(struct buf *out, const char *boundary, const char *content_type)
{
    buf_printf(out, "--%s\r\nContent-Type: %s\r\n\r\n", boundary, content_type);
}

void batch_report_begin(const struct batch_spec *s, const struct batch_seen *seen,
                        const char *request_id, const char *boundary, struct buf *out)
{
    _cleanup_json_ json_t *doc = json_object();
    json_t *items = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(items, item_of(&s->entries[i], &seen[i]));
    json_object_set_new(doc, "out", items);
    set_text(doc, "uuid", request_id);
    _cleanup_free_ char *text = json_dumps(doc, JSON_COMPACT);
    put_part(out, boundary, "application/json");
    buf_printf(out, "%s\r\n", text);
    put_part(out, boundary, s->format->content_type);
}

void batch_report_end(const char *boundary, struct buf *out)
{
    buf_printf(out, "\r\n--%s--\r\n", boundary);
}
