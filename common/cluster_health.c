#include "common/cluster_health.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum colour { GREEN, YELLOW, RED };

const char *const cluster_health_colours[] = {
    [GREEN] = "green", [YELLOW] = "yellow", [RED] = "red", NULL};

struct verdict {
    enum colour worst;
    json_t *reasons[3]; /* by colour */
};

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

/* Takes the text. */
static void say(struct verdict *v, enum colour c, const char *node, char *text)
{
    json_t *reason = json_pack("{s:s, s:s*, s:s}", "health", cluster_health_colours[c], "node",
                               node, "text", text);
    json_array_append_new(v->reasons[c], reason);
    if (c > v->worst)
        v->worst = c;
    free(text);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* An unreachable target's objects give 503, unless others stand in, for every bucket. */
static bool others_answer(json_t *protection)
{
    return json_integer_value(json_object_get(protection, "degraded")) > 0 &&
           json_integer_value(json_object_get(protection, "unavailable")) == 0;
}

/* What it had is on others when nothing is being moved any more. */
static const char *absence_text(json_t *node, bool moving)
{
    if (!json_is_true(json_object_get(node, "absent")))
        return "";
    return moving ? ", and does not answer: a rebalance waits for it"
                  : ", and does not answer, which it need not";
}

/* A primary that has just begun has the map of before, and a target its disks of before. */
static void judge_unheard(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    if (strcmp(text_at(node, "state"), "active") == 0 && json_object_get(node, "version") == NULL)
        say(v, YELLOW, id,
            xprintf("'%s' has not reported since it or the primary started: ask again", id));
}

/* It may be dead: until the map says so its objects are asked of it. */
static void judge_late(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    double silent_s = (double)json_integer_value(json_object_get(node, "silent_ms")) / 1000;
    if (json_is_true(json_object_get(node, "late")))
        say(v, YELLOW, id,
            xprintf("'%s' has not reported to the primary for %.1f s, and is given up as "
                    "unreachable if it stays silent (keepalive_timeout)",
                    id, silent_s));
}

static void judge_state(struct verdict *v, json_t *node, bool is_target, bool replaced, bool moving)
{
    const char *id = text_at(node, "id");
    const char *state = text_at(node, "state");
    if (strcmp(state, "unreachable") == 0 && is_target && replaced)
        say(v, YELLOW, id,
            xprintf(
                "target '%s' is unreachable: other targets have its objects, with one copy less",
                id));
    else if (strcmp(state, "unreachable") == 0 && is_target)
        say(v, RED, id, xprintf("target '%s' is unreachable: its objects give 503", id));
    else if (strcmp(state, "unreachable") == 0)
        say(v, YELLOW, id, xprintf("proxy '%s' is unreachable", id));
    else if (strcmp(state, "active") != 0)
        say(v, YELLOW, id,
            xprintf("%s '%s' is in state %s%s", is_target ? "target" : "proxy", id, state,
                    absence_text(node, moving)));
}

/* Until an operator decides it is red, whoever stands in: nobody may get used to it. */
static void judge_missing(struct verdict *v, json_t *node, long long disks)
{
    const char *id = text_at(node, "id");
    const char *path = text_at(json_object_get(node, "capacity"), "disk_missing");
    _cleanup_free_ char *others = disks > 1 ? xprintf(" and %lld more", disks - 1) : xstrdup("");
    if (disks > 0)
        say(v, RED, id,
            xprintf("mountpath '%s'%s of '%s' was missing at its start: objects that only it has "
                    "give 503. Mount the disk, and 'dfcctl storage mountpath enable %s %s'; or "
                    "give it up: 'dfcctl storage mountpath detach %s %s --lost'",
                    path, others, id, id, path, id, path));
}

static void judge_mountpaths(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    json_t *capacity = json_object_get(node, "capacity");
    long long disks = json_integer_value(json_object_get(capacity, "disks_missing"));
    long long missing = json_integer_value(json_object_get(capacity, "mountpaths_missing")) - disks;
    judge_missing(v, node, disks);
    if (missing > 0)
        say(v, YELLOW, id,
            xprintf("%lld mountpath%s of '%s' %s disabled: objects that only it has give 503, and "
                    "other owners serve buckets with copies; enable it, or give it up "
                    "('dfcctl storage mountpath detach %s PATH --lost')",
                    missing, missing > 1 ? "s" : "", id, missing > 1 ? "are" : "is", id));
}

static void judge_lag(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    if (strcmp(text_at(node, "state"), "active") == 0 && text_at(node, "lag")[0] != '\0')
        say(v, YELLOW, id,
            xprintf("the copies on '%s' must be compared (%s): a repair begins by itself when the "
                    "map has been unchanged for repair_delay; see 'dfcctl job ls --kind repair'",
                    id, text_at(node, "lag")));
}

/* Those of the list that the overview has: the first ones of many. */
static size_t judge_bucket(struct verdict *v, json_t *bucket)
{
    bool red = strcmp(text_at(bucket, "protection"), "unavailable") == 0;
    say(v, red ? RED : YELLOW, NULL,
        xprintf("bucket '%s' is %s: %s", text_at(bucket, "bucket"), text_at(bucket, "protection"),
                text_at(bucket, "why")));
    return 1;
}

static void judge_protection(struct verdict *v, json_t *protection, json_t *at_risk)
{
    size_t i, named = 0;
    json_t *bucket;
    json_array_foreach(at_risk, i, bucket) named += judge_bucket(v, bucket);
    size_t all = (size_t)json_integer_value(json_object_get(protection, "degraded")) +
                 (size_t)json_integer_value(json_object_get(protection, "unavailable"));
    if (all > named)
        say(v, YELLOW, NULL,
            xprintf("%zu more bucket%s degraded or unavailable: 'dfcctl bucket ls'", all - named,
                    all - named > 1 ? "s are" : " is"));
}

static void judge_credentials(struct verdict *v, json_t *buckets)
{
    size_t i;
    json_t *bucket;
    json_array_foreach(buckets, i, bucket)
        say(v, YELLOW, NULL,
            xprintf("bucket '%s' cannot ask its backend: %s", text_at(bucket, "bucket"),
                    text_at(bucket, "why")));
}

static void judge_quotas(struct verdict *v, json_t *buckets)
{
    size_t i;
    json_t *bucket;
    json_array_foreach(buckets, i, bucket)
    {
        const char *name = text_at(bucket, "bucket");
        bool over = strcmp(text_at(bucket, "use"), "over") == 0;
        say(v, YELLOW, NULL,
            xprintf("bucket '%s' has used %s its quota (%s): delete objects, or raise the quota "
                    "('dfcctl bucket props %s')",
                    name, over ? "up" : "most of", text_at(bucket, "text"), name));
    }
}

static void judge_space(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    json_t *capacity = json_object_get(node, "capacity");
    long long high = json_integer_value(json_object_get(capacity, "mountpaths_high"));
    long long out = json_integer_value(json_object_get(capacity, "mountpaths_out"));
    if (out > 0)
        say(v, RED, id,
            xprintf("%lld mountpath%s of '%s' above space_out: PUT is refused there", out,
                    out > 1 ? "s" : "", id));
    if (high > out)
        say(v, YELLOW, id,
            xprintf("%lld mountpath%s of '%s' above space_high", high - out,
                    high - out > 1 ? "s" : "", id));
}

static void judge_damage(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    long long files =
        json_integer_value(json_object_get(json_object_get(node, "capacity"), "quarantined"));
    if (files > 0)
        say(v, YELLOW, id,
            xprintf(
                "%lld damaged file%s of '%s' in quarantine: see what they are in the mountpaths' "
                ".dfc/quarantine, and remove them there when that is dealt with",
                files, files > 1 ? "s" : "", id));
}

/* "35 min": in the greatest unit that it is at least one of. */
static char *age_text(long long ms)
{
    static const struct {
        long long ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (units[i].ms > 1 && ms < units[i].ms)
        i++;
    return xprintf("%lld %s", ms / units[i].ms, units[i].name);
}

static void judge_uploads(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    json_t *capacity = json_object_get(node, "capacity");
    long long late = json_integer_value(json_object_get(capacity, "uploads_late"));
    _cleanup_free_ char *age =
        age_text(json_integer_value(json_object_get(capacity, "uploads_oldest_ms")));
    if (late > 0)
        say(v, YELLOW, id,
            xprintf("%lld of %lld writes on '%s' that wait for a backend were made more than "
                    "'back_late' ago, the first %s ago: its log says why ('not uploaded yet')",
                    late, json_integer_value(json_object_get(capacity, "uploads_waiting")), id,
                    age));
}

static void judge_backends(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    json_t *capacity = json_object_get(node, "capacity");
    long long buckets = json_integer_value(json_object_get(capacity, "backends_failing"));
    _cleanup_free_ char *others =
        buckets > 1 ? xprintf(" (and of %lld more)", buckets - 1) : xstrdup("");
    if (buckets > 0)
        say(v, YELLOW, id,
            xprintf("the last requests of '%s' to %s, the backend of bucket '%s'%s, failed: its "
                    "log says why. A request that succeeds ends this",
                    id, text_at(capacity, "failing_endpoint"), text_at(capacity, "failing_bucket"),
                    others));
}

/* A daemon warns in its log for as long. */
static void judge_certificate(struct verdict *v, json_t *node)
{
    enum { SOON_S = 14 * 24 * 3600 };
    const char *id = text_at(node, "id");
    long long left_s = json_integer_value(json_object_get(node, "certificate_left_s"));
    _cleanup_free_ char *left = age_text(left_s * 1000);
    if (left_s > 0 && left_s < SOON_S)
        say(v, YELLOW, id,
            xprintf("the certificate of '%s' expires in %s: replace its files (--tls-cert, "
                    "--tls-key)",
                    id, left));
}

static void judge_losses(struct verdict *v, json_t *node)
{
    const char *id = text_at(node, "id");
    long long lost = json_integer_value(json_object_get(json_object_get(node, "capacity"), "lost"));
    if (lost > 0)
        say(v, RED, id,
            xprintf(
                "%lld lost object%s, says '%s': no target has the bytes. 'dfcctl storage summary' "
                "names such objects: put them again, or delete them",
                lost, lost > 1 ? "s" : "", id));
}

static void judge_nodes(struct verdict *v, json_t *nodes, bool replaced, bool moving, bool heard)
{
    size_t i, active = 0;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        bool is_target = strcmp(text_at(node, "role"), "target") == 0;
        active += is_target && strcmp(text_at(node, "state"), "active") == 0;
        judge_state(v, node, is_target, replaced, moving);
        if (heard)
            judge_unheard(v, node);
        judge_late(v, node);
        judge_lag(v, node);
        judge_mountpaths(v, node);
        judge_space(v, node);
        judge_damage(v, node);
        judge_losses(v, node);
        judge_uploads(v, node);
        judge_backends(v, node);
        judge_certificate(v, node);
    }
    if (active == 0)
        say(v, RED, NULL, xstrdup("no target is active: no object can be read or stored"));
}

/* --- the cluster ------------------------------------------------------------------------------ */

/* Is it the primary's own?  Only that tells of the primary's version. */
static bool primary_answered(json_t *overview)
{
    const char *primary = text_at(overview, "primary");
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(overview, "nodes"), i, node)
    {
        if (strcmp(text_at(node, "id"), primary) == 0)
            return json_object_get(node, "version") != NULL;
    }
    return false;
}

