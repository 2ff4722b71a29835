/* The token of a listing: where the next page goes on, opaque to clients so that it can change.
 * base64url without padding (RFC 4648 section 5) of
 *
 *     n <name>              behind the last name of the page
 *     p <name> NUL <from>   the same, and all names up to `from` have been passed; the name may be
 *                           missing, where nothing has been shown yet
 *     m <name> NUL <member> behind this member of the archive, or before the first one: ""
 *
 * Pure. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "common/error.h"

struct list_position {
    const char *after; /* everything that follows is greater; "" from the start */
    const char *from;  /* "", or names up to here are not there, or stand for a prefix to come */
};

void list_token_put(struct buf *out, const struct list_position *p);
/* *p borrows from `texts`.  E_INVALID for anything that list_token_put() did not make. */
int list_token_parse(const char *token, struct buf *texts, struct list_position *p,
                     struct error *err);

/* Of a list that shows members.  A member may have any bytes but NUL. */
void list_token_put_member(struct buf *out, const char *archive, const char *member);
/* True: it is one, and both borrow from `texts`. */
bool list_token_parse_member(const char *token, struct buf *texts, const char **archive,
                             const char **member);
