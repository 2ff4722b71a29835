#include "net/syntax/chunk.h"

#include <assert.h>
#include <stdlib.h>

enum {
    CHUNK_DIGITS_MAX = 15, /* below 2^60, so that no sum of sizes overflows */
    CHUNK_LINE_MAX = 4096, /* extension of one chunk; all trailers together */
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int chunk_bad(struct error *err, const char *what)
{
    return error_set(err, E_INVALID, "chunked body: %s", what);
}

/* The line of the size is complete. */
static void chunk_sized(struct chunks *c)
{
    c->state = c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    c->digits = 0;
    c->line = 0;
}

/* What one reader takes for the size's end, another might take for a part of it. */
static int chunk_blank_char(struct chunks *c, char ch, struct error *err)
{
    if (ch == '\r')
        c->cr = true;
    else if (ch == ';')
        c->state = CHUNK_EXTENSION;
    else if (ch != ' ' && ch != '\t')
        return chunk_bad(err, "a chunk's size is malformed");
    else if (++c->line > CHUNK_LINE_MAX)
        return chunk_bad(err, "extensions or trailers are too long");
    return 0;
}

static int chunk_size_char(struct chunks *c, char ch, struct error *err)
{
    int digit = hex_digit(ch);
    if (digit >= 0) {
        if (c->digits == CHUNK_DIGITS_MAX)
            return chunk_bad(err, "a chunk's size is too large");
        c->left = c->left * 16 + (uint64_t)digit;
        c->digits++;
        return 0;
    }
    if (c->digits == 0)
        return chunk_bad(err, "a chunk's size is missing");
    c->state = CHUNK_BLANK;
    return chunk_blank_char(c, ch, err);
}

/* Text that nobody reads: extensions and trailers. */
static int chunk_skip_char(struct chunks *c, char ch, struct error *err)
{
    if (ch == '\r') {
        c->cr = true;
        return 0;
    }
    if (((unsigned char)ch < ' ' && ch != '\t') || ch == 0x7f)
        return chunk_bad(err, "a control character");
    if (++c->line > CHUNK_LINE_MAX)
        return chunk_bad(err, "extensions or trailers are too long");
    c->digits++; /* of a trailer's line: it is not empty */
    return 0;
}

static int chunk_line_end(struct chunks *c)
{
    switch (c->state) {
    case CHUNK_BLANK:
    case CHUNK_EXTENSION:
        chunk_sized(c);
        break;
    case CHUNK_AFTER:
        c->state = CHUNK_SIZE;
        break;
    case CHUNK_TRAILER: /* an empty line ends the body */
        if (c->digits == 0)
            c->state = CHUNK_END;
        c->digits = 0;
        break;
    case CHUNK_SIZE:
    case CHUNK_DATA:
    case CHUNK_END:
        abort(); /* there are no lines in these */
    }
    return 0;
}

static int chunk_char(struct chunks *c, char ch, struct error *err)
{
    if (c->cr) {
        c->cr = false;
        return ch == '\n' ? chunk_line_end(c) : chunk_bad(err, "CR without LF");
    }
    switch (c->state) {
    case CHUNK_SIZE:
        return chunk_size_char(c, ch, err);
    case CHUNK_BLANK:
        return chunk_blank_char(c, ch, err);
    case CHUNK_AFTER:
        c->cr = ch == '\r';
        return c->cr ? 0 : chunk_bad(err, "a chunk is longer than its size");
    default:
        return chunk_skip_char(c, ch, err);
    }
}

ssize_t chunk_next(struct chunks *c, const char *text, size_t len, const char **data,
                   size_t *data_len, struct error *err)
{
    size_t at = 0;
    while (at < len && c->state != CHUNK_DATA && c->state != CHUNK_END) {
        int rc = chunk_char(c, text[at++], err);
        if (rc != 0)
            return rc;
    }
    *data = text + at;
    *data_len = 0;
    if (c->state == CHUNK_DATA)
        *data_len = len - at < c->left ? len - at : (size_t)c->left;
    return (ssize_t)at;
}

void chunk_used(struct chunks *c, size_t len)
{
    assert(c->state == CHUNK_DATA && len <= c->left);
    c->left -= len;
    if (c->left == 0)
        c->state = CHUNK_AFTER;
}

bool chunk_ended(const struct chunks *c)
{
    return c->state == CHUNK_END;
}
