#include "proxy/primary/etcd_params.h"

#include <string.h>

struct etcd_store_config etcd_params(const struct proxy_params *params, const char *urls,
                                     const char *prefix)
{
    const struct etcd_endpoints endpoints = {.urls = urls,
                                             .user = params->etcd_user,
                                             .password_file = params->etcd_password_file,
                                             .ca_file = params->etcd_ca,
                                             .cert_file = params->etcd_cert,
                                             .key_file = params->etcd_key,
                                             .connect_timeout_ms = params->connect_timeout};
    return (struct etcd_store_config){.endpoints = endpoints,
                                      .prefix = prefix,
                                      .lease_ttl_ms = params->lease_ttl,
                                      .commit_timeout_ms = params->call_timeout,
                                      .request_max = params->etcd_request_max};
}

int etcd_params_check(const struct etcd_store_config *config, const char *what, struct error *err)
{
    size_t len = strlen(config->prefix);
    if (len < 2 || len > 200 || config->prefix[0] != '/' || config->prefix[len - 1] == '/')
        return error_set(err, E_INVALID,
                         "%s: '%.80s' must begin with a slash, not end with one, and have "
                         "2 to 200 bytes",
                         what, config->prefix);
    return etcd_endpoints_check(&config->endpoints, err);
}
