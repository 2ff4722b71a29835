#include "s3/xml.h"

#include <assert.h>
#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"

enum { NAME_MAX_LEN = 48 };

struct document {
    const struct xml_reader *reader;
    XML_Parser parser;
    unsigned depth;
    char names[XML_DEPTH_MAX][NAME_MAX_LEN]; /* of the open elements */
    bool is_root, text_cut;
    struct buf text;
};

static void no_doctype(void *arg, const char *name, const char *system_id, const char *public_id,
                       int has_internal)
{
    struct document *d = arg;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_internal;
    XML_StopParser(d->parser, XML_FALSE);
}

static void stop_if_strict(struct document *d)
{
    if (d->reader->is_strict)
        XML_StopParser(d->parser, XML_FALSE);
}

static void begin_element(void *arg, const char *name, const char **attributes)
{
    struct document *d = arg;
    (void)attributes;
    d->depth++;
    if (d->depth == 1)
        d->is_root = strcmp(name, d->reader->root) == 0;
    if (d->depth <= XML_DEPTH_MAX)
        snprintf(d->names[d->depth - 1], NAME_MAX_LEN, "%s", name);
    if (d->depth > d->reader->depth)
        stop_if_strict(d);
    buf_clear(&d->text);
    d->text_cut = false;
}

static void give_leaf(struct document *d)
{
    if (d->is_root && d->depth >= 2 && d->depth <= d->reader->depth && !d->text_cut)
        d->reader->leaf(d->reader->ctx, d->names[d->depth - 2], d->names[d->depth - 1],
                        buf_str(&d->text));
}

static void end_element(void *arg, const char *name)
{
    struct document *d = arg;
    give_leaf(d);
    if (d->is_root && d->depth == 2 && d->reader->leave != NULL)
        d->reader->leave(d->reader->ctx, name);
    d->depth--;
    d->text_cut = true; /* what stands behind it is nobody's text */
}

static void take_text(void *arg, const char *text, int len)
{
    struct document *d = arg;
    if (d->text_cut)
        return;
    if (d->text.len + (size_t)len > XML_TEXT_MAX) {
        d->text_cut = true;
        stop_if_strict(d);
    } else
        buf_append(&d->text, text, (size_t)len);
}

bool xml_read(const struct xml_reader *reader, const char *body, size_t len)
{
    struct document d = {.reader = reader, .parser = XML_ParserCreate("UTF-8")};
    assert(reader->depth <= XML_DEPTH_MAX);
    if (d.parser == NULL)
        return false;
    XML_SetUserData(d.parser, &d);
    XML_SetElementHandler(d.parser, begin_element, end_element);
    XML_SetCharacterDataHandler(d.parser, take_text);
    XML_SetStartDoctypeDeclHandler(d.parser, no_doctype);
    bool whole = XML_Parse(d.parser, body, (int)len, XML_TRUE) == XML_STATUS_OK;
    if (!whole && d.depth > 0 && !reader->is_strict)
        give_leaf(&d);
    XML_ParserFree(d.parser);
    buf_done(&d.text);
    return whole && d.is_root;
}
