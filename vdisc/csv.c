#include "vdisc/csv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum state {
    AT_FIELD, /* nothing of the field yet */
    PLAIN,
    QUOTED,
    AFTER_QUOTE, /* the end of the field, or the first of two quotes */
    AFTER_RETURN,
};

/* Spreadsheets begin a file of UTF-8 with it. */
static const unsigned char mark_bytes[] = {0xef, 0xbb, 0xbf};
#define MARK_DONE SIZE_MAX

struct csv {
    csv_row *row;
    void *context;
    enum state state;
    uint64_t line, first_line; /* now, and of the row */
    uint64_t quote_line;       /* of the opening quote */
    size_t mark;               /* bytes of the byte order mark that were seen, or MARK_DONE */
    size_t starts[CSV_FIELDS_MAX];
    size_t count; /* fields that have begun */
    size_t used;
    char text[CSV_ROW_MAX]; /* the fields, each with a zero behind it */
};

struct csv *csv_new(csv_row *row, void *context)
{
    struct csv *c = xcalloc(1, sizeof *c);
    c->row = row;
    c->context = context;
    c->line = c->first_line = 1;
    return c;
}

void csv_free(struct csv *c)
{
    free(c);
}

static int wrong(const struct csv *c, const char *what, struct error *err)
{
    return error_set(err, E_INVALID, "line %llu: %s", (unsigned long long)c->line, what);
}

static int put(struct csv *c, char byte, struct error *err)
{
    if (c->used >= CSV_ROW_MAX)
        return wrong(c, "the row has more than 64 KiB", err);
    c->text[c->used++] = byte;
    return 0;
}

static int begin_field(struct csv *c, struct error *err)
{
    if (c->count == CSV_FIELDS_MAX)
        return wrong(c, "the row has more than 16 fields", err);
    c->starts[c->count++] = c->used;
    return 0;
}

static int end_row(struct csv *c, struct error *err)
{
    const char *fields[CSV_FIELDS_MAX];
    const size_t count = c->count;
    for (size_t i = 0; i < count; i++)
        fields[i] = c->text + c->starts[i];
    bool empty = count == 1 && c->used == 1 && c->state != AFTER_QUOTE;
    uint64_t line = c->first_line;
    c->count = c->used = 0;
    c->state = AT_FIELD;
    return empty ? 0 : c->row(c->context, line, fields, count, err);
}

/* A comma or the end of a line, outside of quotes. */
static int end_field(struct csv *c, bool last, struct error *err)
{
    int rc = c->count == 0 || c->state == AT_FIELD ? begin_field(c, err) : 0;
    if (rc == 0)
        rc = put(c, '\0', err);
    if (rc != 0)
        return rc;
    if (last)
        return end_row(c, err);
    c->state = AT_FIELD;
    return 0;
}

static int new_line(struct csv *c, struct error *err)
{
    int rc = end_field(c, true, err);
    c->first_line = ++c->line;
    return rc;
}

static int take_plain(struct csv *c, char byte, struct error *err)
{
    if (byte == ',')
        return end_field(c, false, err);
    if (byte == '\n')
        return new_line(c, err);
    if (byte == '"' && c->state != AT_FIELD)
        return wrong(c, "a quote inside of a field: put the field in quotes, and \"\" for it", err);
    if (byte == '\0')
        return wrong(c, "a zero byte", err);
    if (c->state == AT_FIELD) {
        int rc = begin_field(c, err);
        c->state = byte == '"' ? QUOTED : PLAIN;
        c->quote_line = c->line;
        if (rc != 0 || byte == '"')
            return rc;
    }
    return put(c, byte, err);
}

static int take_quoted(struct csv *c, char byte, struct error *err)
{
    if (byte == '"') {
        c->state = AFTER_QUOTE;
        return 0;
    }
    if (byte == '\0')
        return wrong(c, "a zero byte", err);
    c->line += byte == '\n';
    return put(c, byte, err);
}

static int take_after_quote(struct csv *c, char byte, struct error *err)
{
    if (byte == ',')
        return end_field(c, false, err);
    if (byte == '\n')
        return new_line(c, err);
    if (byte != '"')
        return wrong(c, "text follows the closing quote of a field", err);
    c->state = QUOTED;
    return put(c, byte, err);
}

static int take(struct csv *c, char byte, struct error *err)
{
    if (c->state == AFTER_RETURN)
        return byte == '\n' ? new_line(c, err)
                            : wrong(c, "a carriage return without a line feed", err);
    if (c->state == QUOTED)
        return take_quoted(c, byte, err);
    if (byte == '\r') {
        /* A row that ends: an empty last field begins and ends here. */
        int rc = c->state == AT_FIELD ? begin_field(c, err) : 0;
        c->state = AFTER_RETURN;
        return rc;
    }
    return c->state == AFTER_QUOTE ? take_after_quote(c, byte, err) : take_plain(c, byte, err);
}

/* What only began like a mark is text. */
static int end_mark(struct csv *c, struct error *err)
{
    const size_t seen = c->mark;
    int rc = 0;
    c->mark = MARK_DONE;
    for (size_t i = 0; rc == 0 && seen < sizeof mark_bytes && i < seen; i++)
        rc = take(c, (char)mark_bytes[i], err);
    return rc;
}

static int take_first(struct csv *c, char byte, struct error *err)
{
    if (c->mark < sizeof mark_bytes && (unsigned char)byte == mark_bytes[c->mark]) {
        c->mark++;
        return 0;
    }
    int rc = end_mark(c, err);
    return rc == 0 ? take(c, byte, err) : rc;
}

int csv_feed(struct csv *c, const void *bytes, size_t len, struct error *err)
{
    const char *at = bytes;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < len; i++)
        rc = c->mark == MARK_DONE ? take(c, at[i], err) : take_first(c, at[i], err);
    return rc;
}

int csv_end(struct csv *c, struct error *err)
{
    int rc = c->mark == MARK_DONE ? 0 : end_mark(c, err);
    if (rc != 0)
        return rc;
    if (c->state == QUOTED) {
        c->line = c->quote_line;
        return wrong(c, "a quote that begins here is not closed", err);
    }
    if (c->state == AFTER_RETURN)
        return wrong(c, "a carriage return without a line feed", err);
    return c->count == 0 && c->state == AT_FIELD ? 0 : end_field(c, true, err);
}
