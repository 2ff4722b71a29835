#include "target/node/member_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/jsonx.h"

enum { INTERVAL = 1000 };

static void test_registering_goes_round_and_pauses(void **state)
{
    (void)state;
    struct member_plan p = {0};
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    for (size_t round = 0; round < sizeof pauses / sizeof *pauses; round++) {
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(member_plan_action(&p), MEMBER_REGISTER);
            assert_int_equal(p.next, i);
            assert_int_equal(member_plan_result(&p, E_NET, 3, INTERVAL), i < 2 ? 0 : pauses[round]);
        }
    }
    for (unsigned i = 0; i < 3000; i++)
        assert_true(member_plan_result(&p, E_NET, 1, INTERVAL) <= 5000);
    assert_int_equal(member_plan_result(&p, 0, 1, INTERVAL), INTERVAL / 10);
    assert_int_equal(member_plan_action(&p), MEMBER_KEEPALIVE);
    assert_int_equal(member_plan_result(&p, 0, 1, INTERVAL), INTERVAL);
}

static void test_keepalives_survive_failures(void **state)
{
    (void)state;
    struct member_plan p = {.registered = true};
    assert_int_equal(member_plan_result(&p, E_TIMEOUT, 2, INTERVAL), 0); /* ask the other one */
    assert_int_equal(member_plan_result(&p, E_NET, 2, INTERVAL), INTERVAL);
    assert_int_equal(member_plan_action(&p), MEMBER_KEEPALIVE);
    assert_int_equal(p.next, 0);
    assert_int_equal(member_plan_result(&p, 0, 2, INTERVAL), INTERVAL);
}

static void test_no_lease_is_long_missing_because_a_state_was_on_its_way(void **state)
{
    (void)state;
    struct member_plan p = {.registered = true, .behind = true};
    assert_int_equal(member_plan_result(&p, 0, 2, INTERVAL), INTERVAL / 10);
    assert_int_equal(member_plan_result(&p, 0, 2, INTERVAL), INTERVAL);
    p.behind = true;
    assert_int_equal(member_plan_result(&p, E_NET, 1, INTERVAL), INTERVAL);
}

static void test_who_is_not_known_registers_at_once(void **state)
{
    (void)state;
    struct member_plan p = {.registered = true};
    assert_int_equal(member_plan_result(&p, E_NODE_NOT_FOUND, 2, INTERVAL), 0);
    assert_int_equal(member_plan_action(&p), MEMBER_REGISTER);
    p.registered = true; /* a primary that was started anew, and asks for proof where we do not */
    assert_int_equal(member_plan_result(&p, E_NODE_STATE, 2, INTERVAL), 0);
    assert_int_equal(member_plan_action(&p), MEMBER_REGISTER);
    /* A proxy that does not know us while we register is only one more that refuses. */
    assert_int_equal(member_plan_result(&p, E_NODE_NOT_FOUND, 1, INTERVAL), 100);
}

static void test_no_candidate_is_a_refusal_too(void **state)
{
    (void)state;
    struct member_plan p = {0};
    assert_int_equal(member_plan_result(&p, E_INVALID, 0, INTERVAL), 100);
    assert_int_equal(p.next, 0);
}

static const char state_text[] =
    "{\"format\": 1, \"cluster\": \"c-1\", \"term\": 2, \"version\": 50, \"next_bucket_id\": 1,"
    " \"primary\": \"p2\", \"smap\": {\"version\": 9, \"nodes\": ["
    "  {\"id\": \"p1\", \"role\": \"proxy\", \"state\": \"active\", \"public_url\": \"http://1p\","
    "   \"control_url\": \"http://1\", \"data_url\": \"\", \"weight\": 0, \"boot\": \"x\","
    "   \"since\": 1},"
    "  {\"id\": \"p2\", \"role\": \"proxy\", \"state\": \"active\", \"public_url\": \"http://2p\","
    "   \"control_url\": \"http://2\", \"data_url\": \"\", \"weight\": 0, \"boot\": \"x\","
    "   \"since\": 1},"
    "  {\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"public_url\": \"http://3p\","
    "   \"control_url\": \"http://3\", \"data_url\": \"http://3d\", \"weight\": 1024,"
    "   \"boot\": \"x\", \"since\": 1}]},"
    " \"bmd\": {\"version\": 0, \"buckets\": []}, \"config\": {\"version\": 0, \"values\": {}},"
    " \"jobs\": {\"version\": 0, \"jobs\": []}}";

/* `self`: of everybody who may have a newer state; NULL: of the proxies. */
static void assert_urls(const struct cluster_state *s, const char *join, const char *self,
                        const char *want)
{
    char **urls, got[256] = "";
    size_t count =
        self != NULL ? member_sources(s, join, self, &urls) : member_candidates(s, join, &urls);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s ", urls[i]);
        free(urls[i]);
    }
    free(urls);
    assert_string_equal(got, want);
}

static void test_the_primary_is_asked_first(void **state)
{
    (void)state;
    struct cluster_state *empty = state_new(""), *s = NULL;
    assert_urls(empty, "", NULL, "");
    assert_urls(empty, "http://a,http://b,,http://a", NULL, "http://a http://b ");
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(state_text, strlen(state_text), &doc, NULL), 0);
    assert_int_equal(state_from_json(doc, &s, NULL), 0);
    assert_urls(s, "http://a,http://1", NULL, "http://2 http://1 http://a ");
    assert_urls(s, "http://a,http://1", "t1", "http://2 http://1 http://a ");
    assert_urls(s, "", "t2", "http://2 http://1 http://3 ");
    state_unref(s);
    state_unref(empty);
}

/* The state of state_text is 2.50. */
static void test_a_wish_is_for_a_state_or_for_any_that_is_newer(void **state)
{
    (void)state;
    static const struct {
        const char *dfcv;
        bool granted;
    } rows[] = {
        {"2.50", true}, /* another fetch, or a push, brought it meanwhile */
        {"2.49", true}, {"1.99", true}, {"2.51", false},
        {"3.1", false}, {NULL, false},  {"nonsense", true}, /* nothing to wait for */
    };
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *s = NULL;
    assert_int_equal(json_parse(state_text, strlen(state_text), &doc, NULL), 0);
    assert_int_equal(state_from_json(doc, &s, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct member_wish w = member_wish(rows[i].dfcv, s);
        assert_int_equal(member_wish_granted(&w, s), rows[i].granted);
    }
    struct member_wish newer = member_wish(NULL, s);
    s->version++;
    assert_true(member_wish_granted(&newer, s));
    s->version = 1;
    assert_false(member_wish_granted(&newer, s));
    s->term++;
    assert_true(member_wish_granted(&newer, s));
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registering_goes_round_and_pauses),
        cmocka_unit_test(test_keepalives_survive_failures),
        cmocka_unit_test(test_no_lease_is_long_missing_because_a_state_was_on_its_way),
        cmocka_unit_test(test_who_is_not_known_registers_at_once),
        cmocka_unit_test(test_no_candidate_is_a_refusal_too),
        cmocka_unit_test(test_the_primary_is_asked_first),
        cmocka_unit_test(test_a_wish_is_for_a_state_or_for_any_that_is_newer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
