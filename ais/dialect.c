#include "ais/dialect.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"

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

/* A right belongs to a route: so what has another right than its path says has another route. */
static const char *section_of(const struct http_request *req)
{
    static const struct {
        const char *pair, *section;
    } rows[] = {{"uploadId=", AIS_UPLOADS}, {"object_to=", AIS_COPIES}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (query_has(req, rows[i].pair))
            return rows[i].section;
    }
    return "";
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
    _cleanup_buf_ struct buf subject = BUF_INIT;
    put_subject(req, err, &subject);
    http_put_error_json(req, buf_str(&subject), err, out);
    return error_status(err->code);
}

const struct http_error_form ais_error_form = {
    .content_type = "application/json", .id_header = "X-Request-Id", .put = put_error};

const struct http_dialect ais_dialect = {
    .prefix = AIS_PREFIX,
    .speaks = speaks_to_proxy,
    .section = section_of,
    .error_form = &ais_error_form,
    .plus_is_blank = true,
};
