/* The file of profiles: how to reach clusters, and as which user (dfc.h has its form).
 *
 * It has secrets: one that others may read is refused, and it is written with mode 0600, whole or
 * not at all. */
#pragma once

#include "api/dfc.h"

/* What a client takes from it. */
struct profile {
    char *endpoints, *access_key, *secret_key, *token, *ca_file; /* NULL: not there */
};

/* The profile of this name; NULL: $DFC_PROFILE.  Without that the current one, unless `endpoints`
 * (NULL: none are named) are others than its own.  "": none.  A profile that is named must exist:
 * DFC_NOT_FOUND. */
int profile_load(const char *name, const char *endpoints, struct profile *out,
                 struct dfc_error *err);
void profile_done(struct profile *p);
