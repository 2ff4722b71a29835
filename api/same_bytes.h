/* An object that was stored again with the bytes that it had, or that an upload gave another
 * tag. */
#pragma once

#include "api/dfc.h"

/* The entity tag that the object has now, if it has this size and this checksum ("TYPE:HEX");
 * malloc'ed.  NULL: it is another one, or that is not known. */
char *same_bytes_etag(struct dfc_client *c, const char *bucket, const char *object, uint64_t size,
                      const char *checksum);
