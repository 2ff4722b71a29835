#include "s3/document.h"

#include <string.h>

#include "s3/xml.h"

struct reading {
    const struct document *document;
    void *ctx;
    struct s3_failure *why;
    enum s3_error error; /* the first */
};

static void leaf(void *ctx, const char *in, const char *name, const char *text)
{
    struct reading *r = ctx;
    const struct document_leaf *row = r->document->leaves;
    if (r->error != S3_OK)
        return;
    while (row->name != NULL && (strcmp(row->name, name) != 0 || strcmp(row->in, in) != 0))
        row++;
    if (row->name == NULL)
        r->error =
            s3_fail(r->why, S3_MALFORMED_XML, "The element %.48s in %.48s is not known", name, in);
    else if (row->take == NULL)
        r->error = s3_fail(r->why, S3_NOT_IMPLEMENTED,
                           "The element %.48s in %.48s is not supported", name, in);
    else
        r->error = row->take(r->ctx, text, r->why);
}

static void leave(void *ctx, const char *name)
{
    struct reading *r = ctx;
    if (r->error == S3_OK && r->document->leave != NULL)
        r->error = r->document->leave(r->ctx, name, r->why);
}

enum s3_error document_read(const struct document *d, const char *body, size_t len, void *ctx,
                            struct s3_failure *why)
{
    struct reading r = {.document = d, .ctx = ctx, .why = why};
    const struct xml_reader reader = {.root = d->root,
                                      .depth = d->depth,
                                      .leaf = leaf,
                                      .leave = leave,
                                      .ctx = &r,
                                      .is_strict = true};
    bool whole = xml_read(&reader, body, len);
    if (r.error == S3_OK && !whole)
        return s3_fail(why, S3_MALFORMED_XML, "The body is not a <%s> document", d->root);
    return r.error;
}

enum s3_error document_empty(void *ctx, const char *text, struct s3_failure *why)
{
    (void)ctx;
    return text[strspn(text, " \t\r\n")] == '\0' ? S3_OK : s3_fail(why, S3_MALFORMED_XML, NULL);
}
