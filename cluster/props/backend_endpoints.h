/* To which servers the cluster's credentials are sent: the operator's list, `--backend-endpoints`.
 * A client names a bucket's endpoint; without this list a client could have credentials sent to any
 * server.  Pure; fuzzed.
 *
 *   ROW[,ROW]      ROW: PROVIDER ENDPOINT [CREDENTIAL]
 *
 *   s3 http://minio.example:9000                the targets' default credentials go there
 *   s3 http://minio.example:9000 training       those of the profile `training`
 *   s3 own training                             that profile, to Amazon's own hosts
 *   s3 https://s3.example *                     default, and any profile
 *   gcs https://storage.example                 the targets' Google token
 *
 * PROVIDER is s3 or gcs.  ENDPOINT is the URL as buckets have it, `own` for the provider's own
 * hosts, and its port may be `*`.  CREDENTIAL is a profile, `default` (as without one), or `*`.
 *
 * Without a row only the provider's own hosts get credentials, the default ones, by https alone:
 * s3.REGION.amazonaws.com (s3-fips, dualstack, .cn) and storage.googleapis.com.  Buckets with
 * auth=none, http and dfc buckets have no credentials and need no row. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct backend_endpoints;
struct backend_spec;

/* "" is a list without rows.  E_INVALID with the row that is wrong. */
int backend_endpoints_new(const char *text, struct backend_endpoints **out, struct error *err);
void backend_endpoints_free(struct backend_endpoints *e); /* NULL is fine */
/* May credentials be sent there?  E_BACKEND_DENIED with the row that is missing. */
int backend_endpoints_check(const struct backend_endpoints *e, const struct backend_spec *spec,
                            struct error *err);
/* The same of a bucket's URL; an URL that cannot be read is another's to refuse: 0. */
int backend_endpoints_check_url(const struct backend_endpoints *e, const char *url,
                                struct error *err);
