/* Writing XML: elements and texts into a buffer.  Names are the caller's and are not checked.
 *
 * A text may have any bytes.  Markup and quotes are escaped.  A control character becomes a numeric
 * reference ("&#x8;"), as S3 writes it, although XML 1.0 has no such character: keys may have
 * them, and clients that cannot read them ask for encoding-type=url. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

#define XML_S3_NAMESPACE "http://s3.amazonaws.com/doc/2006-03-01/"

#define XML_DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/* The declaration, and the root element that opens; of the namespace of S3, or "" for none. */
void xml_put_root(struct buf *out, const char *name, const char *namespace);
void xml_put_open(struct buf *out, const char *name);
void xml_put_close(struct buf *out, const char *name);
void xml_put_text(struct buf *out, const char *text);
/* "<name>text</name>" */
void xml_put_element(struct buf *out, const char *name, const char *text);
void xml_put_number(struct buf *out, const char *name, uint64_t value);
void xml_put_bool(struct buf *out, const char *name, bool value);
