/* Lists of uploads in parts: what this target has of a bucket, for a proxy that merges, and the
 * parts of one upload. */
#include "target/http/upload_routes.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/parse.h"
#include "target/node/target.h"
#include "target/uploads/upload_rows.h"
#include "target/uploads/uploads.h"

enum { PARTS_LIMIT = 1000, UPLOADS_LIMIT = 1000 };

/* "sums": the checksums that an upload asked for. */
static void put_sums(json_t *doc, const struct s3_sum_kind *sums)
{
    char kind[S3_SUM_KIND_MAX];
    if (sums->is_asked)
        json_object_set_new(doc, "sums", json_string(s3_sum_kind_print(sums, kind)));
}

/* --- the parts of one ------------------------------------------------------------------------- */

static json_t *part_json(const struct part *part)
{
    struct checksum_value md5 = {.type = CHECKSUM_MD5};
    char hex[2 * CHECKSUM_MAX + 1];
    memcpy(md5.bytes, part->md5, PART_MD5);
    checksum_hex(&md5, hex);
    json_t *doc = json_pack("{sI ss sI sI}", "part", (json_int_t)part->number, "tag", hex, "size",
                            (json_int_t)part->size, "time", (json_int_t)part->time_ms);
    upload_put_sum(doc, part);
    return doc;
}

void upload_put_sum(json_t *doc, const struct part *part)
{
    const struct s3_sum_text sum = {.is_known = true, .value = part->sum};
    char text[S3_SUM_TEXT_MAX];
    if (part->has_sum)
        json_object_set_new(doc, "sum", json_string(s3_sum_text_print(&sum, text)));
}

static json_t *parts_page(const struct upload *u, const struct part_table *table, uint64_t after,
                          uint64_t limit)
{
    json_t *parts = json_array();
    size_t at = 0;
    while (at < table->count && table->parts[at].number <= after)
        at++;
    for (; at < table->count && json_array_size(parts) < limit; at++)
        json_array_append_new(parts, part_json(&table->parts[at]));
    json_t *page = json_pack("{so sb}", "parts", parts, "more", at < table->count);
    put_sums(page, &u->sums);
    return page;
}

static int make_parts_page(const struct http_request *req, json_t **out, struct error *err)
{
    _cleanup_(upload_unrefp)
    struct upload *u = NULL;
    struct part_table table;
    uint64_t after = 0, limit = PARTS_LIMIT;
    int code = upload_number(req, "after", 0, UINT32_MAX, &after, err);
    if (code == 0)
        code = upload_number(req, "limit", 1, PARTS_LIMIT, &limit, err);
    if (code == 0)
        code = upload_of_request(req, &u, err);
    if (code == 0)
        code = upload_parts(u, &table, err);
    if (code != 0)
        return code;
    *out = parts_page(u, &table, after, limit);
    part_table_clear(&table);
    return 0;
}

static void parts_admitted(struct http_request *req, void *arg)
{
    (void)arg;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *page = NULL;
    if (make_parts_page(req, &page, &err) != 0)
        http_reply_error(req, &err);
    else
        http_reply_json(req, 200, page);
}

void upload_parts_begin(struct http_request *req)
{
    upload_begin_as_known(req, parts_admitted, NULL);
}

/* --- those of a bucket ------------------------------------------------------------------------ */

struct list_call {
    struct http_request *req;
    uint64_t bucket_id, limit;
};

static const char *text_query(const struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    return text != NULL ? text : "";
}

static json_t *uploads_page(const struct upload_rows *rows, uint64_t limit)
{
    json_t *uploads = json_array();
    for (size_t i = 0; i < rows->count && i < limit; i++) {
        const struct upload_row *row = &rows->rows[i];
        json_t *doc = json_pack("{ss ss sI}", "object", row->object, "upload", row->id, "time",
                                (json_int_t)row->time_ms);
        put_sums(doc, &row->sums);
        json_array_append_new(uploads, doc);
    }
    return json_pack("{so sb}", "uploads", uploads, "more", rows->count > limit);
}

static void list_in_thread(void *arg)
{
    struct list_call *l = arg;
    struct target *t = http_user(l->req);
    struct upload_rows rows;
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    if (upload_rows_read(set, l->bucket_id, text_query(l->req, "prefix"),
                         text_query(l->req, "after"), text_query(l->req, "after_upload"), &rows,
                         &err) != 0) {
        http_reply_error(l->req, &err);
        return;
    }
    _cleanup_json_ json_t *page = uploads_page(&rows, l->limit);
    upload_rows_clear(&rows);
    http_reply_json(l->req, 200, page);
}

static void list_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct list_call *l = arena_alloc(http_arena(req), sizeof *l);
    struct error err = ERROR_INIT;
    *l = (struct list_call){.req = req, .limit = UPLOADS_LIMIT};
    int code = parse_u64(http_path_param(req, "bucket_id"), &l->bucket_id, &err);
    if (code == 0)
        code = upload_number(req, "limit", 1, UPLOADS_LIMIT, &l->limit, &err);
    if (code == 0)
        code = uploads_run(t->uploads, list_in_thread, l, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

const struct http_route upload_list_routes[] = {
    {.name = "target_uploads",
     .method = HTTP_GET,
     .pattern = "/v1/uploads/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = list_begin,
     .summary = "One target's page of a bucket's uploads in parts, by object and time.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"after", "name"},
                              {"after_upload", "id; none: behind all uploads of `after`"},
                              {"limit", "1 to 1000 (default 1000)"}),
     .body = "",
     .reply = "`{\"uploads\": [{\"object\", \"upload\", \"time\", \"sums\" if asked}], \"more\"}`",
     .errors = "invalid_argument mountpath_disabled overloaded"},
    {.name = NULL},
};
