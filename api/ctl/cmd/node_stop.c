/* node ok-to-stop. */
#include "api/ctl/commands.h"

#include "api/client.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/stop_check.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { LOOK_MS = 500, LAST_LOOK_MS = 2000 };

/* ---- the time of --wait ---- */

/* When it ends; UINT64_MAX: never; without --wait at once. */
static uint64_t wait_end(const struct args *args)
{
    uint64_t now = clock_ms();
    uint64_t timeout_ms = args->number[F_timeout];
    if (!args->given[F_wait])
        return now;
    return timeout_ms > 0 && timeout_ms < UINT64_MAX - now ? now + timeout_ms : UINT64_MAX;
}

/* No look outlives the wait by more than LAST_LOOK_MS: a hook that stops a node is killed soon. */
static void limit_look(struct ctl *ctl, uint64_t end)
{
    uint64_t least = clock_ms() + LAST_LOOK_MS;
    if (end != UINT64_MAX)
        client_limit(ctl->client, end > least ? end : least);
}

static bool pause_look(uint64_t end)
{
    uint64_t now = clock_ms();
    uint64_t left = end > now ? end - now : 0;
    return interrupt_pause(left < LOOK_MS ? left : LOOK_MS);
}

/* ---- one look ---- */

/* Only the names of the buckets are needed: the overview counts them.  Public listeners have the
 * list, and a caller with the cluster's key for a control listener may have no login there. */
static int ask(struct ctl *ctl, char **overview, char **buckets, struct dfc_error *told)
{
    int rc = dfc_cluster_show(ctl->client, NULL, overview, told);
    if (rc != DFC_OK || client_control_endpoints(ctl->client) != NULL)
        return rc;
    return dfc_bucket_list(ctl->client, buckets, told);
}

struct verdict {
    json_t *reasons;
    bool in_vain; /* waiting does not change them */
};

static void verdict_done(struct verdict *v)
{
    json_decref(v->reasons);
}

static int judge(struct ctl *ctl, const char *id, const char *overview_text,
                 const char *buckets_text, struct verdict *v)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *overview = NULL;
    _cleanup_json_ json_t *buckets = NULL;
    int code = ctl_parse(ctl, overview_text, &overview);
    if (code == EXIT_OK && buckets_text != NULL)
        code = ctl_parse(ctl, buckets_text, &buckets);
    if (code == EXIT_OK && stop_check(overview, buckets, id, &v->reasons, &err) != 0)
        code = ctl_fail_common(ctl, &err, EXIT_NOT_FOUND);
    v->in_vain = code == EXIT_OK && stop_waits_in_vain(overview, buckets, id);
    return code;
}

/* EXIT_UNREACHABLE: *told says why, and is not reported; all other failures are. */
static int look(struct ctl *ctl, const char *id, struct verdict *v, struct dfc_error *told)
{
    _cleanup_free_ char *overview = NULL;
    _cleanup_free_ char *buckets = NULL;
    if (ask(ctl, &overview, &buckets, told) == DFC_OK)
        return judge(ctl, id, overview, buckets, v);
    if (exit_of_error(told) == EXIT_UNREACHABLE)
        return EXIT_UNREACHABLE;
    return ctl_fail(ctl, told, overview == NULL ? "cluster" : "buckets");
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

/* ---- the wait ---- */

struct stop_wait {
    struct ctl *ctl;
    const char *id;
    bool waits;
    uint64_t end;
    bool said_away;
    json_t *said; /* reasons */
};

/* A proxy that restarts is away for some seconds. */
static void say_away(struct stop_wait *w, const struct dfc_error *told)
{
    if (!w->said_away)
        ctl_remark(w->ctl, "dfcctl: %s; waiting for an answer", told->message);
    w->said_away = true;
}

static void say_reasons(struct stop_wait *w, json_t *reasons)
{
    size_t i;
    json_t *reason;
    if (w->said != NULL && json_equal(w->said, reasons))
        return;
    json_decref(w->said);
    w->said = json_incref(reasons);
    json_array_foreach(reasons, i, reason)
        ctl_remark(w->ctl, "dfcctl: waiting: %s", json_string_value(reason));
}

static int finish(const struct stop_wait *w, const struct verdict *v)
{
    print(w->ctl, w->id, v->reasons);
    if (json_array_size(v->reasons) == 0)
        return EXIT_OK;
    if (w->waits && v->in_vain)
        ctl_remark(w->ctl, "dfcctl: waiting makes no copies: raise them ('dfcctl bucket props "
                           "BUCKET --copies 2'), or stop the node all the same");
    return w->waits && !v->in_vain ? EXIT_UNREACHABLE : EXIT_FAILED;
}

/* *code: the command ends with it, where it returns true. */
static bool look_once(struct stop_wait *w, int *code)
{
    _cleanup_(verdict_done)
    struct verdict v = {.reasons = NULL};
    struct dfc_error told;
    if (w->waits)
        limit_look(w->ctl, w->end);
    *code = look(w->ctl, w->id, &v, &told);
    bool last = clock_ms() >= w->end;
    if (*code == EXIT_UNREACHABLE && last) {
        *code = ctl_fail(w->ctl, &told, "cluster");
    } else if (*code == EXIT_UNREACHABLE) {
        say_away(w, &told);
        return false;
    } else if (*code == EXIT_OK) {
        if (!last && !v.in_vain && json_array_size(v.reasons) > 0) {
            say_reasons(w, v.reasons);
            return false;
        }
        *code = finish(w, &v);
    }
    return true;
}

int node_ok_to_stop(struct ctl *ctl, const struct args *args)
{
    struct stop_wait w = {
        .ctl = ctl, .id = args->words[0], .waits = args->given[F_wait], .end = wait_end(args)};
    int code = EXIT_OK;
    if (args->given[F_timeout] && !w.waits)
        return ctl_usage(ctl, "--timeout goes with --wait");
    while (!look_once(&w, &code)) {
        if (!pause_look(w.end)) {
            code = EXIT_INTERRUPTED;
            break;
        }
    }
    json_decref(w.said);
    return code;
}
