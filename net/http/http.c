#include "net/http/http.h"

#include <string.h>
#include <strings.h>

#include "common/arena.h"
#include "common/clock.h"

static const char *const method_names[] = {
    [HTTP_GET] = "GET",     [HTTP_HEAD] = "HEAD",     [HTTP_PUT] = "PUT",
    [HTTP_POST] = "POST",   [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
    [HTTP_PATCH] = "PATCH", [HTTP_OTHER] = "OTHER",   [HTTP_ANY] = "any",
};

const char *http_method_name(enum http_method m)
{
    return method_names[m];
}

enum http_method http_method_parse(const char *name)
{
    for (enum http_method m = 0; m < HTTP_OTHER; m++) {
        if (strcmp(method_names[m], name) == 0)
            return m;
    }
    return HTTP_OTHER;
}

const char *http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].status == status)
            return rows[i].text;
    }
    return "Status";
}

/* --- ranges ----------------------------------------------------------------------------------- */

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Digits, saturating: a position beyond 2^64 is as good as the greatest.  False: no digit. */
static bool take_number(const char **at, uint64_t *out)
{
    const char *p = *at;
    uint64_t n = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    bool any = p != *at;
    *at = p;
    *out = n;
    return any;
}

static enum http_range_result range_suffix(uint64_t suffix, uint64_t size, struct http_range *out)
{
    if (suffix == 0)
        return HTTP_RANGE_UNSATISFIABLE;
    if (size == 0)
        return HTTP_RANGE_NONE; /* all of nothing cannot be written as a Content-Range */
    out->length = suffix < size ? suffix : size;
    out->offset = size - out->length;
    return HTTP_RANGE_OK;
}

static enum http_range_result range_from(uint64_t first, uint64_t last, uint64_t size,
                                         struct http_range *out)
{
    if (last < first)
        return HTTP_RANGE_NONE; /* malformed */
    if (first >= size)
        return HTTP_RANGE_UNSATISFIABLE;
    out->offset = first;
    out->length = (last < size ? last : size - 1) - first + 1;
    return HTTP_RANGE_OK;
}

enum http_range_result http_range_parse(const char *header, uint64_t size, struct http_range *out)
{
    if (header == NULL || strncasecmp(header, "bytes=", 6) != 0)
        return HTTP_RANGE_NONE;
    const char *at = skip_space(header + 6);
    uint64_t first;
    bool has_first = take_number(&at, &first);
    if (*at++ != '-')
        return HTTP_RANGE_NONE;
    uint64_t last;
    bool has_last = take_number(&at, &last);
    if (*skip_space(at) != '\0' || (!has_first && !has_last))
        return HTTP_RANGE_NONE;
    if (!has_first)
        return range_suffix(last, size, out);
    return range_from(first, has_last ? last : UINT64_MAX, size, out);
}

const char *http_header_line(struct arena *a, const char *name, const char *value)
{
    return value[0] != '\0' ? arena_printf(a, "%s: %s", name, value) : arena_printf(a, "%s;", name);
}

bool http_list_has(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (;;) {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, " \t,");
        if (n == 0)
            return false;
        if (n == len && strncasecmp(list, word, len) == 0)
            return true;
        list += n;
    }
}

/* --- conditions ------------------------------------------------------------------------------- */

/* One entity tag of a list: its opaque part without the quotes. */
struct etag {
    const char *text;
    size_t len;
    bool weak;
};

/* Takes the next tag of "W/\"a\", \"b\"".  False at the end, and at what cannot be a tag. */
static bool etag_next(const char **list, struct etag *out)
{
    const char *at = *list + strspn(*list, " \t,");
    if (*at == '\0')
        return false;
    out->weak = strncmp(at, "W/", 2) == 0;
    at += out->weak ? 2 : 0;
    bool quoted = *at == '"';
    at += quoted ? 1 : 0;
    out->text = at;
    out->len = strcspn(at, quoted ? "\"" : " \t,");
    at += out->len;
    if (quoted && *at++ != '"')
        return false;
    *list = at;
    return true;
}

static bool etag_same(const struct etag *a, const struct etag *b, bool strong)
{
    if (strong && (a->weak || b->weak))
        return false;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Whether the list names the object: "*" any that exists, else one of the tags. */
static bool etag_matches(const char *list, const char *etag, bool strong)
{
    if (etag == NULL)
        return false;
    const char *star = skip_space(list);
    if (*star == '*' && *skip_space(star + 1) == '\0')
        return true;
    for (struct etag own; etag_next(&etag, &own);) {
        const char *rest = list;
        for (struct etag other; etag_next(&rest, &other);) {
            if (etag_same(&own, &other, strong))
                return true;
        }
    }
    return false;
}

static bool modified_after(const char *date, int64_t modified_s, bool if_unreadable)
{
    int64_t limit;
    if (clock_parse_http(date, &limit) != 0)
        return if_unreadable;
    return modified_s > limit;
}

int http_conditions_check(const struct http_conditions *c, enum http_method method,
                          const char *etag, int64_t modified_s)
{
    bool reads = method == HTTP_GET || method == HTTP_HEAD;
    bool exists = etag != NULL;
    if (c->if_match != NULL) {
        if (!etag_matches(c->if_match, etag, true))
            return E_PRECONDITION;
    } else if (c->if_unmodified_since != NULL && exists) {
        if (modified_after(c->if_unmodified_since, modified_s, false))
            return E_PRECONDITION;
    }
    if (c->if_none_match != NULL) {
        if (etag_matches(c->if_none_match, etag, false))
            return reads ? E_NOT_MODIFIED : E_PRECONDITION;
    } else if (c->if_modified_since != NULL && exists && reads) {
        if (!modified_after(c->if_modified_since, modified_s, true))
            return E_NOT_MODIFIED;
    }
    return 0;
}

bool http_if_range_holds(const char *if_range, const char *etag)
{
    if (if_range == NULL)
        return true;
    struct etag own;
    struct etag other;
    return etag_next(&etag, &own) && etag_next(&if_range, &other) &&
           *skip_space(if_range) == '\0' && etag_same(&own, &other, true);
}
