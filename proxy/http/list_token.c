#include "proxy/http/list_token.h"

#include <stdbool.h>
#include <string.h>

#include "cluster/state.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
enum { NAME = 'n', PASSED = 'p' };

void list_token_put(struct buf *out, const struct list_position *p)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    bool passed = p->from[0] != '\0';
    buf_putc(&text, passed ? PASSED : NAME);
    buf_puts(&text, p->after);
    if (passed) {
        buf_putc(&text, '\0');
        buf_puts(&text, p->from);
    }
    unsigned bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < text.len; i++) {
        bits = bits << 8 | (unsigned char)text.data[i];
        for (held += 8; held >= 6; held -= 6)
            buf_putc(out, alphabet[bits >> (held - 6) & 63]);
    }
    if (held > 0)
        buf_putc(out, alphabet[bits << (6 - held) & 63]);
}

/* The bytes of the text; false where it is not the one text that stands for them. */
static bool decode(const char *token, struct buf *out)
{
    unsigned bits = 0;
    unsigned held = 0;
    for (; *token != '\0'; token++) {
        const char *place = strchr(alphabet, *token);
        if (place == NULL)
            return false;
        bits = bits << 6 | (unsigned)(place - alphabet);
        held += 6;
        if (held >= 8) {
            held -= 8;
            buf_putc(out, (char)(bits >> held & 255));
        }
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0;
}

static bool is_name(const char *text, size_t len)
{
    return strlen(text) == len && object_name_check(text, len, NULL) == 0;
}

/* The two texts of the bytes; false where they are none. */
static bool split(const struct buf *bytes, struct list_position *p)
{
    const char *text = bytes->data + 1;
    size_t len = bytes->len - 1, first = strlen(text);
    *p = (struct list_position){.after = text, .from = ""};
    if (bytes->data[0] == NAME)
        return is_name(text, len);
    if (bytes->data[0] != PASSED || first >= len)
        return false;
    p->from = text + first + 1;
    return (first == 0 || is_name(text, first)) && is_name(p->from, len - first - 1);
}

int list_token_parse(const char *token, struct buf *texts, struct list_position *p,
                     struct error *err)
{
    buf_clear(texts);
    if (decode(token, texts) && texts->len > 1 && split(texts, p))
        return 0;
    return error_set(err, E_INVALID, "the token is none that a listing has given");
}
