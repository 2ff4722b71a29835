#include "target/node/params_check.h"

#include <stdlib.h>

#include "cluster/documents/names.h"
#include "cluster/props/backend_endpoints.h"
#include "common/address.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/daemon_sources.h"
#include "net/http/visitor.h"
#include "target/disk/mountpath_roots.h"
#include "sort/archive/unarchiver_formats.h"
#include "target/node/target.h"

struct space_limits target_space_limits(const struct target_params *p)
{
    return (struct space_limits){.low = (unsigned)p->space_low,
                                 .high = (unsigned)p->space_high,
                                 .out = (unsigned)p->space_out,
                                 .reserve_bytes = p->space_reserve};
}

static int check_addresses(const struct target_params *p, struct error *err)
{
    int code = auth_check_address(p->cluster_key_file,
                                  daemon_address(p->control_address, p->address), err);
    return code != 0 ? code
                     : auth_check_address(p->cluster_key_file,
                                          daemon_address(p->data_address, p->address), err);
}

static int exposure(const struct target_params *p, enum exposure *out, struct error *err)
{
    const struct exposure_params e = {.address = daemon_address(p->public_address, p->address),
                                      .key_file = p->cluster_key_file,
                                      .public_auth = p->public_auth,
                                      .anonymous = p->anonymous,
                                      .admin_port = p->admin_port};
    return exposure_of(&e, out, err);
}

static int check_values(const struct target_params *params, struct error *err)
{
    const struct space_limits space = target_space_limits(params);
    struct error why = ERROR_INIT;
    if (node_id_check(params->id, &why) != 0)
        return error_set(err, E_INVALID, "--id: %s", why.message);
    int code = node_join_check(params->join, err);
    if (code != 0)
        return code;
    if (*params->mountpaths == '\0')
        return error_set(err, E_INVALID, "--mountpaths: no directory is given");
    if (*params->dir == '\0')
        return error_set(err, E_INVALID, "--dir: the target needs a directory of its own");
    unsigned formats;
    if (unarchiver_formats_parse(params->archive_formats, &formats, &why) != 0)
        return error_set(err, E_INVALID, "--archive-formats: %s", why.message);
    code = check_addresses(params, err);
    return code != 0 ? code : space_limits_check(&space, err);
}

/* What backends may be, and clients. */
static int read_lists(struct target *t, const struct target_params *params, struct error *err)
{
    int code = address_list_new(params->backend_allow, &t->allow, err);
    if (code != 0)
        return error_wrap(err, "--backend-allow");
    code = backend_endpoints_new(params->backend_endpoints, &t->endpoints, err);
    if (code != 0)
        return error_wrap(err, "--backend-endpoints");
    return visitor_rules_new(params->advertise, params->allowed_hosts, params->allowed_origins,
                             &t->visitors, err);
}

void target_lists_free(struct target *t)
{
    daemon_sources_free(t->sources);
    address_list_free(t->allow);
    backend_endpoints_free(t->endpoints);
    visitor_rules_free(t->visitors);
}

int target_params_read(const struct target_params *params, struct target *t, struct error *err)
{
    int code = check_values(params, err);
    if (code == 0)
        code = exposure(params, &t->exposure, err);
    return code == 0 ? read_lists(t, params, err) : code;
}

int target_params_try(const void *values, struct error *err)
{
    const struct target_params *params = values;
    struct target lists = {.allow = NULL};
    int code = daemon_log_check(params->log_level, params->log_format, err);
    if (code == 0)
        code = target_params_read(params, &lists, err);
    target_lists_free(&lists);
    return code;
}

void target_params_take(struct target_params *params, struct target_params *out)
{
    *out = *params;
    *params = (struct target_params){0};
    char *given = out->mountpath_roots;
    out->mountpath_roots = mountpath_roots_in_force(given, out->mountpaths);
    free(given);
}
