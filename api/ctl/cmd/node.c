/* node maintenance, node decommission, cluster rebalance. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/command.h"
#include "api/ctl/ctl.h"
#include "api/ctl/job_wait.h"
#include "common/cleanup.h"
#include "common/mem.h"

static int act(struct ctl *ctl, const char *node, const char *action, bool force, const char *said)
{
    struct dfc_error err;
    if (dfc_node_act(ctl->client, node, action, force, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s}", "node", node, "action", action));
    else
        ctl_say(ctl, "%s %s", node, said);
    return EXIT_OK;
}

int node_maintenance(struct ctl *ctl, const struct args *args)
{
    const char *node = args->words[1];
    bool force = args->given[F_force];
    if (strcmp(args->words[0], "start") == 0)
        return act(ctl, node, "startmaintenance", force, "is in maintenance");
    if (strcmp(args->words[0], "stop") == 0)
        return act(ctl, node, "stopmaintenance", force, "is active");
    return ctl_usage(ctl, "'%s' is neither start nor stop", args->words[0]);
}

int node_decommission(struct ctl *ctl, const struct args *args)
{
    const char *node = args->words[0];
    bool force = args->given[F_force];
    if (force) {
        _cleanup_free_ char *question =
            xprintf("Have node '%s' leave the cluster, and lose the objects that only it has where "
                    "they cannot be moved?",
                    node);
        int code = ctl_confirm(ctl, args, question);
        if (code != EXIT_OK)
            return code;
    }
    return act(ctl, node, "decommission", force, "leaves the cluster");
}

int cluster_rebalance(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *id = NULL;
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (dfc_job_start(ctl->client, "rebalance", &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "rebalance");
    return job_started(ctl, args, id);
}
