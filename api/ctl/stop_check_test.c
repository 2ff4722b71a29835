#include "api/ctl/stop_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

#define P1 "{'id':'p1','role':'proxy','state':'active','version':1}"
#define P2 "{'id':'p2','role':'proxy','state':'active','version':1}"
#define TARGET(id, state, more) "{'id':'" id "','role':'target','state':'" state "'" more "}"
#define T1 TARGET("t1", "active", ",'version':1")
#define T2 TARGET("t2", "active", ",'version':1")
#define PROXY(id, more) "{'id':'" id "','role':'proxy','state':'active'" more "}"
#define GATEWAY(id) PROXY(id, ",'version':1,'electable':false")
#define LEADER PROXY("p1", ",'version':1,'electable':true,'primary':true")
#define NOT_LED                                                                                 \
    "it is the primary, and no other proxy that is active and reached may be elected: changes " \
    "would be refused"
#define WHOLE "{'name':'a','protection':'protected'}"
#define ONE "{'name':'b','protection':'one_copy'}"

static const struct {
    const char *nodes, *buckets, *node;
    int moving;
    const char *reasons; /* joined by "; " */
} rows[] = {
    {P1 "," T1 "," T2, WHOLE, "t1", 0, ""},
    {P1 "," T1 "," T2, "", "t1", 0, ""},
    {P1 "," T1, "", "t1", 0, "no other target is active"},
    {P1 "," T1 "," T2, WHOLE "," ONE, "t1", 0, "bucket 'b' keeps one copy of each object"},
    {P1 "," T1 "," T2, "{'name':'c','protection':'degraded'}", "t1", 0, "bucket 'c' is degraded"},
    {P1 "," T1 "," T2, WHOLE, "t1", 1,
     "objects are being moved between targets: see 'dfcctl job ls --kind rebalance'"},
    {P1 "," T1 "," T2 "," TARGET("t3", "unreachable", ""), WHOLE, "t1", 0,
     "target 't3' is unreachable"},
    {P1 "," T1 "," T2 "," TARGET("t3", "unreachable", ""), WHOLE, "t3", 0, ""},
    {P1 "," T1 "," TARGET("t2", "active", ",'version':1,'lag':'missed'"), WHOLE, "t1", 0,
     "target 't2' has not got yet what it missed (missed)"},
    {P1 "," T1 "," TARGET("t2", "active", ",'version':1,'lag':'missed'"), WHOLE, "t2", 0, ""},
    {P1 "," T1 "," TARGET("t2", "active", ""), WHOLE, "t1", 0,
     "target 't2' has not reported to the primary yet"},
    {P1 "," T1 "," TARGET("t2", "active", ",'version':1,'late':true"), WHOLE, "t1", 0,
     "target 't2' is late with its reports"},
    {P1 "," T1 "," TARGET("t2", "active", ",'version':1,'capacity':{'mountpaths_missing':1}"),
     WHOLE, "t1", 0, "target 't2' has a mountpath that is disabled or missing"},
    {P1 "," T1 "," TARGET("t2", "maintenance", ""), ONE, "t2", 0, ""},
    {P1 "," T1 "," TARGET("t2", "maintenance", ""), ONE, "t2", 1,
     "objects are being moved between targets: see 'dfcctl job ls --kind rebalance'"},
    {P1 "," T1, ONE, "p1", 0, "no other proxy is active and reached"},
    {P1 "," PROXY("p2", "") "," T1, ONE, "p1", 0, "no other proxy is active and reached"},
    {P1 "," PROXY("p2", ",'version':1,'late':true") "," T1, ONE, "p1", 0,
     "no other proxy is active and reached"},
    {P1 "," P2 "," T1, ONE, "p1", 1, ""},
    {LEADER "," P2 "," T1, ONE, "p1", 0, ""}, /* of an earlier release */
    {LEADER "," PROXY("p2", ",'version':1,'electable':true") "," T1, ONE, "p1", 0, ""},
    {LEADER "," GATEWAY("p2") "," T1, ONE, "p1", 0, NOT_LED},
    {LEADER "," GATEWAY("p2") "," PROXY("p3", ",'version':1,'electable':true,'late':true"), ONE,
     "p1", 0, NOT_LED},
    {LEADER "," GATEWAY("p2") "," PROXY("p3", ",'version':1,'electable':true"), ONE, "p1", 0, ""},
    {LEADER "," GATEWAY("p2") "," T1, ONE, "p2", 0, ""},
    {P1 "," T1 "," T2, ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE, "t1", 0,
     "bucket 'b' keeps one copy of each object; bucket 'b' keeps one copy of each object; bucket "
     "'b' keeps one copy of each object; bucket 'b' keeps one copy of each object; bucket 'b' "
     "keeps one copy of each object; 2 more buckets are not protected"},
};

