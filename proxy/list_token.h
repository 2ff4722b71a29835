/* The token of a listing: where the next page goes on, opaque to clients so that it can change.
 * (base64url without padding, RFC 4648 section 5, of one version byte and the last name.)  Pure. */
#pragma once

#include "common/buf.h"
#include "common/error.h"

void list_token_put(struct buf *out, const char *last);
/* The name, into `out`; E_INVALID for anything that list_token_put() did not make. */
int list_token_parse(const char *token, struct buf *out, struct error *err);
