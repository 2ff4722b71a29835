/* dfc_append_source: members into an archive, at the target. */
#include "api/dfc.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/info.h"
#include "api/put_headers.h"
#include "api/uri.h"

static int append_path(struct buf *path, const char *bucket, const char *archive,
                       const struct dfc_append_options *o, struct dfc_error *err)
{
    int rc = uri_object(path, bucket, archive, err);
    if (rc != DFC_OK)
        return rc;
    uri_query(path, "members", "tar");
    uri_query(path, "create", o->create ? "true" : "false");
    uri_query(path, "overwrite", o->overwrite ? "true" : "false");
    return DFC_OK;
}

static int append_headers(struct call *call, const struct dfc_append_options *o,
                          struct dfc_error *err)
{
    const struct dfc_put_options condition = {.if_match = o->if_match};
    int rc = put_conditions(call, &condition, err);
    return rc == DFC_OK && !o->no_checksum ? put_body_sum(call, err) : rc;
}

/* What a try that broke off may have done itself. */
static bool is_doubtful(const struct call *call, const struct dfc_error *err)
{
    return call->doubtful &&
           (err->result == DFC_PRECONDITION || strcmp(err->code, error_name(E_MEMBER_EXISTS)) == 0);
}

static int append_run(struct dfc_client *c, struct call *call, struct dfc_error *err)
{
    int rc = call_run(c, call, err);
    if (rc == DFC_OK || !is_doubtful(call, err))
        return rc;
    return failure_set(err, DFC_FAILED, E_IN_DOUBT,
                       "the connection broke, and the archive has changed since: this call or "
                       "another one has put members into it");
}

int dfc_append_source(struct dfc_client *c, const char *bucket, const char *archive,
                      const struct dfc_source *source, const struct dfc_append_options *options,
                      struct dfc_object_info **info, struct dfc_error *err)
{
    static const struct dfc_append_options none;
    const struct dfc_append_options *o = options != NULL ? options : &none;
    struct dfc_error own;
    if (err == NULL)
        err = &own;
    _cleanup_(call_done)
    struct call call = {
        .method = "PUT",
        .body = body_from_source(source),
        .meets_owner = true,
        .patient = true,
        .counted = true,
        .twice_is_harmless = o->if_match != NULL || !o->overwrite,
        .progress = o->progress,
        .progress_context = o->progress_context,
    };
    if (!body_rereadable(call.body))
        return failure_set(err, DFC_INVALID, E_INVALID, "the source has no rewind()");
    int rc = append_path(&call.path, bucket, archive, o, err);
    if (rc == DFC_OK)
        rc = append_headers(&call, o, err);
    if (rc == DFC_OK)
        rc = append_run(c, &call, err);
    if (rc == DFC_OK && info != NULL)
        *info = info_from_put(&call.reply.headers, call.reply.text.data, call.reply.text.len);
    return rc;
}
