#include "gateway/uploads/upload_lists.h"

#include <string.h>

#include "common/arena.h"
#include "common/jsonx.h"
#include "gateway/proxy_call.h"
#include "gateway/reply.h"
#include "gateway/uploads/upload_call.h"
#include "gateway/uploads/uploads.h"
#include "s3/sum_text.h"
#include "s3/uploads/upload_list.h"
#include "s3/uploads/upload_page.h"

enum { ENTRY_BYTES_MAX = 8 * 1024, PAGE_BYTES_MAX = 64 * 1024 };

static struct s3_owner owner_of(const struct http_request *req)
{
    const struct http_actor *actor = http_actor(req);
    return (struct s3_owner){actor->id != NULL ? actor->id : actor->name, actor->name};
}

static void fail(struct http_request *req, const struct error *err)
{
    struct s3_failure why;
    upload_call_failure(err, &why);
    gateway_fail(req, &why);
}

/* --- ListParts -------------------------------------------------------------------------------- */

/* Of the request's arena. */
struct parts_listing {
    struct http_request *req;
    const struct gateway_call *s3;
    struct s3_parts_asked asked;
};

static int read_sum(struct arena *arena, json_t *item, struct s3_listed_part *out,
                    struct error *err)
{
    const char *text = "";
    struct s3_sum_text sum;
    int code = json_get_str(item, "", "sum", &text, err);
    if (code != 0 || !s3_sum_text_parse(text, &sum) || !sum.is_known)
        return code;
    struct s3_sum_value *value = arena_alloc(arena, sizeof *value);
    *value = sum.value;
    out->sum = value;
    return 0;
}

static int read_part(struct arena *arena, json_t *item, struct s3_listed_part *out,
                     struct error *err)
{
    uint64_t number = 0, time_ms = 0;
    int code;
    if ((code = json_need_u64(item, "", "part", &number, err)) != 0 ||
        (code = json_need_str(item, "", "tag", &out->etag, err)) != 0 ||
        (code = json_need_u64(item, "", "size", &out->size, err)) != 0 ||
        (code = json_need_u64(item, "", "time", &time_ms, err)) != 0)
        return code;
    out->number = (unsigned)number;
    out->modified_ms = (int64_t)time_ms;
    out->etag = arena_strdup(arena, out->etag);
    return read_sum(arena, item, out, err);
}

static int read_parts(struct arena *arena, const struct buf *text, struct s3_parts *out,
                      struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *items = NULL;
    const char *kind = "";
    int code = json_parse(text->data, text->len, &doc, err);
    if (code == 0)
        code = json_get_array(doc, "", "parts", &items, err);
    if (code == 0)
        code = json_get_str(doc, "", "sums", &kind, err);
    if (code != 0 || !s3_sum_kind_parse(kind, &out->kind))
        out->kind = (struct s3_sum_kind){.is_asked = false};
    struct s3_listed_part *parts = arena_alloc(arena, (json_array_size(items) + 1) * sizeof *parts);
    for (; code == 0 && out->count < json_array_size(items); out->count++)
        code = read_part(arena, json_array_get(items, out->count), &parts[out->count], err);
    out->parts = parts;
    out->is_truncated = json_is_true(json_object_get(doc, "more"));
    return code;
}

static void parts_listed(void *arg, const struct error *failure, const struct buf *text)
{
    const struct parts_listing *l = arg;
    _cleanup_buf_ struct buf document = BUF_INIT;
    struct error err = *failure;
    struct s3_owner owner = owner_of(l->req);
    struct s3_parts list = {
        .bucket = l->s3->s3.bucket, .key = l->s3->s3.key, .initiator = owner, .owner = owner};
    if (err.code == 0)
        (void)read_parts(http_arena(l->req), text, &list, &err);
    if (err.code != 0) {
        fail(l->req, &err);
        return;
    }
    if (l->asked.max == 0) /* one was asked for, to learn of the upload */
        list = (struct s3_parts){.bucket = list.bucket,
                                 .key = list.key,
                                 .initiator = owner,
                                 .owner = owner,
                                 .kind = list.kind};
    s3_parts_document(&l->asked, &list, &document);
    gateway_reply_xml(l->req, &document);
}

