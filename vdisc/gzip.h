/* gzip of whole texts in memory. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "common/error.h"

/* Its head has no time and no name, so that equal bytes become equal bytes. */
int gzip_pack(const void *bytes, size_t len, struct buf *out, struct error *err);
bool gzip_is(const void *bytes, size_t len);
/* E_IMAGE_DAMAGED; E_IMAGE_TOO_LARGE: more than `max` bytes. */
int gzip_unpack(const void *bytes, size_t len, uint64_t max, struct buf *out, struct error *err);
