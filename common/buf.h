/* A growable byte buffer, always NUL-terminated one past its end, so that `data` is a C string
 * when its content is text.
 *
 *     _cleanup_buf_ struct buf b = BUF_INIT;
 *     buf_printf(&b, "%s/%u", dir, n);
 *
 * Growing aborts the program when memory is out: buffers that a peer can make large are bounded
 * by their owners before they grow (http body limits, list page sizes, ...). */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* never NULL after the first append */
    size_t len;
    size_t cap;
};

#define BUF_INIT ((struct buf){0})
#define _cleanup_buf_ _cleanup_(buf_done) /* common/cleanup.h */

void buf_done(struct buf *b);                 /* frees; the buffer is empty and usable again */
void buf_clear(struct buf *b);                /* len = 0; keeps the memory */
void buf_reserve(struct buf *b, size_t more); /* room for `more` bytes beyond len */
void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
const char *buf_str(struct buf *b); /* the content; "" when empty */
char *buf_steal(struct buf *b);     /* the malloc'ed string; the buffer becomes empty */

/* The text as the inside of a JSON string, without the quotes.  A byte that is no part of valid
 * UTF-8 becomes the four characters \xNN (in JSON: "\\xNN"), so that the result always is JSON. */
void buf_put_json_escaped(struct buf *b, const char *text, size_t len);
/* " QUOTEtextQUOTE |": one cell of a table in Markdown, with '|' in the text escaped.  An empty
 * text has no quotes. */
void buf_put_cell(struct buf *b, const char *text, const char *quote);
/* Percent-encoding of everything but RFC 3986 unreserved characters and those in `keep`. */
void buf_put_url_escaped(struct buf *b, const char *text, size_t len, const char *keep);
