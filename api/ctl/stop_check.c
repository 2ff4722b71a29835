#include "api/ctl/stop_check.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { BUCKETS_NAMED = 5 };

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static bool is(json_t *node, const char *field, const char *value)
{
    return strcmp(text_at(node, field), value) == 0;
}

/* Takes the text. */
static void say(json_t *reasons, char *text)
{
    json_array_append_new(reasons, json_string(text));
    free(text);
}

static json_t *find(json_t *nodes, const char *id)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        if (is(node, "id", id))
            return node;
    }
    return NULL;
}

static bool is_heard(json_t *node)
{
    return json_object_get(node, "version") != NULL && !json_is_true(json_object_get(node, "late"));
}

/* A primary of an earlier release does not tell. */
static bool may_lead(json_t *node)
{
    return is_heard(node) && !json_is_false(json_object_get(node, "electable"));
}

/* The active ones of its role for which it holds. */
static size_t count_others(json_t *nodes, json_t *node, bool (*holds)(json_t *other))
{
    size_t i, count = 0;
    json_t *other;
    json_array_foreach(nodes, i, other)
    {
        count += other != node && is(other, "role", text_at(node, "role")) &&
                 is(other, "state", "active") && (holds == NULL || holds(other));
    }
    return count;
}

static void check_proxy(json_t *reasons, json_t *nodes, json_t *node)
{
    if (is(node, "state", "unreachable"))
        return;
    if (count_others(nodes, node, is_heard) == 0)
        say(reasons, xstrdup("no other proxy is active and reached"));
    else if (json_is_true(json_object_get(node, "primary")) &&
             count_others(nodes, node, may_lead) == 0)
        say(reasons, xstrdup("it is the primary, and no other proxy that is active and reached may "
                             "be elected: changes would be refused"));
}

/* Another target, which must stand in. */
static void check_other(json_t *reasons, json_t *other)
{
    const char *id = text_at(other, "id");
    json_t *capacity = json_object_get(other, "capacity");
    if (!is(other, "state", "active")) {
        if (is(other, "state", "unreachable"))
            say(reasons, xprintf("target '%s' is unreachable", id));
        return;
    }
    if (json_object_get(other, "version") == NULL)
        say(reasons, xprintf("target '%s' has not reported to the primary yet", id));
    if (json_is_true(json_object_get(other, "late")))
        say(reasons, xprintf("target '%s' is late with its reports", id));
    if (text_at(other, "lag")[0] != '\0')
        say(reasons,
            xprintf("target '%s' has not got yet what it missed (%s)", id, text_at(other, "lag")));
    if (json_integer_value(json_object_get(capacity, "mountpaths_missing")) > 0)
        say(reasons, xprintf("target '%s' has a mountpath that is disabled or missing", id));
}

/* The overview counts all buckets of the cluster.  The list, where there is one, has those that the
 * caller may list. */
static void check_unlisted(json_t *reasons, json_t *protection, size_t listed, bool has_list)
{
    json_int_t exposed = json_integer_value(json_object_get(protection, "one_copy")) +
                         json_integer_value(json_object_get(protection, "degraded")) +
                         json_integer_value(json_object_get(protection, "unavailable"));
    if (!json_is_object(protection))
        say(reasons, xstrdup("the primary does not say how buckets are protected: is it of an "
                             "older release?"));
    else if (exposed > 0 && !has_list)
        say(reasons, xprintf("%lld of the buckets are not protected: see PROTECTION of "
                             "'dfcctl bucket ls'",
                             (long long)exposed));
    else if (exposed > (json_int_t)listed)
        say(reasons, xprintf("%lld buckets that you may not list are not protected",
                             (long long)exposed - (long long)listed));
}

static void check_buckets(json_t *reasons, json_t *buckets, json_t *protection)
{
    size_t i, exposed = 0;
    json_t *b;
    json_array_foreach(buckets, i, b)
    {
        if (is(b, "protection", "protected") || exposed++ >= BUCKETS_NAMED)
            continue;
        if (is(b, "protection", "one_copy"))
            say(reasons, xprintf("bucket '%s' keeps one copy of each object", text_at(b, "name")));
        else
            say(reasons,
                xprintf("bucket '%s' is %s", text_at(b, "name"), text_at(b, "protection")));
    }
    if (exposed > BUCKETS_NAMED)
        say(reasons, xprintf("%zu more buckets are not protected", exposed - BUCKETS_NAMED));
    check_unlisted(reasons, protection, exposed, buckets != NULL);
}

