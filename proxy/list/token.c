#include "proxy/list/token.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "common/base64url.h"

enum { NAME = 'n', PASSED = 'p', MEMBER = 'm' };

static void encode(const struct buf *bytes, struct buf *out)
{
    buf_reserve(out, BASE64URL_CHARS(bytes->len));
    out->len += base64url_encode(bytes->data, bytes->len, out->data + out->len);
    out->data[out->len] = '\0';
}

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
    encode(&text, out);
}

void list_token_put_member(struct buf *out, const char *archive, const char *member)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_putc(&text, MEMBER);
    buf_puts(&text, archive);
    buf_putc(&text, '\0');
    buf_puts(&text, member);
    encode(&text, out);
}

static bool decode(const char *token, struct buf *out)
{
    size_t chars = strlen(token);
    buf_reserve(out, chars);
    if (!base64url_decode(token, chars, out->data))
        return false;
    out->len = chars * 3 / 4;
    out->data[out->len] = '\0';
    return true;
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

bool list_token_parse_member(const char *token, struct buf *texts, const char **archive,
                             const char **member)
{
    buf_clear(texts);
    if (!decode(token, texts) || texts->len < 2 || texts->data[0] != MEMBER)
        return false;
    *archive = texts->data + 1;
    const size_t name_len = strlen(*archive);
    *member = *archive + name_len + 1;
    return name_len + 2 <= texts->len && is_name(*archive, name_len) &&
           name_len + 2 + strlen(*member) == texts->len;
}
