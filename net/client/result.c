#include "net/client/result.h"

#include "common/jsonx.h"
#include "common/mem.h"

void http_result_done(struct http_result *r)
{
    buf_done(&r->body);
}

/* --- the error in a reply --------------------------------------------------------------------- */

static int error_of_document(const struct http_result *r, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    if (r->body.len == 0 || json_parse(r->body.data, r->body.len, &doc, NULL) != 0)
        return 0;
    const char *code = json_string_value(json_object_get(doc, "code"));
    const char *message = json_string_value(json_object_get(doc, "message"));
    const char *node = json_string_value(json_object_get(doc, "node"));
    int number = code != NULL ? error_from_name(code) : 0;
    if (number == 0 || message == NULL)
        return 0;
    return error_set(err, number, "%s: %s", node != NULL ? node : "peer", message);
}

int http_result_error(const struct http_result *r, const char *url, struct error *err)
{
    if (r->code != 0) {
        if (err != NULL)
            *err = r->err;
        return r->code;
    }
    if (r->status >= 200 && r->status < 300)
        return 0;
    int code = error_of_document(r, err);
    return code != 0 ? code : error_set(err, E_NET, "%s answered with status %d", url, r->status);
}