static void check_target(json_t *reasons, json_t *overview, json_t *buckets, json_t *node)
{
    json_t *nodes = json_object_get(overview, "nodes");
    bool moving = !json_is_false(json_object_get(overview, "moving"));
    size_t i;
    json_t *other;
    if (is(node, "state", "unreachable"))
        return;
    if (moving)
        say(reasons, xstrdup("objects are being moved between targets: see 'dfcctl job ls --kind "
                             "rebalance'"));
    if (!is(node, "state", "active"))
        return;
    if (count_others(nodes, node, NULL) == 0)
        say(reasons, xstrdup("no other target is active"));
    json_array_foreach(nodes, i, other)
    {
        if (other != node && is(other, "role", "target"))
            check_other(reasons, other);
    }
    check_buckets(reasons, buckets, json_object_get(overview, "protection"));
}

int stop_check(json_t *overview, json_t *buckets, const char *id, json_t **reasons,
               struct error *err)
{
    json_t *nodes = json_object_get(overview, "nodes");
    json_t *node = find(nodes, id);
    if (node == NULL)
        return error_set(err, E_NODE_NOT_FOUND, "no node is called '%.64s'", id);
    *reasons = json_array();
    if (is(node, "role", "target"))
        check_target(*reasons, overview, json_object_get(buckets, "buckets"), node);
    else
        check_proxy(*reasons, nodes, node);
    return 0;
}

/* The buckets of the list but for those of one copy; NULL where there is no list. */
static json_t *without_one_copy(json_t *buckets)
{
    json_t *kept = json_array(), *b;
    size_t i;
    json_array_foreach(json_object_get(buckets, "buckets"), i, b)
    {
        if (!is(b, "protection", "one_copy"))
            json_array_append(kept, b);
    }
    if (buckets != NULL)
        return json_pack("{s:o}", "buckets", kept);
    json_decref(kept);
    return NULL;
}

bool stop_waits_in_vain(json_t *overview, json_t *buckets, const char *id)
{
    _cleanup_json_ json_t *others = json_deep_copy(overview);
    _cleanup_json_ json_t *kept = without_one_copy(buckets);
    _cleanup_json_ json_t *all = NULL;
    _cleanup_json_ json_t *rest = NULL;
    json_object_del(json_object_get(others, "protection"), "one_copy");
    return stop_check(overview, buckets, id, &all, NULL) == 0 && json_array_size(all) > 0 &&
           stop_check(others, kept, id, &rest, NULL) == 0 && json_array_size(rest) == 0;
}

/* A proxy may be behind at first, so that the state must have been there once. */
static int check_undone(json_t *node, const char *id, const char *wanted, bool *seen,
                        struct error *err)
{
    bool is_so = is(node, "state", wanted);
    *seen = *seen || is_so;
    if (!*seen || is_so || is(node, "state", "unreachable"))
        return 0;
    return error_set(err, E_ABORTED, "node '%.64s' is no longer %s, but %s", id, wanted,
                     text_at(node, "state"));
}

int stop_moved(json_t *overview, const char *id, const char *state, bool *seen, bool *done,
               struct error *err)
{
    json_t *moving = json_object_get(overview, "moving");
    json_t *node = find(json_object_get(overview, "nodes"), id);
    *done = false;
    if (!json_is_boolean(moving))
        return error_set(err, E_UNSUPPORTED,
                         "the primary is of an older release and does not say whether objects are "
                         "being moved: see 'dfcctl job ls --kind rebalance'");
    if (node == NULL && state != NULL)
        return error_set(err, E_ABORTED, "node '%.64s' is no longer %s, but out of the cluster", id,
                         state);
    *done = json_is_false(moving) && (node == NULL || (state != NULL && is(node, "state", state)));
    if (*done || node == NULL)
        return 0;
    return check_undone(node, id, state != NULL ? state : "decommissioning", seen, err);
}