static void judge_primary(struct verdict *v, json_t *overview)
{
    const char *primary = text_at(overview, "primary");
    if (primary[0] != '\0' && !primary_answered(overview))
        say(v, RED, primary,
            xprintf("the primary, '%s', does not answer: no changes of buckets, nodes and "
                    "settings, no jobs; what is known of the nodes may be old",
                    primary));
}

static void judge_refused(struct verdict *v, json_t *overview)
{
    json_int_t count = json_integer_value(json_object_get(overview, "refused"));
    if (count > 0)
        say(v, RED, NULL,
            xprintf(
                "%lld node%s that the primary refuses know documents which it has not: look with "
                "'dfcctl cluster recover --dry-run'",
                (long long)count, count > 1 ? "s" : ""));
}

static void judge_exposure(struct verdict *v, json_t *overview)
{
    if (json_is_true(json_object_get(overview, "open_to_all")))
        say(v, YELLOW, NULL,
            xstrdup("anybody who reaches a public port may do anything (--anonymous=all): start "
                    "all nodes with --public-auth"));
}

static void judge_secrets(struct verdict *v, json_t *overview)
{
    json_int_t count = json_integer_value(json_object_get(overview, "sealed_by_old_key"));
    if (count > 0)
        say(v, YELLOW, NULL,
            xprintf("%lld secret%s of users %s sealed under an old cluster key: keep its line in "
                    "the key's file, and ask for 'POST /v1/auth/reseal'",
                    (long long)count, count > 1 ? "s" : "", count > 1 ? "are" : "is"));
}

