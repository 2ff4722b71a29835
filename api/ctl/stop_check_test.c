#include "api/ctl/stop_check.h"

#include <setjmp.h>
#include <stdarg.h>
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
    {P1 "," T1, ONE, "p1", 0, "no other proxy is active"},
    {P1 "," P2 "," T1, ONE, "p1", 1, ""},
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
    snprintf(text, sizeof text, "{'nodes':[%s],'moving':%s}", nodes, moving ? "true" : "false");
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
        cmocka_unit_test(a_node_that_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
