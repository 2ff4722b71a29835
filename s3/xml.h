/* An XML document as a row of leaves: the texts of the elements that have no others in them, with
 * the element around each.  By expat; a document with a type of its own (where XML's bombs are) is
 * refused, and texts are bounded.
 *
 * A strict reader takes no element that it would pass over in silence: one that is deeper than
 * `depth`, or whose text is longer than XML_TEXT_MAX, makes the document a mistake. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct xml_reader {
    const char *root;
    unsigned depth; /* the root's is 1; leaves are given from 2 to this, at most XML_DEPTH_MAX */
    /* `in` is the root's name at the second level. */
    void (*leaf)(void *ctx, const char *in, const char *name, const char *text);
    void (*leave)(void *ctx, const char *name); /* an element of the second level ends; or NULL */
    void *ctx;
    bool is_strict;
};

enum { XML_DEPTH_MAX = 6, XML_TEXT_MAX = 8192 };

/* False: it is not whole, or has another root.  What came before a mistake has been given. */
bool xml_read(const struct xml_reader *reader, const char *body, size_t len);
