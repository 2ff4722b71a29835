#include "target/node/readiness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define NODE                                                                                     \
    "{\"id\": \"t1\", \"role\": \"target\", \"state\": \"%s\", \"public_url\": \"http://h:1\", " \
    "\"control_url\": \"http://h:2\", \"data_url\": \"http://h:3\", \"weight\": 1, "             \
    "\"boot\": \"b1\", \"since\": 1%s}"

/* The map has t1 like this; NULL: not at all. */
static struct cluster_state *state_with(const char *node_state, const char *more,
                                        const char *config, const char *jobs)
{
    _cleanup_free_ char *node = node_state != NULL ? xprintf(NODE, node_state, more) : xstrdup("");
    _cleanup_free_ char *text = xprintf(
        "{\"format\": 1, \"cluster\": \"c\", \"term\": 1, \"version\": 9, \"next_bucket_id\": 1, "
        "\"primary\": \"p1\", \"smap\": {\"version\": 9, \"nodes\": [%s]}, "
        "\"bmd\": {\"version\": 0, \"buckets\": []}, \"config\": {\"version\": 0, \"values\": "
        "{%s}}, "
        "\"jobs\": {\"version\": 0, \"jobs\": [%s]}}",
        node, config, jobs);
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *s = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, &err), 0);
    if (state_from_json(doc, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static const struct readiness_question serving = {.self = "t1", .boot = "b1", .serves = true};

/* words: of the reason, or the note; "": there is none. */
static void judged(struct readiness_question q, struct cluster_state *s, bool ready,
                   const char *words)
{
    struct readiness r;
    q.state = s;
    readiness(&q, &r);
    assert_int_equal(r.ready, ready);
    assert_int_equal(r.why.code != 0, *words != '\0');
    if (*words != '\0' && strstr(r.why.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, r.why.message);
    state_unref(s);
}

static void plain_means_that_it_serves(void **unused)
{
    (void)unused;
    struct readiness_question q = serving;
    judged(q, state_with("active", ", \"lag\": \"missed\", \"missed_since\": 3", "", ""), true, "");
    judged(q, state_with("maintenance", "", "", ""), true, "");
    judged(q, state_with(NULL, "", "", ""), false, "not in the cluster map");
    q.refused = "it has been here before";
    judged(q, state_with("active", "", "", ""), false, "refuses target 't1': it has been here");
    q.refused = NULL;
    q.serves = false;
    judged(q, state_with("active", "", "", ""), false, "starting");
    q.stops = true;
    judged(q, state_with("active", "", "", ""), false, "stopping");
}

static void synced_waits_for_the_repair(void **unused)
{
    (void)unused;
    static const char missed[] = ", \"lag\": \"missed\", \"missed_since\": 3";
    struct readiness_question q = serving;
    q.synced = true;
    judged(q, state_with("active", "", "", ""), true, "");
    judged(q, state_with("active", missed, "", ""), false, "a repair brings target");
    judged(q, state_with("unreachable", missed, "", ""), false, "not let in this run");
    judged(q, state_with("active", ", \"absent_since\": 4", "", ""), false, "lacks a disk");
    judged(q, state_with("maintenance", missed, "", ""), true, "");
    q.boot = "b2";
    judged(q, state_with("active", "", "", ""), false, "not let in this run");
}

static void synced_does_not_wait_for_what_cannot_end(void **unused)
{
    (void)unused;
    static const char missed[] = ", \"lag\": \"missed\", \"missed_since\": 3";
    static const char job[] =
        "{\"id\": \"rpr-1\", \"kind\": \"repair\", \"state\": \"failed\", \"attempt\": 0, "
        "\"description\": \"\", \"spec\": {}, \"plan\": {}, \"participants\": [], \"created\": 1, "
        "\"started\": 1, \"ended\": 2, \"error\": {\"code\": \"no_space\", \"message\": \"full\"}}";
    struct readiness_question q = serving;
    q.synced = true;
    q.is_full = true;
    judged(q, state_with("active", missed, "", ""), true, "waits for room");
    judged(q, state_with("active", "", "", ""), true, "");
    q.is_full = false;
    judged(q, state_with("active", missed, "", job), true, "waits for room");
    judged(q, state_with("active", missed, "\"repair\": \"false\"", ""), true, "is off");
}

#define ENDED(state, spec, error)                                                          \
    "{\"id\": \"rpr-1\", \"kind\": \"repair\", \"state\": \"" state "\", \"attempt\": 0, " \
    "\"description\": \"\", \"spec\": " spec                                               \
    ", \"plan\": {}, \"participants\": [], \"created\": 1, "                               \
    "\"started\": 1, \"ended\": 2" error "}"
#define FULL ", \"error\": {\"code\": \"no_space\", \"message\": \"full\"}"
#define OLD "{\"lagged\": 3, \"placed\": 2, \"raised\": 0}"
#define PRESENT "{\"lagged\": 7, \"placed\": 2, \"raised\": 0}"

static struct cluster_state *behind_since_7(const char *jobs)
{
    struct cluster_state *s =
        state_with("active", ", \"lag\": \"missed\", \"missed_since\": 7", "", jobs);
    s->smap.lagged = 7;
    s->smap.placed = 2;
    return s;
}

/* Another repair follows by itself after one of an earlier map. */
static void synced_looks_at_the_repair_of_this_map(void **unused)
{
    (void)unused;
    struct readiness_question q = serving;
    q.synced = true;
    judged(q, behind_since_7(ENDED("aborted", OLD, "")), false, "a repair brings target");
    judged(q, behind_since_7(ENDED("failed", OLD, FULL)), false, "a repair brings target");
    judged(q, behind_since_7(ENDED("aborted", PRESENT, "")), true, "was aborted");
    judged(q, behind_since_7(ENDED("failed", PRESENT, FULL)), true, "waits for room");
}

static void refusals_are_for_good(void **unused)
{
    (void)unused;
    assert_true(readiness_is_refusal(E_MOUNTPATH));
    assert_true(readiness_is_refusal(E_NODE_STATE));
    assert_false(readiness_is_refusal(E_NET));
    assert_false(readiness_is_refusal(E_STALE_MAP)); /* a primary that has seen less */
    assert_false(readiness_is_refusal(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_means_that_it_serves),
        cmocka_unit_test(synced_waits_for_the_repair),
        cmocka_unit_test(synced_does_not_wait_for_what_cannot_end),
        cmocka_unit_test(synced_looks_at_the_repair_of_this_map),
        cmocka_unit_test(refusals_are_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
