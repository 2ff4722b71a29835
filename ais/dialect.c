#include "ais/dialect.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

static const char agent[] = "ais/";

static bool is_of_sdk(const struct http_request *req)
{
    const char *value = http_header(req, "User-Agent");
    return value != NULL && strncmp(value, agent, sizeof agent - 1) == 0;
}

/* Does a pair of the raw query begin so? */
static bool query_has(const struct http_request *req, const char *pair)
{
    size_t len = strlen(pair);
    for (const char *at = http_raw_query(req); *at != '\0'; at += *at == '&') {
        if (strncmp(at, pair, len) == 0)
            return true;
        at += strcspn(at, "&");
    }
    return false;
}

bool ais_speaks(const struct http_request *req)
{
    return is_of_sdk(req) || query_has(req, AIS_REDIRECT);
}

static bool speaks_to_proxy(const struct http_request *req)
{
    return is_of_sdk(req) || query_has(req, "provider=");
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool is_about_bucket(int code)
{
    return code == E_BUCKET_NOT_FOUND || code == E_BUCKET_EXISTS;
}

static void put_subject(const struct http_request *req, const struct error *err, struct buf *out)
{
    const char *bucket = http_path_param(req, "bucket");
    const char *object = http_path_param(req, "object");
    if (bucket == NULL)
        return;
    buf_printf(out, "ais://%s", bucket);
    if (object != NULL && !is_about_bucket(err->code))
        buf_printf(out, "/%s", object);
    buf_puts(out, ": ");
}

static int put_error(const struct http_request *req, const struct error *err, struct buf *out)
{
    int status = error_status(err->code);
    _cleanup_buf_ struct buf message = BUF_INIT;
    put_subject(req, err, &message);
    buf_puts(&message, err->message);
    buf_printf(out, "{\"status\":%d,\"code\":\"%s\",\"message\":\"", status, error_name(err->code));
    buf_put_json_escaped(out, message.data, message.len);
    buf_puts(out, "\",\"node\":\"");
    buf_put_json_escaped(out, http_node(req), strlen(http_node(req)));
    buf_puts(out, "\",\"request_id\":\"");
    buf_put_json_escaped(out, http_request_id(req), strlen(http_request_id(req)));
    buf_puts(out, "\"}");
    return status;
}

const struct http_error_form ais_error_form = {
    .content_type = "application/json", .id_header = "X-Request-Id", .put = put_error};

const struct http_dialect ais_dialect = {
    .prefix = AIS_PREFIX, .speaks = speaks_to_proxy, .error_form = &ais_error_form};
