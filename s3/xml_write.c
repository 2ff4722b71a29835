#include "s3/xml_write.h"

#include <inttypes.h>

void xml_put_root(struct buf *out, const char *name, const char *namespace)
{
    buf_puts(out, XML_DECLARATION);
    if (*namespace == '\0')
        xml_put_open(out, name);
    else
        buf_printf(out, "<%s xmlns=\"%s\">", name, namespace);
}

void xml_put_open(struct buf *out, const char *name)
{
    buf_printf(out, "<%s>", name);
}

void xml_put_close(struct buf *out, const char *name)
{
    buf_printf(out, "</%s>", name);
}

static const char *escape_of(char c)
{
    switch (c) {
    case '"':
        return "&quot;";
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    default:
        return NULL;
    }
}

void xml_put_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (escape_of(*text) != NULL)
            buf_puts(out, escape_of(*text));
        else if (c < ' ')
            buf_printf(out, "&#x%x;", c);
        else
            buf_putc(out, *text);
    }
}

void xml_put_element(struct buf *out, const char *name, const char *text)
{
    xml_put_open(out, name);
    xml_put_text(out, text);
    xml_put_close(out, name);
}

void xml_put_number(struct buf *out, const char *name, uint64_t value)
{
    buf_printf(out, "<%s>%" PRIu64 "</%s>", name, value, name);
}

void xml_put_bool(struct buf *out, const char *name, bool value)
{
    xml_put_element(out, name, value ? "true" : "false");
}
