/* dfc_head, dfc_digest, dfc_object_copies, dfc_object_url, dfc_delete, dfc_delete_match,
 * dfc_rename. */
#include "api/dfc.h"

#include "api/action.h"
#include "api/call.h"
#include "api/failure.h"
#include "api/info.h"
#include "api/uri.h"
#include "common/error.h"
#include "common/jsonx.h"

/* A reply to HEAD has no body that would say why: a missing bucket is not told from a missing
 * object, so the bucket is asked for. */
static void head_explain(struct dfc_client *c, struct dfc_error *err, const char *bucket,
                         const char *object)
{
    struct dfc_error why;
    _cleanup_free_ char *document = NULL;
    int rc = dfc_bucket_show(c, bucket, &document, &why);
    if (rc == DFC_NOT_FOUND) {
        *err = why;
        return;
    }
    snprintf(err->code, sizeof err->code, "%s", error_name(E_OBJECT_NOT_FOUND));
    snprintf(err->message, sizeof err->message, "object '%s/%s' does not exist%s", bucket, object,
             rc == DFC_OK ? "" : ", or its bucket does not");
}

/* Of other failures, a GET of one byte is told why. */
static void head_reason(struct dfc_client *c, const char *path, struct dfc_error *err)
{
    struct dfc_error why;
    _cleanup_(call_done)
    struct call call = {.method = "GET", .twice_is_harmless = true, .once = true};
    buf_puts(&call.path, path);
    if (call_header(&call, &why, "Range", "bytes=0-0") == DFC_OK &&
        call_run(c, &call, &why) != DFC_OK && why.status == err->status)
        *err = why;
}

int dfc_head(struct dfc_client *c, const char *bucket, const char *object,
             struct dfc_object_info **info, struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {.method = "HEAD", .twice_is_harmless = true};
    int rc = uri_object(&call.path, bucket, object, err);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    if (rc == DFC_OK && info != NULL)
        *info = info_from_headers(&call.reply.headers);
    if (rc == DFC_NOT_FOUND && err != NULL)
        head_explain(c, err, bucket, object);
    else if (rc != DFC_OK && err != NULL && err->status != 0)
        head_reason(c, buf_str(&call.path), err);
    return rc;
}

int dfc_digest(struct dfc_client *c, const char *bucket, const char *object, const char *type,
               const struct dfc_digest_options *options, struct dfc_object_info **info,
               struct dfc_error *err)
{
    static const struct dfc_digest_options none;
    const struct dfc_digest_options *o = options != NULL ? options : &none;
    _cleanup_(call_done)
    struct call call = {
        .method = "GET", .twice_is_harmless = true, .idle_timeout_ms = o->idle_timeout_ms};
    int rc = uri_object(&call.path, bucket, object, err);
    if (rc != DFC_OK)
        return rc;
    uri_query(&call.path, "digest", type);
    if (o->if_match != NULL)
        rc = call_header(&call, err, "If-Match", o->if_match);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    if (rc == DFC_OK)
        *info = info_from_put(&call.reply.headers, call.reply.text.data, call.reply.text.len);
    return rc;
}

int dfc_object_copies(struct dfc_client *c, const char *bucket, const char *object, bool verify,
                      char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_object_in(&path, "copies", bucket, object, err);
    if (rc != DFC_OK)
        return rc;
    uri_query(&path, "verify", verify ? "true" : NULL);
    return call_small(c, &what, &path, document, err);
}

int dfc_object_url(struct dfc_client *c, const char *bucket, const char *object, const char *method,
                   uint64_t seconds, char **document, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:I}", "method", method, "bucket", bucket, "object", object,
                  "seconds", (json_int_t)seconds);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "a name is missing, or is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    const struct call_small what = {.method = "POST", .body = body, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/auth/url");
    return call_small(c, &what, &path, document, err);
}

/* *doubtful: a try of it broke off, and may have been done. */
static int delete_call(struct dfc_client *c, const char *bucket, const char *object,
                       const char *if_match, bool *doubtful, struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {.method = "DELETE", .twice_is_harmless = true};
    int rc = uri_object(&call.path, bucket, object, err);
    if (rc == DFC_OK && if_match != NULL)
        rc = call_header(&call, err, "If-Match", if_match);
    if (rc == DFC_OK)
        rc = call_run(c, &call, err);
    *doubtful = call.doubtful;
    return rc;
}

int dfc_delete(struct dfc_client *c, const char *bucket, const char *object, struct dfc_error *err)
{
    bool doubtful;
    const int rc = delete_call(c, bucket, object, NULL, &doubtful, err);
    return rc == DFC_NOT_FOUND && doubtful ? DFC_OK : rc;
}

int dfc_delete_match(struct dfc_client *c, const char *bucket, const char *object,
                     const char *if_match, struct dfc_error *err)
{
    bool doubtful;
    return if_match != NULL ? delete_call(c, bucket, object, if_match, &doubtful, err)
                            : dfc_delete(c, bucket, object, err);
}

/* Not repeated after a doubtful end: had the first one been done, the second would find nothing. */
int dfc_rename(struct dfc_client *c, const char *bucket, const char *object, const char *new_name,
               struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = action_body("rename", new_name, &body, err);
    if (rc == DFC_OK)
        rc = uri_object(&path, bucket, object, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small what = {.method = "POST", .body = body};
    return call_small(c, &what, &path, NULL, err);
}