void s3_list_parts(struct http_request *req, const struct gateway_call *call)
{
    struct parts_listing *l = arena_alloc(http_arena(req), sizeof *l);
    struct s3_failure why;
    struct error err = ERROR_INIT;
    *l = (struct parts_listing){.req = req, .s3 = call};
    if (s3_parts_ask(&call->s3.query, &l->asked, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const struct upload_call spec = {.method = HTTP_GET,
                                     .upload = upload_id_of(call),
                                     .query = arena_printf(http_arena(req), "after=%u&limit=%u",
                                                           l->asked.after,
                                                           l->asked.max > 0 ? l->asked.max : 1),
                                     .done = parts_listed,
                                     .arg = l};
    if (upload_call_start(req, call, &spec, &err) != 0)
        fail(req, &err);
}

/* --- ListMultipartUploads --------------------------------------------------------------------- */

/* Of the request's arena. */
struct uploads_listing {
    struct s3_uploads_asked asked;
    struct s3_upload_page page;
};

static void ask(struct http_request *req, const struct gateway_call *call,
                struct uploads_listing *l, const char *after, const char *after_upload);

static void reply_uploads(struct http_request *req, const struct gateway_call *call,
                          const struct uploads_listing *l)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const struct s3_upload_page *p = &l->page;
    const struct s3_uploads list = {.bucket = call->s3.bucket,
                                    .uploads = p->uploads,
                                    .upload_count = p->upload_count,
                                    .prefixes = p->prefixes,
                                    .prefix_count = p->prefix_count,
                                    .next_key = p->next_key,
                                    .next_upload_id = p->next_upload_id};
    s3_uploads_document(&l->asked, &list, &document);
    gateway_reply_xml(req, &document);
}

static int read_upload(struct arena *arena, json_t *item, struct s3_listed_upload *out,
                       struct error *err)
{
    uint64_t time_ms = 0;
    const char *sums = "";
    int code;
    if ((code = json_need_str(item, "", "object", &out->key, err)) != 0 ||
        (code = json_need_str(item, "", "upload", &out->upload_id, err)) != 0 ||
        (code = json_need_u64(item, "", "time", &time_ms, err)) != 0 ||
        (code = json_get_str(item, "", "sums", &sums, err)) != 0)
        return code;
    if (!s3_sum_kind_parse(sums, &out->sums))
        out->sums = (struct s3_sum_kind){.is_asked = false};
    out->key = arena_strdup(arena, out->key);
    out->upload_id = arena_strdup(arena, out->upload_id);
    out->begun_ms = (int64_t)time_ms;
    return 0;
}

/* *last: the last upload of the native page; its key is NULL where nothing follows. */
static int add_uploads(struct http_request *req, const struct buf *text, struct s3_upload_page *p,
                       struct s3_listed_upload *last, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *items = NULL;
    const struct s3_owner owner = owner_of(req);
    struct s3_listed_upload u = {.key = NULL};
    bool has_room = true;
    int code = json_parse(text->data, text->len, &doc, err);
    if (code == 0)
        code = json_get_array(doc, "", "uploads", &items, err);
    for (size_t i = 0; code == 0 && has_room && i < json_array_size(items); i++) {
        u = (struct s3_listed_upload){.initiator = owner, .owner = owner};
        code = read_upload(http_arena(req), json_array_get(items, i), &u, err);
        if (code == 0)
            has_room = s3_upload_page_add(p, &u);
    }
    bool goes_on = has_room && json_is_true(json_object_get(doc, "more"));
    *last = goes_on ? u : (struct s3_listed_upload){.key = NULL};
    return code;
}

static void uploads_listed(struct http_request *req, const struct gateway_call *call, void *arg,
                           const struct error *failure, const struct buf *text)
{
    struct uploads_listing *l = arg;
    struct error err = *failure;
    struct s3_listed_upload last = {.key = NULL};
    if (err.code == 0)
        (void)add_uploads(req, text, &l->page, &last, &err);
    if (err.code != 0)
        http_reply_error(req, &err);
    else if (last.key != NULL)
        ask(req, call, l, last.key, last.upload_id);
    else
        reply_uploads(req, call, l);
}

static void put_parameter(struct buf *query, const char *name, const char *value)
{
    if (*value == '\0')
        return;
    buf_printf(query, "&%s=", name);
    buf_put_url_escaped(query, value, strlen(value), "");
}

static void ask(struct http_request *req, const struct gateway_call *call,
                struct uploads_listing *l, const char *after, const char *after_upload)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    buf_printf(&query, "/uploads?limit=%u", S3_UPLOAD_LIST_MAX);
    put_parameter(&query, "prefix", l->asked.prefix);
    put_parameter(&query, "after", after);
    put_parameter(&query, "after_upload", after_upload);
    const struct proxy_call spec = {.method = HTTP_GET,
                                    .bucket = call->s3.bucket,
                                    .rest = arena_strdup(http_arena(req), buf_str(&query)),
                                    .reply_max =
                                        PAGE_BYTES_MAX + S3_UPLOAD_LIST_MAX * ENTRY_BYTES_MAX,
                                    .done = uploads_listed,
                                    .arg = l};
    proxy_call_start(req, call, &spec);
}

void s3_list_uploads(struct http_request *req, const struct gateway_call *call)
{
    struct uploads_listing *l = arena_alloc(http_arena(req), sizeof *l);
    struct s3_failure why;
    if (s3_uploads_ask(&call->s3.query, &l->asked, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    s3_upload_page_init(&l->page, &l->asked, http_arena(req));
    ask(req, call, l, l->asked.after_key, l->asked.after_upload_id);
}