static json_t *parsed(const char *text)
{
    json_t *doc = NULL;
    char json[4096];
    snprintf(json, sizeof json, "%s", text);
    for (char *p = json; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    assert_int_equal(json_parse(json, strlen(json), &doc, NULL), 0);
    return doc;
}

static json_t *overview_of(const char *nodes, int moving)
{
    char text[4096];
    snprintf(text, sizeof text, "{'nodes':[%s],'moving':%s,'protection':{}}", nodes,
             moving ? "true" : "false");
    return parsed(text);
}

static json_t *buckets_of(const char *buckets)
{
    char text[4096];
    snprintf(text, sizeof text, "{'buckets':[%s]}", buckets);
    return parsed(text);
}

static void join(json_t *reasons, char *out, size_t room)
{
    size_t i;
    json_t *one;
    out[0] = '\0';
    json_array_foreach(reasons, i, one)
    {
        size_t len = strlen(out);
        snprintf(out + len, room - len, "%s%s", i > 0 ? "; " : "", json_string_value(one));
    }
}

static void who_may_be_stopped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_json_ json_t *overview = overview_of(rows[i].nodes, rows[i].moving);
        _cleanup_json_ json_t *buckets = buckets_of(rows[i].buckets);
        _cleanup_json_ json_t *reasons = NULL;
        char said[1024];
        assert_int_equal(stop_check(overview, buckets, rows[i].node, &reasons, NULL), 0);
        join(reasons, said, sizeof said);
        assert_string_equal(said, rows[i].reasons);
    }
}

/* What the overview counts, with the list of one who may see the bucket 'b' alone. */
static const struct {
    const char *protection, *reasons;
} unlisted[] = {
    {"'one_copy':1,'protected':3,'degraded':0,'unavailable':0",
     "bucket 'b' keeps one copy of each object"},
    {"'one_copy':2,'protected':3,'degraded':1,'unavailable':1",
     "bucket 'b' keeps one copy of each object; 3 buckets that you may not list are not "
     "protected"},
    {NULL, "bucket 'b' keeps one copy of each object; the primary does not say how buckets are "
           "protected: is it of an older release?"},
};

static void buckets_that_the_caller_may_not_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unlisted / sizeof *unlisted; i++) {
        _cleanup_json_ json_t *overview = overview_of(P1 "," T1 "," T2, 0);
        _cleanup_json_ json_t *buckets = buckets_of(ONE);
        _cleanup_json_ json_t *reasons = NULL;
        char text[256], said[1024];
        json_object_del(overview, "protection");
        if (unlisted[i].protection != NULL) {
            snprintf(text, sizeof text, "{%s}", unlisted[i].protection);
            json_object_set_new(overview, "protection", parsed(text));
        }
        assert_int_equal(stop_check(overview, buckets, "t1", &reasons, NULL), 0);
        join(reasons, said, sizeof said);
        assert_string_equal(said, unlisted[i].reasons);
    }
}

/* A caller with the cluster's key alone did not ask for the list. */
static void buckets_are_counted_without_a_list(void **state)
{
    (void)state;
    static const char *const exposed[] = {"'one_copy':0,'protected':3",
                                          "'one_copy':2,'protected':3,'degraded':1"};
    static const char *const said[] = {
        "", "3 of the buckets are not protected: see PROTECTION of 'dfcctl bucket ls'"};
    for (size_t i = 0; i < sizeof exposed / sizeof *exposed; i++) {
        _cleanup_json_ json_t *overview = overview_of(P1 "," T1 "," T2, 0);
        _cleanup_json_ json_t *reasons = NULL;
        char text[256], joined[1024];
        snprintf(text, sizeof text, "{%s}", exposed[i]);
        json_object_set_new(overview, "protection", parsed(text));
        assert_int_equal(stop_check(overview, NULL, "t1", &reasons, NULL), 0);
        join(reasons, joined, sizeof joined);
        assert_string_equal(joined, said[i]);
    }
}

