/* What dfc-proxyd's parameters say of etcd. */
#pragma once

#include "proxy/metastore/etcd.h"
#include "proxy/primary/params.h"

/* For the store at `urls` below `prefix`; all else is as the parameters say, whose texts it uses.
 */
struct etcd_store_config etcd_params(const struct proxy_params *params, const char *urls,
                                     const char *prefix);
/* What is wrong with them, in a sentence that begins with `what` ("--etcd-prefix"). */
int etcd_params_check(const struct etcd_store_config *config, const char *what, struct error *err);
