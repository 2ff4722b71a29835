/* dfc_bucket_*. */
#include "api/dfc.h"

#include "api/action.h"
#include "api/call.h"
#include "api/failure.h"
#include "api/job_id.h"
#include "api/uri.h"
#include "common/jsonx.h"

static int bucket_call(struct dfc_client *c, const char *bucket, const struct call_small *what,
                       char **document, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_bucket(&path, "buckets", bucket, err);
    return rc == DFC_OK ? call_small(c, what, &path, document, err) : rc;
}

/* {"action": action, "value": {…}, "check": true} */
static int bucket_action(const char *action, const char *properties, bool check, char **out,
                         struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = NULL;
    if (properties != NULL && json_parse(properties, strlen(properties), &value, &e) != 0)
        return failure_common(err, DFC_INVALID, &e);
    if (value != NULL && !json_is_object(value))
        return failure_set(err, DFC_INVALID, E_JSON, "it must be a JSON object");
    if (value == NULL)
        value = json_object();
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:O}", "action", action, "value", value);
    if (check)
        json_object_set_new(doc, "check", json_true());
    *out = json_text(doc);
    return DFC_OK;
}

static int create(struct dfc_client *c, const char *bucket, const char *properties, bool check,
                  struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    int rc = bucket_action("create", properties, check, &body, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small what = {.method = "POST", .body = body};
    return bucket_call(c, bucket, &what, NULL, err);
}

int dfc_bucket_create(struct dfc_client *c, const char *bucket, const char *properties,
                      struct dfc_error *err)
{
    return create(c, bucket, properties, false, err);
}

int dfc_bucket_create_checked(struct dfc_client *c, const char *bucket, const char *properties,
                              struct dfc_error *err)
{
    return create(c, bucket, properties, true, err);
}

int dfc_bucket_set(struct dfc_client *c, const char *bucket, const char *properties,
                   struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    int rc = bucket_action("setprops", properties, false, &body, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small what = {.method = "PUT", .body = body, .twice_is_harmless = true};
    return bucket_call(c, bucket, &what, NULL, err);
}

/* Not repeated after a doubtful end: another's bucket of this name could be hit the second time. */
int dfc_bucket_destroy(struct dfc_client *c, const char *bucket, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE"};
    return bucket_call(c, bucket, &what, NULL, err);
}

int dfc_bucket_rename(struct dfc_client *c, const char *bucket, const char *new_name,
                      struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    int rc = action_body("rename", new_name, &body, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small what = {.method = "POST", .body = body};
    return bucket_call(c, bucket, &what, NULL, err);
}

/* Not repeated after a doubtful end, for it would be two jobs. */
static int bucket_job(struct dfc_client *c, const char *bucket, const char *action,
                      const char *value, char **id, struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    _cleanup_free_ char *text = NULL;
    int rc = bucket_action(action, value, false, &body, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small what = {.method = "POST", .body = body};
    rc = bucket_call(c, bucket, &what, &text, err);
    return rc == DFC_OK ? job_id_of(text, id, err) : rc;
}

int dfc_bucket_delete_objects(struct dfc_client *c, const char *bucket, const char *value,
                              char **id, struct dfc_error *err)
{
    return bucket_job(c, bucket, "delete", value, id, err);
}

int dfc_bucket_copy_objects(struct dfc_client *c, const char *bucket, const char *value, char **id,
                            struct dfc_error *err)
{
    return bucket_job(c, bucket, "copy", value, id, err);
}

int dfc_bucket_prefetch(struct dfc_client *c, const char *bucket, const char *value, char **id,
                        struct dfc_error *err)
{
    return bucket_job(c, bucket, "prefetch", value, id, err);
}

int dfc_bucket_evict(struct dfc_client *c, const char *bucket, const char *value, char **id,
                     struct dfc_error *err)
{
    return bucket_job(c, bucket, "evict", value, id, err);
}

int dfc_bucket_archive(struct dfc_client *c, const char *bucket, const char *value, char **id,
                       struct dfc_error *err)
{
    return bucket_job(c, bucket, "archive", value, id, err);
}

int dfc_bucket_burn(struct dfc_client *c, const char *bucket, const char *value, char **id,
                    struct dfc_error *err)
{
    return bucket_job(c, bucket, "burn", value, id, err);
}

int dfc_bucket_unarchive(struct dfc_client *c, const char *bucket, const char *value, char **id,
                         struct dfc_error *err)
{
    return bucket_job(c, bucket, "unarchive", value, id, err);
}

int dfc_bucket_flatten(struct dfc_client *c, const char *bucket, const char *value, char **id,
                       struct dfc_error *err)
{
    return bucket_job(c, bucket, "flatten", value, id, err);
}

int dfc_bucket_promote(struct dfc_client *c, const char *bucket, const char *value, char **id,
                       struct dfc_error *err)
{
    return bucket_job(c, bucket, "promote", value, id, err);
}

int dfc_bucket_download(struct dfc_client *c, const char *bucket, const char *value, char **id,
                        struct dfc_error *err)
{
    return bucket_job(c, bucket, "download", value, id, err);
}

int dfc_bucket_show(struct dfc_client *c, const char *bucket, char **document,
                    struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    return bucket_call(c, bucket, &what, document, err);
}

int dfc_bucket_list(struct dfc_client *c, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/buckets");
    return call_small(c, &what, &path, document, err);
}
