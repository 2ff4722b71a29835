/* A document is built for JSON elsewhere; this one may have millions of strings, and needs none. */
#include <string.h>

#include "common/utf8.h"
#include "sort/spec/keymap.h"
#include "sort/spec/keymap_read.h"

#define TEXT_MAX_BYTES KEYMAP_KEY_MAX
#define BEHIND_BACKSLASH 5

/* What may come next, white space aside. */
enum state {
    AT_START,        /* { */
    AT_FIRST_FORMAT, /* " } */
    AT_FORMAT,       /* " */
    BEHIND_FORMAT,   /* : */
    AT_KEYS,         /* [ */
    AT_FIRST_KEY,    /* " ] */
    AT_KEY,          /* " */
    BEHIND_KEY,      /* , ] */
    BEHIND_KEYS,     /* , } */
    AT_END,
};

static int refuse(const struct keymap_json *j, const char *why, struct error *err)
{
    return error_set(err, E_SPEC, "byte %llu of the JSON: %s", (unsigned long long)j->offset, why);
}

/* --- punctuation ------------------------------------------------------------------------------ */

static const struct move {
    enum state from;
    char c;
    enum state to;
} moves[] = {
    {AT_START, '{', AT_FIRST_FORMAT}, {AT_FIRST_FORMAT, '}', AT_END},
    {BEHIND_FORMAT, ':', AT_KEYS},    {AT_KEYS, '[', AT_FIRST_KEY},
    {AT_FIRST_KEY, ']', BEHIND_KEYS}, {BEHIND_KEY, ',', AT_KEY},
    {BEHIND_KEY, ']', BEHIND_KEYS},   {BEHIND_KEYS, ',', AT_FORMAT},
    {BEHIND_KEYS, '}', AT_END},
};

static bool takes_text(int state)
{
    return state == AT_FIRST_FORMAT || state == AT_FORMAT || state == AT_FIRST_KEY ||
           state == AT_KEY;
}

static int punctuation(struct keymap_json *j, char c, struct error *err)
{
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return 0;
    if (c == '"' && takes_text(j->state)) {
        j->in_text = true;
        buf_clear(&j->text);
        return 0;
    }
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if ((int)moves[i].from == j->state && moves[i].c == c) {
            j->state = (int)moves[i].to;
            return 0;
        }
    }
    return refuse(j, "not of the form {\"format\": [\"key\", …], …}", err);
}

/* --- texts ------------------------------------------------------------------------------------ */

static void text_put(struct keymap_json *j, const char *bytes, size_t len)
{
    if (j->text.len + len > TEXT_MAX_BYTES)
        j->too_long = true;
    else
        buf_append(&j->text, bytes, len);
}

static void put_code(struct keymap_json *j, unsigned code)
{
    char out[4];
    size_t len = 0;
    if (code < 0x80) {
        out[len++] = (char)code;
    } else if (code < 0x800) {
        out[len++] = (char)(0xC0 | code >> 6);
    } else if (code < 0x10000) {
        out[len++] = (char)(0xE0 | code >> 12);
        out[len++] = (char)(0x80 | (code >> 6 & 0x3F));
    } else {
        out[len++] = (char)(0xF0 | code >> 18);
        out[len++] = (char)(0x80 | (code >> 12 & 0x3F));
        out[len++] = (char)(0x80 | (code >> 6 & 0x3F));
    }
    if (code >= 0x80)
        out[len++] = (char)(0x80 | (code & 0x3F));
    text_put(j, out, len);
}

static int end_unicode(struct keymap_json *j, struct error *err)
{
    bool second = j->code >= 0xDC00 && j->code < 0xE000;
    if (second != (j->high != 0) || j->code == 0)
        return refuse(j, j->code == 0 ? "a text with a NUL" : "half of a surrogate pair", err);
    if (j->code >= 0xD800 && j->code < 0xDC00) {
        j->high = j->code;
        return 0;
    }
    put_code(j, second ? 0x10000 + ((j->high - 0xD800) << 10) + (j->code - 0xDC00) : j->code);
    j->high = 0;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static int escaped(struct keymap_json *j, char c, struct error *err)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    if (j->escape < BEHIND_BACKSLASH) {
        int digit = hex_digit(c);
        if (digit < 0)
            return refuse(j, "not four hex digits behind \\u", err);
        j->code = j->code << 4 | (unsigned)digit;
        return --j->escape == 0 ? end_unicode(j, err) : 0;
    }
    if (c == 'u') {
        j->escape = 4;
        j->code = 0;
        return 0;
    }
    const char *at = c != '\0' ? strchr(letters, c) : NULL;
    if (at == NULL || j->high != 0)
        return refuse(j, "an escape that JSON does not have", err);
    j->escape = 0;
    text_put(j, &bytes[at - letters], 1);
    return 0;
}

static int end_text(struct keymap_json *j, const struct keymap_sink *to, struct error *err)
{
    j->in_text = false;
    if (j->too_long)
        return refuse(j, "a text that is too long", err);
    if (!utf8_valid(buf_str(&j->text), j->text.len))
        return refuse(j, "a text that is not UTF-8", err);
    if (j->state == AT_FORMAT || j->state == AT_FIRST_FORMAT) {
        j->state = BEHIND_FORMAT;
        buf_clear(&j->format);
        buf_append(&j->format, buf_str(&j->text), j->text.len);
        return 0;
    }
    j->state = BEHIND_KEY;
    const struct keymap_entry e = {.key = buf_str(&j->text),
                                   .key_len = j->text.len,
                                   .format = buf_str(&j->format),
                                   .format_len = j->format.len};
    return to->add(to->ctx, &e, err);
}

static int text_byte(struct keymap_json *j, char c, const struct keymap_sink *to, struct error *err)
{
    if (j->escape > 0)
        return escaped(j, c, err);
    if (c == '\\') {
        j->escape = BEHIND_BACKSLASH;
        return 0;
    }
    if (j->high != 0)
        return refuse(j, "half of a surrogate pair", err);
    if (c == '"')
        return end_text(j, to, err);
    if ((unsigned char)c < 0x20)
        return refuse(j, "a control character in a text", err);
    text_put(j, &c, 1);
    return 0;
}

int keymap_json_feed(struct keymap_json *j, const char *data, size_t len,
                     const struct keymap_sink *to, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < len; i++) {
        j->offset++;
        rc = j->in_text ? text_byte(j, data[i], to, err) : punctuation(j, data[i], err);
    }
    return rc;
}

int keymap_json_finish(struct keymap_json *j, struct error *err)
{
    return j->state == AT_END ? 0 : refuse(j, "it ends early", err);
}

void keymap_json_done(struct keymap_json *j)
{
    buf_done(&j->format);
    buf_done(&j->text);
}
