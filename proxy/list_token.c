#include "proxy/list_token.h"

#include <stdbool.h>
#include <string.h>

#include "cluster/state.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char version = 'n';

void list_token_put(struct buf *out, const char *last)
{
    size_t len = strlen(last) + 1;
    unsigned bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)(i == 0 ? version : last[i - 1]);
        bits = bits << 8 | byte;
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

int list_token_parse(const char *token, struct buf *out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf bytes = BUF_INIT;
    if (decode(token, &bytes) && bytes.len > 1 && bytes.data[0] == version &&
        object_name_check(bytes.data + 1, bytes.len - 1, NULL) == 0) {
        buf_append(out, bytes.data + 1, bytes.len - 1);
        return 0;
    }
    return error_set(err, E_INVALID, "the token is none that a listing has given");
}
