#include "proxy/params_check.h"

#include <string.h>

#include "cluster/documents/names.h"
#include "cluster/props/backend_endpoints.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/http/visitor.h"
#include "proxy/metastore/etcd.h"
#include "proxy/primary/etcd_params.h"
#include "proxy/primary/proxy.h"

static int exposure(const struct proxy_params *params, enum exposure *out, struct error *err)
{
    const struct exposure_params e = {.address =
                                          daemon_address(params->public_address, params->address),
                                      .key_file = params->cluster_key_file,
                                      .public_auth = params->public_auth,
                                      .anonymous = params->anonymous,
                                      .admin_port = params->admin_port};
    return exposure_of(&e, out, err);
}

static int check_params(const struct proxy_params *params, struct error *err)
{
    if (node_id_check(params->id, NULL) != 0)
        return error_set(err, E_INVALID,
                         "--id: '%.80s' must be 1 to 63 letters, digits, '_', '.', '-'",
                         params->id);
    int code = node_join_check(params->join, err);
    if (code != 0)
        return code;
    if (params->dir[0] == '\0')
        return error_set(err, E_INVALID, "--dir: the proxy needs a directory of its own");
    if (params->join[0] != '\0' && params->import[0] != '\0')
        return error_set(err, E_INVALID, "--import is for a primary, and --join makes a follower");
    bool embedded = strcmp(params->metastore, metastore_embedded.scheme) == 0;
    if (embedded && !params->electable)
        return error_set(err, E_INVALID,
                         "--electable=false is for a metastore in etcd (--metastore=etcd://…); "
                         "--join makes a proxy that is never elected");
    if (!embedded && params->join[0] != '\0')
        return error_set(err, E_INVALID,
                         "--join is for an embedded metastore: leave it out, for the proxies of "
                         "'%.200s' find each other there",
                         params->metastore);
    if (!params->electable && params->import[0] != '\0')
        return error_set(err, E_INVALID, "--import is for a proxy that may be elected");
    if (params->keepalive_timeout < 2 * params->keepalive_interval)
        return error_set(err, E_INVALID,
                         "--keepalive-timeout must be at least twice --keepalive-interval");
    if ((code = auth_check_address(params->cluster_key_file,
                                   daemon_address(params->control_address, params->address),
                                   err)) != 0)
        return code;
    const struct etcd_store_config etcd =
        etcd_params(params, params->metastore, params->etcd_prefix);
    return embedded ? 0 : etcd_params_check(&etcd, "--etcd-prefix", err);
}

/* What buckets' backends may be, and clients. */
static int read_lists(struct proxy *p, const struct proxy_params *params, struct error *err)
{
    int r = backend_endpoints_new(params->backend_endpoints, &p->endpoints, err);
    if (r != 0)
        return error_wrap(err, "--backend-endpoints");
    return visitor_rules_new(params->advertise, params->allowed_hosts, params->allowed_origins,
                             &p->visitors, err);
}

void proxy_lists_free(struct proxy *p)
{
    backend_endpoints_free(p->endpoints);
    visitor_rules_free(p->visitors);
}

int proxy_params_read(const struct proxy_params *params, struct proxy *p, struct error *err)
{
    int r = check_params(params, err);
    if (r == 0)
        r = exposure(params, &p->exposure, err);
    return r == 0 ? read_lists(p, params, err) : r;
}

int proxy_params_try(const void *values, struct error *err)
{
    const struct proxy_params *params = values;
    struct proxy lists = {.endpoints = NULL};
    int r = daemon_log_check(params->log_level, params->log_format, err);
    if (r == 0)
        r = proxy_params_read(params, &lists, err);
    proxy_lists_free(&lists);
    return r;
}
