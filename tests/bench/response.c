#include "tests/bench/response.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool digits_parse(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *out = value;
    return true;
}

static bool text_is(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

static bool status_line_parse(const char *line, size_t len, struct response *out)
{
    uint64_t status;
    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
        return false;
    if (!digits_parse(line + 9, 3, &status) || status < 100)
        return false;
    out->status = (unsigned)status;
    out->close = line[7] == '0';
    return true;
}

static bool field_parse(const char *line, size_t len, struct response *out)
{
    const char *colon = memchr(line, ':', len);
    if (colon == NULL)
        return false;
    size_t name_len = (size_t)(colon - line);
    const char *value = colon + 1;
    const char *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_len = (size_t)(end - value);

    if (text_is(line, name_len, "content-length")) {
        out->has_length = true;
        return digits_parse(value, value_len, &out->content_length);
    }
    if (text_is(line, name_len, "transfer-encoding")) {
        out->chunked = true;
    } else if (text_is(line, name_len, "connection")) {
        out->close = text_is(value, value_len, "close");
    } else if (text_is(line, name_len, "location")) {
        out->location = value;
        out->location_len = value_len;
    }
    return true;
}

enum response_result response_parse(const char *text, size_t len, struct response *out)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    if (end == NULL)
        return RESPONSE_INCOMPLETE;
    *out = (struct response){.head_bytes = (size_t)(end - text) + 4};
    const char *line = text;
    for (bool first = true; line < end + 2; first = false) {
        const char *eol = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t line_len = (size_t)(eol - line);
        if (!(first ? status_line_parse : field_parse)(line, line_len, out))
            return RESPONSE_MALFORMED;
        line = eol + 2;
    }
    return RESPONSE_COMPLETE;
}

bool url_split(const char *url, size_t len, struct url_parts *out)
{
    static const char scheme[] = "http://";
    const size_t scheme_len = sizeof scheme - 1;
    if (len <= scheme_len || strncasecmp(url, scheme, scheme_len) != 0)
        return false;
    const char *host = url + scheme_len;
    const char *end = url + len;
    const char *slash = memchr(host, '/', (size_t)(end - host));
    const char *host_end = slash != NULL ? slash : end;
    const char *colon = memrchr(host, ':', (size_t)(host_end - host));
    uint64_t port = 80;
    if (colon != NULL && !digits_parse(colon + 1, (size_t)(host_end - colon - 1), &port))
        return false;
    *out = (struct url_parts){
        .host = host,
        .host_len = (size_t)((colon != NULL ? colon : host_end) - host),
        .port = (uint16_t)port,
        .path = host_end,
        .path_len = (size_t)(end - host_end),
    };
    return out->host_len > 0 && port > 0 && port <= UINT16_MAX;
}
