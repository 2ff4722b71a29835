/* An object becomes a file: whole or not at all, and behind what an earlier run has fetched. */
#pragma once

#include <stdint.h>

#include "api/ctl/files/landing.h"
#include "api/dfc.h"

/* Commits the landing.  *resumed (or NULL): the bytes that an earlier run had fetched.  After a
 * failure that another run may mend, those that came stay as a part (part.h). */
int fetch_object(struct dfc_client *client, const char *bucket, const char *key, struct landing *l,
                 const struct dfc_get_options *options, uint64_t *resumed, struct dfc_error *err);
