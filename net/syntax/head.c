#include "net/syntax/head.h"

#include <string.h>
#include <strings.h>

#include "common/parse.h"

size_t head_end(const char *text, size_t len, size_t *scanned)
{
    size_t at = *scanned;
    while (at < len) {
        const char *lf = memchr(text + at, '\n', len - at);
        if (lf == NULL)
            break;
        /* An empty line after this one's end? */
        size_t next = (size_t)(lf - text) + 1;
        size_t end = next < len && text[next] == '\r' ? next + 1 : next;
        if (end == len) {
            *scanned = next - 1; /* to be looked at again, with what follows */
            return 0;
        }
        if (text[end] == '\n')
            return end + 1;
        at = next;
    }
    *scanned = len;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* RFC 9110 section 5.6.2 */
static bool is_token_char(char c)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr(others, c) != NULL);
}

bool head_may_begin(char first)
{
    return is_token_char(first);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* No control characters, NUL included, but (where allowed) the tab. */
static bool is_text(const char *text, const char *end, bool tab)
{
    for (; text < end; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < ' ' && !(tab && c == '\t')) || c == 0x7f)
            return false;
    }
    return true;
}

/* The line at *at, without its CRLF; *at goes to the next.  NULL: it ends otherwise. */
static char *take_line(char **at, char *end, char **line_end)
{
    char *line = *at;
    char *lf = memchr(line, '\n', (size_t)(end - line));
    if (lf == NULL || lf == line || lf[-1] != '\r')
        return NULL;
    *line_end = lf - 1;
    *at = lf + 1;
    return line;
}

/* The word up to a space, ended with NUL; *at goes behind it. */
static const char *take_word(char **at, char *end)
{
    char *word = *at;
    char *space = memchr(word, ' ', (size_t)(end - word));
    if (space == NULL || space == word)
        return NULL;
    *space = '\0';
    *at = space + 1;
    return word;
}

static bool is_token(const char *text)
{
    while (is_token_char(*text))
        text++;
    return *text == '\0';
}

static int parse_version(const char *text, size_t len, int *minor, struct error *err)
{
    bool http = len == 8 && memcmp(text, "HTTP/", 5) == 0 && text[6] == '.';
    if (!http)
        return error_set(err, E_INVALID, "the request line is malformed");
    if (text[5] != '1' || (text[7] != '0' && text[7] != '1'))
        return error_set(err, E_HTTP_VERSION, "the version %.8s is not served", text);
    *minor = text[7] - '0';
    return 0;
}

typedef int first_line_fn(char *line, char *end, struct head *out, struct error *err);

/* "GET /target HTTP/1.1" */
static int parse_request_line(char *line, char *end, struct head *out, struct error *err)
{
    if (!is_text(line, end, false))
        return error_set(err, E_INVALID, "a control character in the request line");
    out->method = take_word(&line, end);
    out->target = out->method != NULL ? take_word(&line, end) : NULL;
    if (out->target == NULL || !is_token(out->method))
        return error_set(err, E_INVALID, "the request line is malformed");
    return parse_version(line, (size_t)(end - line), &out->minor, err);
}

/* "HTTP/1.1 200 OK"; the reason may be missing (RFC 9112 section 4). */
static int parse_status_line(char *line, char *end, struct head *out, struct error *err)
{
    size_t len = (size_t)(end - line);
    if (!is_text(line, end, true))
        return error_set(err, E_INVALID, "a control character in the status line");
    bool is_status = len >= 12 && line[8] == ' ' && line[9] >= '1' && line[9] <= '5' &&
                     is_digit(line[10]) && is_digit(line[11]) && (len == 12 || line[12] == ' ');
    if (!is_status)
        return error_set(err, E_INVALID, "the status line is malformed");
    out->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    return parse_version(line, 8, &out->minor, err);
}

/* "Name: value" */
static int parse_field(char *line, char *end, struct head_field *out, struct error *err)
{
    char *at = line;
    while (at < end && is_token_char(*at))
        at++;
    if (at == line || at == end || *at != ':')
        return error_set(err, E_INVALID, "a header line is malformed");
    *at++ = '\0';
    while (at < end && is_blank(*at))
        at++;
    while (end > at && is_blank(end[-1]))
        end--;
    if (!is_text(at, end, true))
        return error_set(err, E_INVALID, "a control character in the header '%s'", line);
    *end = '\0';
    out->name = line;
    out->value = at;
    return 0;
}

static int parse(char *text, size_t len, first_line_fn *first, struct head *out, struct error *err)
{
    char *at = text;
    char *end = text + len;
    char *line_end;
    char *line = take_line(&at, end, &line_end);
    out->method = out->target = NULL;
    out->status = 0;
    out->count = 0;
    if (line == NULL)
        return error_set(err, E_INVALID, "a line does not end in CRLF");
    int rc = first(line, line_end, out, err);
    while (rc == 0) {
        line = take_line(&at, end, &line_end);
        if (line == NULL)
            return error_set(err, E_INVALID, "a line does not end in CRLF");
        if (line == line_end)
            return 0;
        if (out->count == HEAD_FIELDS_MAX)
            return error_set(err, E_HEADERS_TOO_LARGE, "more than %d headers", HEAD_FIELDS_MAX);
        rc = parse_field(line, line_end, &out->fields[out->count++], err);
    }
    return rc;
}

int head_parse(char *text, size_t len, struct head *out, struct error *err)
{
    return parse(text, len, parse_request_line, out, err);
}

int head_parse_reply(char *text, size_t len, struct head *out, struct error *err)
{
    return parse(text, len, parse_status_line, out, err);
}

/* --- what it says ----------------------------------------------------------------------------- */

const char *head_find(const struct head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++) {
        if (strcasecmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    }
    return NULL;
}

static int take_one(const char **value, const struct head_field *field, struct error *err)
{
    if (*value != NULL && strcmp(*value, field->value) != 0)
        return error_set(err, E_INVALID, "two %s headers", field->name);
    *value = field->value;
    return 0;
}

int head_length(const struct head *head, int64_t *length, bool *chunked, struct error *err)
{
    const char *text = NULL, *coding = NULL;
    uint64_t value = 0;
    int rc = 0;
    for (size_t i = 0; i < head->count && rc == 0; i++) {
        const struct head_field *f = &head->fields[i];
        if (strcasecmp(f->name, "Content-Length") == 0)
            rc = take_one(&text, f, err);
        else if (strcasecmp(f->name, "Transfer-Encoding") == 0)
            rc = take_one(&coding, f, err);
    }
    if (rc != 0)
        return rc;
    if (coding != NULL && (text != NULL || strcasecmp(coding, "chunked") != 0))
        return error_set(err, E_INVALID, "Transfer-Encoding '%s'%s", coding,
                         text != NULL ? " beside a Content-Length" : "");
    if (text != NULL && (parse_u64(text, &value, NULL) != 0 || value > INT64_MAX))
        return error_set(err, E_INVALID, "Content-Length '%s' is not a length", text);
    *chunked = coding != NULL;
    *length = text != NULL ? (int64_t)value : -1;
    return 0;
}
