/* A record's bytes are walked from header to header, contents being jumped over. */
#include "sort/shard/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "sort/spec/order.h"
#include "sort/shard/untar.h"

#define RAW_MAX \
    (2 * SORT_CONTENT_MAX) /* bytes that are read: white space around the key included */

/* --- texts ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *at)
{
    size_t n = 0;
    while (is_digit(at[n]))
        n++;
    return n;
}

static const char *after_sign(const char *at)
{
    return *at == '+' || *at == '-' ? at + 1 : at;
}

static bool parse_int(const char *text, uint64_t *number)
{
    const char *at = after_sign(text);
    size_t n = digits(at);
    if (n == 0 || at[n] != '\0')
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    *number = (uint64_t)value ^ (UINT64_C(1) << 63);
    return errno == 0;
}

/* Digits with or without a point, and an exponent: nothing else that strtod() would take. */
static bool is_decimal(const char *text)
{
    const char *at = after_sign(text);
    size_t whole = digits(at);
    at += whole;
    size_t fraction = 0;
    if (*at == '.')
        at += 1 + (fraction = digits(at + 1));
    if (whole + fraction == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at = after_sign(at + 1);
        size_t exponent = digits(at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return *at == '\0';
}

/* Of doubles the bits compare as numbers, but for the negative ones, which do so the other way. */
static bool parse_float(const char *text, uint64_t *number)
{
    if (!is_decimal(text))
        return false;
    double value = strtod(text, NULL) + 0.0; /* there is one zero */
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    *number = bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
    return true;
}

bool content_number(enum sort_content_type type, const char *text, size_t len, uint64_t *number)
{
    *number = 0;
    if (strlen(text) != len)
        return false;
    switch (type) {
    case SORT_CONTENT_INT:
        return parse_int(text, number);
    case SORT_CONTENT_FLOAT:
        return parse_float(text, number);
    case SORT_CONTENT_STRING:
        return len <= SORT_CONTENT_MAX;
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(struct buf *text)
{
    size_t begin = 0;
    while (text->len > 0 && is_space(text->data[text->len - 1]))
        text->len--;
    while (begin < text->len && is_space(text->data[begin]))
        begin++;
    text->len -= begin;
    if (text->data == NULL)
        return;
    memmove(text->data, text->data + begin, text->len);
    text->data[text->len] = '\0';
}

/* --- walking ---------------------------------------------------------------------------------- */

struct search {
    const struct group_record *record;
    const char *extension;
    struct content_key *out;
    struct untar untar;
    bool wanted; /* the present member is the one */
    bool found;
    bool too_long;
};

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    (void)err;
    struct search *s = ctx;
    size_t name = s->record->name_len;
    size_t extension = strlen(s->extension);
    bool is_file = m->type < '1' || m->type > '6';
    s->wanted = is_file && m->path_len == name + extension &&
                memcmp(m->path, s->record->name, name) == 0 &&
                memcmp(m->path + name, s->extension, extension) == 0;
    if (s->wanted) {
        s->found = true;
        s->too_long = m->size > RAW_MAX;
    }
    return 0;
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    struct search *s = ctx;
    if (s->wanted && !s->too_long)
        buf_append(&s->out->text, data, len);
    return 0;
}

static int on_end(void *ctx, struct error *err)
{
    (void)err;
    struct search *s = ctx;
    s->wanted = false;
    return 0;
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

/* A piece of the record, which begins and ends between headers or contents. */
static int walk_piece(struct search *s, int fd, uint64_t at, const struct record_piece *p,
                      struct error *err)
{
    int rc = 0;
    for (uint64_t done = 0; rc == 0 && done < p->length;) {
        unsigned char block[TAR_BLOCK];
        uint64_t skipped = s->wanted && !s->too_long ? 0 : untar_skip(&s->untar, p->length - done);
        done += skipped;
        if (skipped > 0)
            continue;
        if (p->is_inline)
            memcpy(block, s->record->inlines + p->offset + done, sizeof block);
        else
            rc = file_pread_full(fd, block, sizeof block, at + p->offset + done, err);
        if (rc == 0)
            rc = untar_write(&s->untar, block, sizeof block, err);
        done += sizeof block;
    }
    return rc;
}

int content_read(const struct sort_spec *spec, int fd, uint64_t at, const struct group_record *r,
                 struct content_key *out, struct error *err)
{
    struct search s = {.record = r, .extension = spec->content_extension, .out = out};
    int rc = 0;
    buf_clear(&out->text);
    untar_init(&s.untar, &events, &s);
    for (size_t i = 0; rc == 0 && i < r->piece_count; i++)
        rc = walk_piece(&s, fd, at, &r->pieces[i], err);
    untar_done(&s.untar);
    trim(&out->text);
    out->state = !s.found ? CONTENT_MISSING : CONTENT_FOUND;
    if (s.found && (s.too_long || !content_number(spec->content_type, buf_str(&out->text),
                                                  out->text.len, &out->number)))
        out->state = CONTENT_MALFORMED;
    return rc;
}
