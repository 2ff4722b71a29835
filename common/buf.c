#include "common/buf.h"

#include "common/mem.h"
#include "common/utf8.h"

enum { BUF_FIRST = 64 };

void buf_done(struct buf *b)
{
    free(b->data);
    *b = BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(b->len, more, &need) || __builtin_add_overflow(need, 1, &need))
        need = SIZE_MAX; /* no allocator gives that: xrealloc ends the program */
    if (need <= b->cap)
        return;
    size_t doubled = b->cap <= SIZE_MAX / 2 ? b->cap * 2 : SIZE_MAX;
    size_t cap = need > doubled ? need : doubled;
    b->cap = cap > BUF_FIRST ? cap : BUF_FIRST;
    b->data = xrealloc(b->data, b->cap);
    b->data[b->len] = '\0';
}

void buf_append(struct buf *b, const void *data, size_t len)
{
    buf_reserve(b, len);
    if (len != 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    buf_reserve(b, BUF_FIRST);
    int len = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    if (len > 0 && (size_t)len >= b->cap - b->len) {
        buf_reserve(b, (size_t)len);
        vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    if (len > 0)
        b->len += (size_t)len;
    b->data[b->len] = '\0';
}

const char *buf_str(struct buf *b)
{
    return b->data != NULL ? b->data : "";
}

char *buf_steal(struct buf *b)
{
    buf_reserve(b, 0);
    char *text = b->data;
    *b = BUF_INIT;
    return text;
}

/* The letter of a two-character JSON escape, or 0. */
static char json_short_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
        return c;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static void buf_put_json_char(struct buf *b, const char *text, size_t size)
{
    unsigned char c = (unsigned char)text[0];
    char letter = json_short_escape(text[0]);
    if (size == 0)
        buf_printf(b, "\\\\x%02x", c);
    else if (letter != 0)
        buf_printf(b, "\\%c", letter);
    else if (c < 0x20 || c == 0x7f)
        buf_printf(b, "\\u%04x", c);
    else
        buf_append(b, text, size);
}

/* The bytes at the beginning that stand for themselves: most names have no others. */
static size_t json_plain(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len && text[at] >= 0x20 && text[at] < 0x7f && text[at] != '"' && text[at] != '\\')
        at++;
    return at;
}

void buf_put_json_escaped(struct buf *b, const char *text, size_t len)
{
    buf_reserve(b, len);
    for (size_t at = 0; at < len;) {
        size_t plain = json_plain(text + at, len - at);
        buf_append(b, text + at, plain);
        at += plain;
        if (at == len)
            return;
        size_t size = utf8_sequence(text + at, len - at);
        buf_put_json_char(b, text + at, size);
        at += size != 0 ? size : 1;
    }
}

static int url_plain(unsigned char c, const char *keep)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return 1;
    return c != '\0' && (strchr("-._~", c) != NULL || strchr(keep, c) != NULL);
}

void buf_put_url_escaped(struct buf *b, const char *text, size_t len, const char *keep)
{
    buf_reserve(b, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (url_plain(c, keep))
            buf_putc(b, text[i]);
        else
            buf_printf(b, "%%%02X", c);
    }
}

void buf_put_cell(struct buf *b, const char *text, const char *quote)
{
    if (text[0] == '\0')
        quote = "";
    buf_printf(b, " %s", quote);
    for (; *text != '\0'; text++) {
        if (*text == '|')
            buf_putc(b, '\\');
        buf_putc(b, *text);
    }
    buf_printf(b, "%s |", quote);
}
