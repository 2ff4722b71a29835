#include "target/node/params_check.h"

#include "cluster/documents/names.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "sort/archive/unarchiver_formats.h"

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

int target_params_check(const struct target_params *params, enum exposure *out, struct error *err)
{
    int code = check_values(params, err);
    return code != 0 ? code : exposure(params, out, err);
}
