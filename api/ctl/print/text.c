#include "api/ctl/print/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/utf8.h"

/* Unicode 15: general categories Cc, and of Cf and Zl, Zp those that change how others are shown.
 */
static bool deceives(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},   {0x180e, 0x180e},
        {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x2064}, {0x2066, 0x206f},
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    }
    return false;
}

char *text_clean(const char *text)
{
    struct buf out = BUF_INIT;
    size_t left = strlen(text);
    buf_puts(&out, "");
    while (left > 0) {
        size_t n = utf8_sequence(text, left);
        size_t took = n > 0 ? n : 1;
        if (n > 0 && !deceives(utf8_character(text, n)))
            buf_append(&out, text, n);
        else
            for (size_t i = 0; i < took; i++)
                buf_printf(&out, "\\x%02x", (unsigned char)text[i]);
        text += took;
        left -= took;
    }
    return buf_steal(&out);
}

bool text_names(const char *message, const char *what)
{
    size_t end = strlen(what);
    const char *first = strchr(what, '\'');
    if (first == NULL || first + 2 >= what + end || what[end - 1] != '\'')
        return false;
    return strstr(message, first) != NULL;
}

char *text_with_flags(const char *message)
{
    static const char field[] = "set allow_empty to accept that";
    const char *at = strstr(message, field);
    if (at == NULL)
        return xstrdup(message);
    return xprintf("%.*s--allow-empty accepts that%s", (int)(at - message), message,
                   at + strlen(field));
}