static bool in_vain(const char *nodes, const char *buckets, const char *protection)
{
    _cleanup_json_ json_t *overview = overview_of(nodes, 0);
    _cleanup_json_ json_t *listed = buckets != NULL ? buckets_of(buckets) : NULL;
    json_object_set_new(overview, "protection", parsed(protection));
    return stop_waits_in_vain(overview, listed, "t1");
}

static void waiting_does_not_make_copies(void **state)
{
    (void)state;
    const char *all = P1 "," T1 "," T2;
    const char *behind = P1 "," T1 "," TARGET("t2", "active", ",'version':1,'lag':'missed'");
    assert_true(in_vain(all, WHOLE "," ONE, "{'one_copy':1,'protected':1}"));
    assert_true(in_vain(all, ONE, "{'one_copy':2}")); /* one that may not be listed */
    assert_true(in_vain(all, NULL, "{'one_copy':2}"));
    assert_false(in_vain(all, WHOLE, "{'one_copy':0}"));
    assert_false(in_vain(all, NULL, "{'one_copy':1,'degraded':1}"));
    assert_false(in_vain(all, ONE ",{'name':'c','protection':'degraded'}", "{'one_copy':1}"));
    assert_false(in_vain(behind, ONE, "{'one_copy':1}"));
}

#define AT(state) TARGET("t2", state, ",'version':1")

/* One wait a row: what it sees first, and then. */
static const struct {
    const char *wanted; /* NULL: that the node leaves */
    const char *first;  /* t2 */
    int moving;
    const char *then;
    int then_moving;
    bool done;
    int code;
} waits[] = {
    {"maintenance", AT("maintenance"), 1, AT("maintenance"), 0, true, 0},
    {"maintenance", AT("maintenance"), 1, AT("maintenance"), 1, false, 0},
    {"maintenance", AT("active"), 0, AT("active"), 0, false, 0}, /* a proxy that is behind */
    {"maintenance", AT("maintenance"), 1, AT("active"), 1, false, E_ABORTED},
    {"maintenance", AT("maintenance"), 1, AT("unreachable"), 1, false, 0},
    {"maintenance", AT("maintenance"), 1, "", 1, false, E_ABORTED},
    {"maintenance", AT("active"), 0, "", 0, false, E_ABORTED},
    {NULL, AT("decommissioning"), 1, "", 1, false, 0},
    {NULL, AT("decommissioning"), 1, "", 0, true, 0},
    {NULL, AT("decommissioning"), 0, AT("decommissioning"), 0, false, 0},
    {NULL, AT("decommissioning"), 1, AT("active"), 1, false, E_ABORTED},
};

static void a_wait_ends_when_nothing_is_being_moved(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        _cleanup_json_ json_t *first = overview_of(waits[i].first, waits[i].moving);
        _cleanup_json_ json_t *then = overview_of(waits[i].then, waits[i].then_moving);
        bool seen = false, done = true;
        assert_int_equal(stop_moved(first, "t2", waits[i].wanted, &seen, &done, NULL), 0);
        assert_false(done);
        assert_int_equal(stop_moved(then, "t2", waits[i].wanted, &seen, &done, NULL),
                         waits[i].code);
        assert_int_equal(done, waits[i].done);
    }
}

static void a_wait_that_cannot_know(void **state)
{
    (void)state;
    _cleanup_json_ json_t *overview = overview_of("", 0);
    struct error err = ERROR_INIT;
    bool seen = false, done = true;
    assert_int_equal(stop_moved(overview, "t2", "maintenance", &seen, &done, &err), E_ABORTED);
    assert_string_equal(err.message, "node 't2' is no longer maintenance, but out of the cluster");
    json_object_del(overview, "moving");
    assert_int_equal(stop_moved(overview, "t2", NULL, &seen, &done, &err), E_UNSUPPORTED);
    assert_false(done);
}

static void a_node_that_does_not_exist(void **state)
{
    (void)state;
    _cleanup_json_ json_t *overview = overview_of(P1, 0);
    json_t *reasons = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(stop_check(overview, NULL, "t9", &reasons, &err), E_NODE_NOT_FOUND);
    assert_string_equal(err.message, "no node is called 't9'");
    assert_null(reasons);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_be_stopped),
        cmocka_unit_test(buckets_that_the_caller_may_not_list),
        cmocka_unit_test(buckets_are_counted_without_a_list),
        cmocka_unit_test(waiting_does_not_make_copies),
        cmocka_unit_test(a_wait_ends_when_nothing_is_being_moved),
        cmocka_unit_test(a_wait_that_cannot_know),
        cmocka_unit_test(a_node_that_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
