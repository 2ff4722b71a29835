#include "api/failure.h"

#include <ctype.h>
#include <stdarg.h>

#include "common/jsonx.h"

int failure_set(struct dfc_error *err, enum dfc_result result, int code, const char *fmt, ...)
{
    if (err == NULL)
        return result;
    *err = (struct dfc_error){.result = result};
    snprintf(err->code, sizeof err->code, "%s", error_name(code));
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    return result;
}

int failure_errno(struct dfc_error *err, int errnum, const char *fmt, ...)
{
    if (err == NULL)
        return DFC_LOCAL;
    struct error e;
    char text[sizeof e.message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    error_errno(&e, errnum, "%s", text);
    return failure_common(err, DFC_LOCAL, &e);
}

int failure_common(struct dfc_error *err, enum dfc_result result, const struct error *e)
{
    return failure_set(err, result, e->code, "%s", e->message);
}

enum dfc_result failure_result_of_status(int status)
{
    static const struct {
        int status;
        enum dfc_result result;
    } rows[] = {
        {304, DFC_NOT_MODIFIED}, {400, DFC_INVALID},   {401, DFC_DENIED},
        {403, DFC_DENIED},       {404, DFC_NOT_FOUND}, {405, DFC_INVALID},
        {408, DFC_TIMED_OUT},    {409, DFC_CONFLICT},  {410, DFC_NOT_FOUND},
        {412, DFC_PRECONDITION}, {413, DFC_INVALID},   {414, DFC_INVALID},
        {416, DFC_INVALID},      {422, DFC_CORRUPT},   {429, DFC_UNREACHABLE},
        {431, DFC_INVALID},      {501, DFC_INVALID},   {502, DFC_UNREACHABLE},
        {503, DFC_UNREACHABLE},  {504, DFC_TIMED_OUT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].status == status)
            return rows[i].result;
    }
    return DFC_FAILED;
}

/* A body that is not ours (a load balancer's page, say): its first line, as far as it is text. */
static void failure_quote(struct dfc_error *err, int status, const char *body, size_t len)
{
    size_t used = (size_t)snprintf(err->message, sizeof err->message, "HTTP status %d", status);
    if (len == 0)
        return;
    if (len > strlen("<?xml") && memcmp(body, "<?xml", strlen("<?xml")) == 0) {
        snprintf(err->message + used, sizeof err->message - used,
                 ": the reply is XML, as that of an S3 port: give the public port of a proxy");
        return;
    }
    used += (size_t)snprintf(err->message + used, sizeof err->message - used, ": ");
    for (size_t i = 0; i < len && i < 200 && body[i] != '\n' && body[i] != '\r'; i++) {
        if (isprint((unsigned char)body[i]))
            err->message[used++] = body[i];
    }
    err->message[used] = '\0';
}

static void failure_copy(json_t *doc, const char *field, char *out, size_t room)
{
    const char *text = json_string_value(json_object_get(doc, field));
    if (text != NULL)
        snprintf(out, room, "%s", text);
}

int failure_reply(struct dfc_error *err, int status, const char *body, size_t len)
{
    enum dfc_result result = failure_result_of_status(status);
    if (err == NULL)
        return result;
    *err = (struct dfc_error){.result = result, .status = status};
    _cleanup_json_ json_t *doc = NULL;
    if (len == 0 || json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc))
        failure_quote(err, status, body, len);
    failure_copy(doc, "code", err->code, sizeof err->code);
    failure_copy(doc, "message", err->message, sizeof err->message);
    failure_copy(doc, "node", err->node, sizeof err->node);
    failure_copy(doc, "request_id", err->request_id, sizeof err->request_id);
    if (err->code[0] == '\0')
        snprintf(err->code, sizeof err->code, "http_%d", status);
    if (err->message[0] == '\0')
        snprintf(err->message, sizeof err->message, "HTTP status %d", status);
    return result;
}
