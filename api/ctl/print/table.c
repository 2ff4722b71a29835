#include "api/ctl/print/table.h"

#include <stdarg.h>

#include "api/ctl/print/text.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

struct table {
    const char *const *headers;
    size_t columns;
    char **cells; /* row by row */
    size_t count;
    size_t room;
};

struct table *table_new(const char *const *headers)
{
    struct table *t = xcalloc(1, sizeof *t);
    t->headers = headers;
    while (headers[t->columns] != NULL)
        t->columns++;
    return t;
}

void table_free(struct table *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

size_t table_rows(const struct table *t)
{
    return t->count / t->columns;
}

static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void table_own(struct table *t, char *text)
{
    if (t->count == t->room) {
        t->room = t->room > 0 ? t->room * 2 : 64;
        t->cells = xrealloc(t->cells, t->room * sizeof *t->cells);
    }
    t->cells[t->count++] = text;
}

void table_cell(struct table *t, const char *text)
{
    table_own(t, text_clean(text != NULL ? text : "-"));
}

void table_cellf(struct table *t, const char *fmt, ...)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    table_cell(t, buf_str(&text));
}

/* States that deserve a colour, wherever they stand. */
static const char *colour_of(const char *text)
{
    static const struct {
        const char *text;
        const char *colour;
    } rows[] = {
        {"active", "\033[32m"},      {"finished", "\033[32m"},    {"ready", "\033[32m"},
        {"unreachable", "\033[31m"}, {"down", "\033[31m"},        {"failed", "\033[31m"},
        {"aborted", "\033[33m"},     {"maintenance", "\033[33m"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].text, text) == 0)
            return rows[i].colour;
    }
    return NULL;
}

static void print_cell(FILE *out, const char *text, size_t width, bool last, bool colour)
{
    const char *on = colour ? colour_of(text) : NULL;
    fprintf(out, "%s%s%s", on != NULL ? on : "", text, on != NULL ? "\033[0m" : "");
    if (!last)
        fprintf(out, "%*s", (int)(width - width_of(text) + 2), "");
}

static size_t column_width(const struct table *t, size_t column, bool headers)
{
    size_t width = headers ? width_of(t->headers[column]) : 0;
    for (size_t i = column; i < t->count; i += t->columns) {
        size_t w = width_of(t->cells[i]);
        width = w > width ? w : width;
    }
    return width;
}

void table_print(const struct table *t, FILE *out, bool headers, bool colour)
{
    _cleanup_free_ size_t *width = xcalloc(t->columns, sizeof *width);
    for (size_t c = 0; c < t->columns; c++)
        width[c] = column_width(t, c, headers);
    for (size_t c = 0; headers && c < t->columns; c++)
        print_cell(out, t->headers[c], width[c], c + 1 == t->columns, false);
    if (headers)
        fputc('\n', out);
    for (size_t i = 0; i < t->count; i++) {
        bool last = i % t->columns + 1 == t->columns;
        print_cell(out, t->cells[i], width[i % t->columns], last, colour);
        if (last)
            fputc('\n', out);
    }
}

void table_put_clean(FILE *out, const char *text, size_t width)
{
    _cleanup_free_ char *clean = text_clean(text);
    size_t w = width_of(clean);
    fputs(clean, out);
    if (w < width)
        fprintf(out, "%*s", (int)(width - w), "");
}
