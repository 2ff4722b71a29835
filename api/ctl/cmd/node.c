/* node maintenance, node decommission, cluster rebalance. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/command.h"
#include "api/ctl/ctl.h"
#include "api/ctl/job_wait.h"
#include "api/ctl/node_wait.h"
#include "common/cleanup.h"
#include "common/mem.h"

struct action {
    const char *name; /* in the API */
    const char *said;
    const char *goes_on;   /* and what is not done yet; or NULL */
    const char *waits_for; /* --wait: this state, and nothing is being moved; NULL: it has left */
};

/* With --force it may be a target that does not answer, so that nothing moves. */
static const char *goes_on(const struct args *args, const struct action *a)
{
    return a->goes_on != NULL && !args->given[F_force] ? a->goes_on : "";
}

static int act(struct ctl *ctl, const struct args *args, const char *node, const struct action *a)
{
    struct dfc_error err;
    if (args->given[F_timeout] && !args->given[F_wait])
        return ctl_usage(ctl, "--timeout goes with --wait");
    if (dfc_node_act(ctl->client, node, a->name, args->given[F_force], &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    int code = EXIT_OK;
    if (args->given[F_wait]) {
        ctl_remark(ctl, "%s %s; waiting until its objects are moved", node, a->said);
        code = node_wait_moved(ctl, node, a->waits_for, args->number[F_timeout]);
    }
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s}", "node", node, "action", a->name));
    else if (args->given[F_wait])
        ctl_say(ctl, "%s: nothing is left to move", node);
    else
        ctl_say(ctl, "%s %s%s", node, a->said, goes_on(args, a));
    return EXIT_OK;
}

int node_maintenance(struct ctl *ctl, const struct args *args)
{
    static const struct action start = {
        "startmaintenance", "is in maintenance",
        ": its objects are being moved; do not stop it before 'dfcctl node ok-to-stop' allows it",
        "maintenance"};
    static const struct action stop = {"stopmaintenance", "is active", NULL, "active"};
    if (strcmp(args->words[0], "start") == 0)
        return act(ctl, args, args->words[1], &start);
    if (strcmp(args->words[0], "stop") == 0)
        return act(ctl, args, args->words[1], &stop);
    return ctl_usage(ctl, "'%s' is neither start nor stop", args->words[0]);
}

int node_decommission(struct ctl *ctl, const struct args *args)
{
    static const struct action leave = {
        "decommission", "leaves the cluster",
        ": its objects are being moved; do not stop it while 'dfcctl node ls' shows it", NULL};
    const char *node = args->words[0];
    _cleanup_free_ char *question =
        xprintf("Have node '%s' leave the cluster for good%s?", node,
                args->given[F_force] ? ", and lose the objects that only it has where they cannot "
                                       "be moved"
                                     : "");
    int code = ctl_confirm(ctl, args, question);
    return code == EXIT_OK ? act(ctl, args, node, &leave) : code;
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
