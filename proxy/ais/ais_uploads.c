#include "proxy/ais/ais_uploads.h"

#include <string.h>

#include "ais/dialect.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_objects.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/part_list.h"
#include "proxy/http/uploads.h"
#include "proxy/primary/proxy.h"

static void put_escaped(struct buf *query, const char *name, const char *value)
{
    buf_printf(query, "&%s=", name);
    buf_put_url_escaped(query, value, strlen(value), "");
}

static int need(const struct http_request *req, const char *name, const char **out,
                struct error *err)
{
    *out = http_query(req, name);
    if (*out != NULL && (*out)[0] != '\0')
        return 0;
    return error_set(err, E_INVALID, "parameter '%s' is missing", name);
}

/* --- a part ----------------------------------------------------------------------------------- */

static int send_part(struct http_request *req, struct error *err)
{
    const char *upload, *number;
    _cleanup_buf_ struct buf query = BUF_INIT;
    int code = ais_check_common(req, err);
    if (code != 0 || (code = need(req, "uploadId", &upload, err)) != 0 ||
        (code = need(req, "partNumber", &number, err)) != 0)
        return code;
    buf_puts(&query, AIS_REDIRECT);
    put_escaped(&query, "upload", upload);
    put_escaped(&query, "part", number);
    const struct upload_send how = {.method = HTTP_PUT,
                                    .upload = upload,
                                    .raw_query = buf_str(&query),
                                    .streams = !ais_wants_redirect(req)};
    upload_send(req, &how);
    return 0;
}

void ais_part_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (proxy_enter_objects(req) != NULL && send_part(req, &err) != 0)
        http_reply_error(req, &err);
}

/* --- actions ---------------------------------------------------------------------------------- */

/* With this body; `upload` NULL: a begin. */
static void send_document(struct http_request *req, enum http_method method, const char *upload,
                          const struct buf *document)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    buf_puts(&query, AIS_REDIRECT);
    if (upload != NULL)
        put_escaped(&query, "upload", upload);
    const struct upload_send how = {
        .method = method, .upload = upload, .raw_query = buf_str(&query), .document = document};
    upload_send(req, &how);
}

static int read_action(const struct http_request *req, const char *data, size_t len,
                       const char *wanted, json_t **doc, struct error *err)
{
    const char *action;
    int code = ais_check_common(req, err);
    if (code == 0)
        code = ais_read_action(data, len, doc, &action, err);
    return code != 0 || strcmp(action, wanted) == 0 ? code : ais_refuse_action(action, err);
}

static void begin_body(struct http_request *req, const char *data, size_t len)
{
    static const struct buf none = BUF_INIT;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    if (read_action(req, data, len, "mpt-upload", &doc, &err) != 0)
        http_reply_error(req, &err);
    else
        send_document(req, HTTP_POST, NULL, &none);
}

static void complete_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    const char *upload;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_buf_ struct buf list = BUF_INIT;
    if (read_action(req, data, len, "mpt-complete", &doc, &err) != 0 ||
        need(req, "uploadId", &upload, &err) != 0 ||
        part_list_translate(json_object_get(doc, "value"), &list, &err) != 0)
        http_reply_error(req, &err);
    else
        send_document(req, HTTP_POST, upload, &list);
}

static void abort_body(struct http_request *req, const char *data, size_t len)
{
    static const struct buf none = BUF_INIT;
    struct error err = ERROR_INIT;
    const char *upload;
    _cleanup_json_ json_t *doc = NULL;
    if (read_action(req, data, len, "mpt-abort", &doc, &err) != 0 ||
        need(req, "uploadId", &upload, &err) != 0)
        http_reply_error(req, &err);
    else
        send_document(req, HTTP_DELETE, upload, &none);
}

static void collect(struct http_request *req,
                    void (*take)(struct http_request *req, const char *data, size_t len))
{
    const struct proxy *p = proxy_enter_objects(req);
    if (p != NULL)
        http_collect_body(req, p->params.body_max, take);
}

void ais_object_post_begin(struct http_request *req)
{
    collect(req, begin_body);
}

static bool is_completing(void *ctx)
{
    (void)ctx;
    return true;
}

void ais_upload_post_begin(struct http_request *req)
{
    http_be_patient(req, is_completing, NULL);
    collect(req, complete_body);
}

void ais_upload_delete_begin(struct http_request *req)
{
    collect(req, abort_body);
}
