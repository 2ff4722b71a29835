/* The XML documents of requests, by a table of their leaves.  What no row of the table has is
 * refused, so that nothing that a client asks for is passed over.  For the files of this folder,
 * which read one document each. */
#pragma once

#include <stddef.h>

#include "s3/error.h"

/* One element that has a text: `in` is the element around it. */
struct document_leaf {
    const char *in, *name; /* name NULL ends a table */
    /* NULL: this project does not do the element, S3_NOT_IMPLEMENTED. */
    enum s3_error (*take)(void *ctx, const char *text, struct s3_failure *why);
};

struct document {
    const char *root;
    unsigned depth; /* of the deepest leaf; the root's is 1 */
    const struct document_leaf *leaves;
    /* An element of the second level has ended; NULL where none needs this. */
    enum s3_error (*leave)(void *ctx, const char *name, struct s3_failure *why);
};

/* The first error of a row, or S3_MALFORMED_XML: it is not XML, has another root, an element that
 * no row has, or a text longer than XML_TEXT_MAX. */
enum s3_error document_read(const struct document *d, const char *body, size_t len, void *ctx,
                            struct s3_failure *why);
/* For an element that may be empty, and may not have a text of its own. */
enum s3_error document_empty(void *ctx, const char *text, struct s3_failure *why);
