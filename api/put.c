/* dfc_put_*: store an object. */
#include "api/dfc.h"

#include <errno.h>
#include <fcntl.h>

#include "api/call.h"
#include "api/failure.h"
#include "api/info.h"
#include "api/put_headers.h"
#include "api/uri.h"
#include "common/checksum.h"
#include "common/mem.h"

/* Of a store that can be read twice the checksum goes along; of others it is computed on the way
 * and compared with what the server found. */
static int put_checksum(struct call *call, struct dfc_error *err)
{
    if (body_in_store(call->body))
        return put_body_sum(call, err);
    body_watch(call->body, CHECKSUM_XXH3);
    return DFC_OK;
}

static int put_headers(struct call *call, const struct dfc_put_options *o, struct dfc_error *err)
{
    int rc = put_describe(call, o, err);
    if (rc == DFC_OK)
        rc = put_conditions(call, o, err);
    if (rc == DFC_OK && !o->no_checksum)
        rc = put_checksum(call, err);
    return rc;
}

static int put_compare(struct call *call, const struct dfc_object_info *info, struct dfc_error *err)
{
    struct checksum_value sent;
    char hex[2 * CHECKSUM_MAX + 1];
    if (!body_seen(call->body, &sent))
        return DFC_OK;
    checksum_hex(&sent, hex);
    if (strcmp(info->checksum_type, checksum_name(sent.type)) != 0 ||
        strcmp(info->checksum, hex) == 0)
        return DFC_OK;
    return failure_set(err, DFC_CORRUPT, E_CHECKSUM,
                       "the object was damaged on its way: sent with %s %s, stored with %s",
                       info->checksum_type, hex, info->checksum);
}

/* With what was sent: of a store that can be read twice, or as it was computed on the way. */
static bool know_checksum(const struct call *call, struct checksum_value *sum)
{
    struct dfc_error err;
    return body_in_store(call->body) ? body_checksum(call->body, CHECKSUM_XXH3, sum, &err) == DFC_OK
                                     : body_seen(call->body, sum);
}

/* A try that broke off may have stored it, in a bucket whose objects cannot be replaced. */
static bool was_stored(struct dfc_client *c, const char *bucket, const char *object,
                       const struct call *call, struct dfc_object_info **info)
{
    struct dfc_error err;
    struct checksum_value sent;
    char hex[2 * CHECKSUM_MAX + 1];
    if (!know_checksum(call, &sent) || dfc_head(c, bucket, object, info, &err) != DFC_OK)
        return false;
    checksum_hex(&sent, hex);
    return strcmp((*info)->checksum_type, checksum_name(sent.type)) == 0 &&
           strcmp((*info)->checksum, hex) == 0;
}

static int send_body(struct dfc_client *c, const char *bucket, const char *object,
                     struct call *call, struct dfc_object_info **info, struct dfc_error *err)
{
    struct dfc_error why;
    int rc = call_run(c, call, &why);
    if (rc != DFC_OK && call->doubtful && strcmp(why.code, error_name(E_WRITE_ONCE)) == 0 &&
        was_stored(c, bucket, object, call, info))
        return DFC_OK;
    if (rc != DFC_OK && err != NULL)
        *err = why;
    if (rc == DFC_OK)
        *info = info_from_put(&call->reply.headers, call->reply.text.data, call->reply.text.len);
    return rc == DFC_OK ? put_compare(call, *info, err) : rc;
}

/* Takes the body over. */
static int put_body(struct dfc_client *c, const char *bucket, const char *object, struct body *body,
                    const struct dfc_put_options *o, struct dfc_object_info **out,
                    struct dfc_error *err)
{
    static const struct dfc_put_options none;
    if (o == NULL)
        o = &none;
    _cleanup_(call_done)
    struct call call = {
        .method = "PUT",
        .body = body,
        .meets_owner = true,
        /* With a condition, a second try could meet what the first one stored. */
        .twice_is_harmless = !o->if_absent && o->if_match == NULL,
        .progress = o->progress,
        .progress_context = o->progress_context,
    };
    int rc = uri_object(&call.path, bucket, object, err);
    if (rc == DFC_OK)
        rc = body_prime(call.body, err);
    if (rc == DFC_OK)
        rc = put_headers(&call, o, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    rc = send_body(c, bucket, object, &call, &info, err);
    if (rc == DFC_OK && out != NULL)
        *out = steal(info);
    return rc;
}

int dfc_put_memory(struct dfc_client *c, const char *bucket, const char *object, const void *data,
                   size_t size, const struct dfc_put_options *options,
                   struct dfc_object_info **info, struct dfc_error *err)
{
    return put_body(c, bucket, object, body_from_memory(data, size), options, info, err);
}

int dfc_put_fd(struct dfc_client *c, const char *bucket, const char *object, int fd,
               const struct dfc_put_options *options, struct dfc_object_info **info,
               struct dfc_error *err)
{
    struct body *body;
    int rc = body_from_fd(fd, &body, err);
    return rc == DFC_OK ? put_body(c, bucket, object, body, options, info, err) : rc;
}

int dfc_put_file(struct dfc_client *c, const char *bucket, const char *object, const char *path,
                 const struct dfc_put_options *options, struct dfc_object_info **info,
                 struct dfc_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failure_errno(err, errno, "open '%s'", path);
    return dfc_put_fd(c, bucket, object, fd, options, info, err);
}

int dfc_put_source(struct dfc_client *c, const char *bucket, const char *object,
                   const struct dfc_source *source, const struct dfc_put_options *options,
                   struct dfc_object_info **info, struct dfc_error *err)
{
    return put_body(c, bucket, object, body_from_source(source), options, info, err);
}
