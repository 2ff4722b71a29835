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

int node_wait_moved(struct ctl *ctl, const char *id, const char *state, uint64_t timeout_ms)
{
    uint64_t began = clock_ms();
    bool seen = false, done = false;
    for (;;) {
        _cleanup_json_ json_t *overview = NULL;
        struct error err = ERROR_INIT;
        int code = ctl_cluster(ctl, NULL, &overview);
        if (code != EXIT_OK)
            return code;
        if (stop_moved(overview, id, state, &seen, &done, &err) != 0)
            return ctl_fail_common(ctl, &err, EXIT_FAILED);
        if (done)
            return EXIT_OK;
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
