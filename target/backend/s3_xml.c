#include "target/backend/s3_xml.h"

#include <expat.h>
#include <stdbool.h>
#include <string.h>

enum { TEXT_MAX = 256 };

struct error_parse {
    XML_Parser parser;
    unsigned depth;
    bool is_error;
    struct buf *into; /* of the element that is open, or NULL */
    struct buf code, message;
};

/* A document type is where XML's bombs are. */
static void no_doctype(void *arg, const char *name, const char *system_id, const char *public_id,
                       int has_internal)
{
    struct error_parse *p = arg;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_internal;
    XML_StopParser(p->parser, XML_FALSE);
}

static void begin_element(void *arg, const char *name, const char **attributes)
{
    struct error_parse *p = arg;
    (void)attributes;
    p->depth++;
    if (p->depth == 1)
        p->is_error = strcmp(name, "Error") == 0;
    if (p->depth == 2 && p->is_error)
        p->into = strcmp(name, "Code") == 0      ? &p->code
                  : strcmp(name, "Message") == 0 ? &p->message
                                                 : NULL;
}

static void end_element(void *arg, const char *name)
{
    struct error_parse *p = arg;
    (void)name;
    p->depth--;
    p->into = NULL;
}

static void take_text(void *arg, const char *text, int len)
{
    struct error_parse *p = arg;
    for (int i = 0; p->into != NULL && i < len && p->into->len < TEXT_MAX; i++) {
        if (text[i] >= ' ' && text[i] <= '~')
            buf_putc(p->into, text[i]);
    }
}

void s3_xml_error(const char *body, size_t len, struct buf *out)
{
    struct error_parse p = {.parser = XML_ParserCreate("UTF-8")};
    if (p.parser == NULL)
        return;
    XML_SetUserData(p.parser, &p);
    XML_SetElementHandler(p.parser, begin_element, end_element);
    XML_SetCharacterDataHandler(p.parser, take_text);
    XML_SetStartDoctypeDeclHandler(p.parser, no_doctype);
    (void)XML_Parse(p.parser, body, (int)len, XML_TRUE); /* what came before a mistake counts */
    XML_ParserFree(p.parser);
    if (p.code.len > 0)
        buf_printf(out, "%s: %s", buf_str(&p.code), buf_str(&p.message));
    buf_done(&p.code);
    buf_done(&p.message);
}
