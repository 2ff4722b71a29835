#include "gateway/etag.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/parse.h"

enum { FIELDS = 3, DIGITS = 32, TAG_CHARS = DIGITS + 2 }; /* "-1" */

static const int widths[FIELDS] = {12, 10, 10}; /* hex digits: term, map, counter */

/* The next number of a version and the dot behind it. */
static bool take_number(const char **text, const char *end, char after, uint64_t *value)
{
    char digits[24];
    size_t len = strspn(*text, "0123456789");
    if (len == 0 || len >= sizeof digits || *text + len > end || (*text)[len] != after)
        return false;
    memcpy(digits, *text, len);
    digits[len] = '\0';
    *text += len + 1;
    return parse_u64(digits, value, NULL) == 0;
}

/* "1.7.3" between quotes, of which `text` is the first. */
static bool read_version(const char *text, uint64_t fields[static FIELDS])
{
    const char *end = text + strlen(text);
    if (*text++ != '"')
        return false;
    for (int i = 0; i < FIELDS; i++) {
        if (!take_number(&text, end, i < FIELDS - 1 ? '.' : '"', &fields[i]) ||
            fields[i] >> (4 * widths[i]) != 0)
            return false;
    }
    return text == end;
}

void etag_put_s3(const char *native, struct buf *out)
{
    uint64_t fields[FIELDS];
    if (!read_version(native, fields)) {
        buf_puts(out, native);
        return;
    }
    buf_putc(out, '"');
    for (int i = 0; i < FIELDS; i++)
        buf_printf(out, "%0*llx", widths[i], (unsigned long long)fields[i]);
    buf_puts(out, "-1\"");
}

static bool is_version_tag(const char *tag, size_t len)
{
    return len == TAG_CHARS && strspn(tag, "0123456789abcdef") == DIGITS &&
           memcmp(tag + DIGITS, "-1", 2) == 0;
}

static void put_version(const char *tag, struct buf *out)
{
    const char *separator = "";
    for (int i = 0; i < FIELDS; i++) {
        char digits[16];
        snprintf(digits, sizeof digits, "%.*s", widths[i], tag);
        buf_printf(out, "%s%llu", separator, strtoull(digits, NULL, 16));
        separator = ".";
        tag += widths[i];
    }
}

/* The version that the text names, in quotes.  False: it names none. */
static bool put_quoted_version(const char *text, size_t len, struct buf *out)
{
    bool quoted = len >= 2 && text[0] == '"' && text[len - 1] == '"';
    const char *tag = quoted ? text + 1 : text;
    if (!is_version_tag(tag, quoted ? len - 2 : len))
        return false;
    buf_putc(out, '"');
    put_version(tag, out);
    buf_putc(out, '"');
    return true;
}

/* One member of the list, without blanks around it.  The tag itself may be that of one part. */
static void put_member(const char *text, size_t len, struct buf *out)
{
    if (!put_quoted_version(text, len, out)) {
        buf_append(out, text, len);
        return;
    }
    buf_puts(out, *text == '"' ? ", " : ", \"");
    buf_append(out, text, len);
    buf_puts(out, *text == '"' ? "" : "\"");
}

void etag_put_native_one(const char *tag, struct buf *out)
{
    if (!put_quoted_version(tag, strlen(tag), out))
        buf_puts(out, tag);
}

void etag_put_native(const char *list, struct buf *out)
{
    for (const char *at = list;;) {
        at += strspn(at, " \t");
        size_t whole = strcspn(at, ","), len = whole;
        while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
            len--;
        put_member(at, len, out);
        if (at[whole] == '\0')
            return;
        buf_puts(out, ", ");
        at += whole + 1;
    }
}
