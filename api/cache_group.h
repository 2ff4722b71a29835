/* Calls about a cache group, for the programs of mount/; no part of libdfc's interface.
 *
 * The document is that of docs/reference/http-api.md, cache_group_get.  Both return a result of
 * dfc.h. */
#pragma once

#include "api/dfc.h"

int cache_group_show(struct dfc_client *client, const char *group, char **document,
                     struct dfc_error *err);
/* A member reports: {"boot", "url", "weight", "drains", "leaves"}. */
int cache_group_report(struct dfc_client *client, const char *group, const char *member,
                       const char *report, char **document, struct dfc_error *err);
