/* dfc_upload_*: an object that arrives in parts (docs/design/uploads.md). */
#include "api/dfc.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/info.h"
#include "api/put_headers.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

static int upload_path(struct buf *path, const char *bucket, const char *object, const char *upload,
                       struct dfc_error *err)
{
    int rc = uri_object_in(path, "uploads", bucket, object, err);
    if (rc != DFC_OK)
        return rc;
    if (upload != NULL && upload[0] == '\0')
        return failure_set(err, DFC_INVALID, E_INVALID, "the id of the upload is empty");
    uri_query(path, "upload", upload);
    return DFC_OK;
}

static int take_text(const struct call *call, const char *field, char **out, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    const char *text = "";
    _cleanup_json_ json_t *doc = NULL;
    if (json_parse(call->reply.text.data, call->reply.text.len, &doc, &e) != 0 ||
        json_need_str(doc, "", field, &text, &e) != 0)
        return failure_set(err, DFC_FAILED, E_NET, "the reply is not of the contract: %s",
                           e.message);
    *out = xstrdup(text);
    return DFC_OK;
}

int dfc_upload_begin(struct dfc_client *c, const char *bucket, const char *object,
                     const struct dfc_put_options *options, char **upload, struct dfc_error *err)
{
    static const struct dfc_put_options none;
    _cleanup_(call_done)
    struct call call = {.method = "POST", .twice_is_harmless = true};
    int rc = upload_path(&call.path, bucket, object, NULL, err);
    if (rc == DFC_OK)
        rc = put_describe(&call, options != NULL ? options : &none, err);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    return rc == DFC_OK ? take_text(&call, "upload", upload, err) : rc;
}

static int compare_tag(struct call *call, const char *tag, struct dfc_error *err)
{
    struct checksum_value sent;
    char hex[2 * CHECKSUM_MAX + 1];
    if (!body_seen(call->body, &sent))
        return DFC_OK;
    checksum_hex(&sent, hex);
    if (strcmp(hex, tag) == 0)
        return DFC_OK;
    return failure_set(err, DFC_CORRUPT, E_CHECKSUM,
                       "the part was damaged on its way: sent with md5 %s, stored with %s", hex,
                       tag);
}

int dfc_upload_part(struct dfc_client *c, const char *bucket, const char *object,
                    const char *upload, uint32_t number, const struct dfc_source *source,
                    const struct dfc_put_options *options, char **tag, struct dfc_error *err)
{
    static const struct dfc_put_options none;
    const struct dfc_put_options *o = options != NULL ? options : &none;
    _cleanup_(call_done)
    struct call call = {
        .method = "PUT",
        .body = body_from_source(source),
        .meets_owner = true,
        .twice_is_harmless = true,
        .progress = o->progress,
        .progress_context = o->progress_context,
    };
    _cleanup_free_ char *stored = NULL;
    int rc = upload_path(&call.path, bucket, object, upload, err);
    if (rc != DFC_OK)
        return rc;
    uri_query_u64(&call.path, "part", number);
    if (!o->no_checksum)
        body_watch(call.body, CHECKSUM_MD5);
    rc = body_prime(call.body, err);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    if (rc == DFC_OK)
        rc = take_text(&call, "tag", &stored, err);
    if (rc == DFC_OK)
        rc = compare_tag(&call, stored, err);
    if (rc == DFC_OK && tag != NULL)
        *tag = steal(stored);
    return rc;
}

int dfc_upload_parts(struct dfc_client *c, const char *bucket, const char *object,
                     const char *upload, uint32_t after, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = upload_path(&path, bucket, object, upload, err);
    if (rc != DFC_OK)
        return rc;
    if (after > 0)
        uri_query_u64(&path, "after", after);
    return call_small(c, &what, &path, document, err);
}

int dfc_upload_complete(struct dfc_client *c, const char *bucket, const char *object,
                        const char *upload, const char *parts,
                        const struct dfc_put_options *options, struct dfc_object_info **info,
                        struct dfc_error *err)
{
    static const struct dfc_put_options none;
    _cleanup_(call_done)
    struct call call = {
        .method = "POST",
        .body = body_from_memory(parts, strlen(parts)),
        .meets_owner = true,
        .twice_is_harmless = true, /* the second one gets the first one's reply */
    };
    int rc = upload_path(&call.path, bucket, object, upload, err);
    if (rc == DFC_OK)
        rc = call_header(&call, err, "Content-Type", "application/json");
    if (rc == DFC_OK)
        rc = put_conditions(&call, options != NULL ? options : &none, err);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    if (rc == DFC_OK && info != NULL)
        *info = info_from_put(&call.reply.headers, call.reply.text.data, call.reply.text.len);
    return rc;
}

int dfc_upload_abort(struct dfc_client *c, const char *bucket, const char *object,
                     const char *upload, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = upload_path(&path, bucket, object, upload, err);
    return rc == DFC_OK ? call_small(c, &what, &path, NULL, err) : rc;
}

int dfc_upload_list(struct dfc_client *c, const char *bucket, const char *prefix, const char *after,
                    const char *after_upload, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_bucket(&path, "uploads", bucket, err);
    if (rc != DFC_OK)
        return rc;
    uri_query(&path, "prefix", prefix);
    uri_query(&path, "after", after);
    uri_query(&path, "after_upload", after_upload);
    return call_small(c, &what, &path, document, err);
}
