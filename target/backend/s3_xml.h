/* What S3 says in XML.  Parsed by expat, without entities or DTDs of the document's own. */
#pragma once

#include <stddef.h>

#include "common/buf.h"

/* "NoSuchKey: The specified key does not exist." of an <Error>; nothing where the body is none.
 * What is no printable text is left out. */
void s3_xml_error(const char *body, size_t len, struct buf *out);
