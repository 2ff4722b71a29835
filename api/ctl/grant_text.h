/* A grant as users write it: RIGHTS, RIGHTS:BUCKET or RIGHTS:BUCKET/PREFIX.  Pure. */
#pragma once

#include <jansson.h>

#include "common/error.h"

/* {"rights": […], "bucket", "prefix"}; bucket NULL: on the cluster.  rights: "list,read".  The
 * cluster judges their names.  E_INVALID. */
int grant_make(const char *rights, const char *bucket, const char *prefix, json_t **out,
               struct error *err);
int grant_parse(const char *text, json_t **out, struct error *err);
