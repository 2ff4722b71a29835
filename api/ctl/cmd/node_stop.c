/* node ok-to-stop, and the wait of node maintenance and node decommission. */
#include "api/ctl/cmd/node_stop.h"

#include "api/ctl/commands.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/stop_check.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { LOOK_MS = 500 };

static bool over(uint64_t began, uint64_t timeout_ms)
{
    return timeout_ms > 0 && clock_ms() - began > timeout_ms;
}

/* --- the wait of an action ------------------------------------------------------------------- */

static json_t *node_of(json_t *overview, const char *id)
{
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(overview, "nodes"), i, node)
    {
        const char *name = json_string_value(json_object_get(node, "id"));
        if (name != NULL && strcmp(name, id) == 0)
            return node;
    }
    return NULL;
}

/* state NULL: until the node has left. */
static bool has_moved(json_t *overview, const char *id, const char *state)
{
    json_t *node = node_of(overview, id);
    const char *now = json_string_value(json_object_get(node, "state"));
    if (state == NULL || node == NULL)
        return node == NULL;
    return now != NULL && strcmp(now, state) == 0 &&
           json_is_false(json_object_get(overview, "moving"));
}

/* Somebody may undo it meanwhile: then there is nothing to wait for.  A proxy may be behind at
 * first, so the state must have been there once. */
static int check_undone(struct ctl *ctl, json_t *overview, const char *id, const char *wanted,
                        bool *seen)
{
    const char *now = json_string_value(json_object_get(node_of(overview, id), "state"));
    struct error err = ERROR_INIT;
    bool is_so = now != NULL && strcmp(now, wanted) == 0;
    *seen = *seen || is_so;
    if (!*seen || is_so || (now != NULL && strcmp(now, "unreachable") == 0))
        return EXIT_OK;
    error_set(&err, E_ABORTED, "node '%.64s' is no longer %s, but %s", id, wanted,
              now != NULL ? now : "out of the cluster");
    return ctl_fail_common(ctl, &err, EXIT_FAILED);
}

int node_wait_moved(struct ctl *ctl, const char *id, const char *state, uint64_t timeout_ms)
{
    uint64_t began = clock_ms();
    bool seen = false;
    for (;;) {
        _cleanup_json_ json_t *overview = NULL;
        int code = ctl_cluster(ctl, NULL, &overview);
        if (code != EXIT_OK || has_moved(overview, id, state))
            return code;
        code = check_undone(ctl, overview, id, state != NULL ? state : "decommissioning", &seen);
        if (code != EXIT_OK)
            return code;
        if (over(began, timeout_ms)) {
            ctl_remark(ctl, "dfcctl: objects are still being moved: see 'dfcctl job ls --kind "
                            "rebalance'");
            return EXIT_UNREACHABLE; /* as job wait says that the time ran out */
        }
        if (!interrupt_pause(LOOK_MS))
            return EXIT_INTERRUPTED;
    }
}

/* --- node ok-to-stop ------------------------------------------------------------------------- */

static int look(struct ctl *ctl, const char *id, json_t **reasons)
{
    struct dfc_error told;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *overview = NULL;
    _cleanup_json_ json_t *buckets = NULL;
    int code = ctl_cluster(ctl, NULL, &overview);
    if (code != EXIT_OK)
        return code;
    if (dfc_bucket_list(ctl->client, &text, &told) != DFC_OK)
        return ctl_fail(ctl, &told, "buckets");
    if ((code = ctl_parse(ctl, text, &buckets)) != EXIT_OK)
        return code;
    if (stop_check(overview, buckets, id, reasons, &err) != 0)
        return ctl_fail_common(ctl, &err, EXIT_NOT_FOUND);
    return EXIT_OK;
}

static void print(struct ctl *ctl, const char *id, json_t *reasons)
{
    size_t i;
    json_t *reason;
    bool ok = json_array_size(reasons) == 0;
    if (ctl->json) {
        ctl_print_json(ctl,
                       json_pack("{s:s, s:b, s:O}", "node", id, "ok", (int)ok, "reasons", reasons));
        return;
    }
    ctl_say(ctl, ok ? "%s may be stopped" : "%s must not be stopped now:", id);
    json_array_foreach(reasons, i, reason) ctl_say(ctl, "  %s", json_string_value(reason));
}

int node_ok_to_stop(struct ctl *ctl, const struct args *args)
{
    const char *id = args->words[0];
    uint64_t began = clock_ms();
    if (args->given[F_timeout] && !args->given[F_wait])
        return ctl_usage(ctl, "--timeout goes with --wait");
    for (;;) {
        _cleanup_json_ json_t *reasons = NULL;
        int code = look(ctl, id, &reasons);
        if (code != EXIT_OK)
            return code;
        bool ok = json_array_size(reasons) == 0;
        bool last = !args->given[F_wait] || over(began, args->number[F_timeout]);
        if (ok || last) {
            print(ctl, id, reasons);
            return ok ? EXIT_OK : args->given[F_wait] ? EXIT_UNREACHABLE : EXIT_FAILED;
        }
        if (!interrupt_pause(LOOK_MS))
            return EXIT_INTERRUPTED;
    }
}
