#include "access/exposure.h"

#include <string.h>

#include "net/auth/auth.h"

static const char *const names[EXPOSURES] = {
    [EXPOSURE_LOOPBACK] = "loopback",
    [EXPOSURE_ANONYMOUS] = "anonymous",
    [EXPOSURE_AUTH] = "auth",
};

const char *exposure_name(enum exposure e)
{
    return names[e];
}

int exposure_of(const struct exposure_params *p, enum exposure *out, struct error *err)
{
    bool all = strcmp(p->anonymous, "all") == 0;
    if (!all && p->anonymous[0] != '\0')
        return error_set(err, E_INVALID, "--anonymous: '%.32s' is not 'all'", p->anonymous);
    if (all && p->public_auth)
        return error_set(err, E_INVALID,
                         "--anonymous=all lets everybody in, --public-auth does not: take one");
    if (p->public_auth && p->key_file[0] == '\0')
        return error_set(
            err, E_INVALID,
            "--public-auth needs --cluster-key-file: tokens are signed with a key that "
            "is derived from the cluster key");
    if (p->admin_port != 0 && !p->public_auth)
        return error_set(err, E_INVALID,
                         "--admin-port needs --public-auth: without it the control listener has "
                         "administration");
    if (!all && !p->public_auth && !auth_is_loopback(p->address))
        return error_set(err, E_INVALID,
                         "the public listener's address %s is not loopback: add --public-auth to "
                         "ask for proof, or --anonymous=all to let everybody who reaches it do "
                         "everything",
                         p->address);
    *out = p->public_auth ? EXPOSURE_AUTH : all ? EXPOSURE_ANONYMOUS : EXPOSURE_LOOPBACK;
    return 0;
}

int exposure_check_users(enum exposure ours, const char *node, size_t users, struct error *err)
{
    if (ours == EXPOSURE_AUTH || users == 0)
        return 0;
    return error_set(err, E_NODE_STATE,
                     "proxy '%s' was started without --public-auth, and the cluster has users: "
                     "start every node with --public-auth; or, to let everybody in, start them so, "
                     "remove all users (dfcctl --control URL user rm), and start them without it",
                     node);
}

int exposure_check_node(enum exposure ours, const char *node, const char *theirs, struct error *err)
{
    bool they = strcmp(theirs, names[EXPOSURE_AUTH]) == 0, we = ours == EXPOSURE_AUTH;
    if (they == we)
        return 0;
    return error_set(err, E_NODE_STATE,
                     "node '%s' was started %s --public-auth, the primary %s it: all nodes must "
                     "agree",
                     node, they ? "with" : "without", we ? "with" : "without");
}
