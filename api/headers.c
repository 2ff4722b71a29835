#include "api/headers.h"

#include <ctype.h>
#include <strings.h>

#include "common/clock.h"
#include "common/parse.h"

void headers_done(struct headers *h)
{
    buf_done(&h->text);
    h->count = 0;
}

static bool header_is_status_line(const char *line, size_t len)
{
    return len >= 5 && memcmp(line, "HTTP/", 5) == 0;
}

static void trim(const char **text, size_t *len)
{
    while (*len > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*len)--;
    }
    while (*len > 0 && isspace((unsigned char)(*text)[*len - 1]))
        (*len)--;
}

bool headers_add_line(struct headers *h, const char *line, size_t len)
{
    if (header_is_status_line(line, len)) {
        buf_clear(&h->text);
        h->count = 0;
        return true;
    }
    const char *colon = memchr(line, ':', len);
    if (colon == NULL || memchr(line, '\0', len) != NULL)
        return true; /* the empty line at the end; what is no header is not looked at */
    if (h->text.len + len + 2 > HEADERS_MAX_BYTES)
        return false;
    const char *name = line;
    size_t name_len = (size_t)(colon - line);
    const char *value = colon + 1;
    size_t value_len = len - name_len - 1;
    trim(&name, &name_len);
    trim(&value, &value_len);
    buf_append(&h->text, name, name_len);
    buf_putc(&h->text, '\0');
    buf_append(&h->text, value, value_len);
    buf_putc(&h->text, '\0');
    h->count++;
    return true;
}

bool headers_next(const struct headers *h, size_t *at, struct header *out)
{
    if (*at >= h->text.len)
        return false;
    out->name = h->text.data + *at;
    out->value = out->name + strlen(out->name) + 1;
    *at = (size_t)(out->value - h->text.data) + strlen(out->value) + 1;
    return true;
}

const char *headers_get(const struct headers *h, const char *name)
{
    struct header one;
    for (size_t at = 0; headers_next(h, &at, &one);) {
        if (strcasecmp(one.name, name) == 0)
            return one.value;
    }
    return NULL;
}

uint64_t headers_get_u64(const struct headers *h, const char *name)
{
    const char *text = headers_get(h, name);
    uint64_t value;
    if (text == NULL || parse_u64(text, &value, NULL) != 0)
        return UINT64_MAX;
    return value;
}

/* Digits up to `stop`; the text after it, or NULL. */
static const char *range_number(const char *text, char stop, uint64_t *out)
{
    char digits[24];
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof digits || text[n] != stop)
        return NULL;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (parse_u64(digits, out, NULL) != 0)
        return NULL;
    return stop == '\0' ? text + n : text + n + 1;
}

bool headers_parse_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *total)
{
    if (text == NULL || strncasecmp(text, "bytes ", 6) != 0)
        return false;
    text = range_number(text + 6, '-', first);
    if (text == NULL)
        return false;
    text = range_number(text, '/', last);
    if (text == NULL || *last < *first)
        return false;
    if (strcmp(text, "*") == 0) {
        *total = UINT64_MAX;
        return true;
    }
    return range_number(text, '\0', total) != NULL && *total > *last;
}

uint64_t headers_retry_after_ms(const struct headers *h, int64_t now_s)
{
    const char *text = headers_get(h, "Retry-After");
    uint64_t seconds;
    int64_t date_s;
    if (text == NULL)
        return 0;
    if (parse_u64(text, &seconds, NULL) == 0)
        return seconds < 86400 ? seconds * 1000 : 86400 * 1000;
    if (clock_parse_http(text, &date_s) == 0 && date_s > now_s)
        return date_s - now_s < 86400 ? (uint64_t)(date_s - now_s) * 1000 : 86400 * 1000;
    return 0;
}