json_t *cluster_health_judge(json_t *overview)
{
    struct verdict v = {.reasons = {json_array(), json_array(), json_array()}};
    judge_primary(&v, overview);
    json_t *protection = json_object_get(overview, "protection");
    judge_nodes(&v, json_object_get(overview, "nodes"), others_answer(protection),
                !json_is_false(json_object_get(overview, "moving")), primary_answered(overview));
    judge_protection(&v, protection, json_object_get(overview, "at_risk"));
    judge_credentials(&v, json_object_get(overview, "without_credentials"));
    judge_quotas(&v, json_object_get(overview, "quotas"));
    judge_refused(&v, overview);
    judge_exposure(&v, overview);
    judge_secrets(&v, overview);
    if (v.worst == GREEN && !json_is_true(json_object_get(overview, "healthy")))
        say(&v, RED, NULL, xstrdup("no primary takes changes"));
    json_t *reasons = v.reasons[RED];
    json_array_extend(reasons, v.reasons[YELLOW]);
    json_decref(v.reasons[YELLOW]);
    json_decref(v.reasons[GREEN]);
    return json_pack("{s:s, s:o}", "health", cluster_health_colours[v.worst], "reasons", reasons);
}

json_t *cluster_health_said(json_t *overview)
{
    json_t *health = json_object_get(overview, "health");
    json_t *reasons = json_object_get(overview, "reasons");
    if (!json_is_string(health) || !json_is_array(reasons))
        return cluster_health_judge(overview);
    return json_pack("{s:O, s:O}", "health", health, "reasons", reasons);
}

const char *cluster_health_colour(json_t *overview)
{
    _cleanup_json_ json_t *doc = cluster_health_judge(overview);
    const char *colour = json_string_value(json_object_get(doc, "health"));
    size_t i = GREEN;
    while (strcmp(cluster_health_colours[i], colour) != 0)
        i++;
    return cluster_health_colours[i];
}
