#include "cluster/documents/push_body.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/random_command.h"
#include "cluster/documents/delta.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { SEEDS = 20, STATES = 60 };

/* States of one cluster, each a change from the one before. */
static size_t history_of(uint64_t seed, const struct cluster_state **states)
{
    struct rng rng;
    rng_seed(&rng, seed);
    size_t count = 1;
    states[0] = random_state(&rng, 30);
    while (count < STATES) {
        struct arena *a = arena_new(512);
        struct command cmd = random_command(&rng, states[count - 1], a);
        const struct cluster_state *next;
        if (command_apply(states[count - 1], &cmd, &next, NULL) == 0) {
            if (next != states[count - 1])
                states[count++] = next;
            else
                state_unref(next);
        }
        job_unref(cmd.job);
        json_decref(cmd.patch);
        arena_free(a);
    }
    return count;
}

static void assert_leads(const struct cluster_state *now, const struct cluster_state *from,
                         const struct cluster_state *to, uint64_t seed)
{
    _cleanup_free_ char *body = push_body_text(from, to);
    _cleanup_free_ char *wanted = push_body_text(NULL, to);
    struct cluster_state *out;
    struct error err = ERROR_INIT;
    if (push_body_read(now, body, strlen(body), &out, &err) != 0)
        fail_msg("seed %" PRIu64 ": %s: %s", seed, err.message, body);
    _cleanup_free_ char *got = push_body_text(NULL, out);
    if (strcmp(got, wanted) != 0)
        fail_msg("seed %" PRIu64 ":\n%s\n%s", seed, got, wanted);
    state_unref(out);
}

/* The difference of any two states of a history leads to the bytes that the whole has. */
static void any_difference_leads_to_the_whole(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct cluster_state *states[STATES];
        size_t count = history_of(seed, states);
        struct rng rng;
        rng_seed(&rng, seed);
        for (unsigned i = 0; i < 100; i++) {
            size_t to = 1 + rng_below(&rng, count - 1);
            size_t from = rng_below(&rng, to);
            assert_leads(states[from], states[from], states[to], seed);
        }
        for (size_t i = 0; i < count; i++)
            state_unref(states[i]);
    }
}

/* A difference that crossed the wire travels again as a whole: a node is never left between. */
static void a_node_follows_a_history_of_differences(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct cluster_state *states[STATES];
        size_t count = history_of(seed, states);
        const struct cluster_state *node = state_ref(states[0]);
        for (size_t i = 1; i < count; i++) {
            _cleanup_free_ char *body = push_body_text(states[i - 1], states[i]);
            struct cluster_state *next;
            assert_int_equal(push_body_read(node, body, strlen(body), &next, NULL), 0);
            assert_non_null(next);
            state_unref(node);
            node = next;
        }
        assert_leads(node, NULL, states[count - 1], seed);
        _cleanup_free_ char *got = push_body_text(NULL, node);
        _cleanup_free_ char *wanted = push_body_text(NULL, states[count - 1]);
        assert_string_equal(got, wanted);
        state_unref(node);
        for (size_t i = 0; i < count; i++)
            state_unref(states[i]);
    }
}

static void a_node_that_holds_another_state_changes_nothing(void **unused)
{
    (void)unused;
    const struct cluster_state *states[STATES];
    size_t count = history_of(7, states);
    _cleanup_free_ char *body = push_body_text(states[4], states[5]);
    for (size_t i = 0; i < count; i++) {
        struct cluster_state *out;
        assert_int_equal(push_body_read(states[i], body, strlen(body), &out, NULL), 0);
        assert_true((out != NULL) == (i == 4));
        state_unref(out);
    }
    struct cluster_state *out;
    _cleanup_state_ const struct cluster_state *empty = state_new("");
    assert_int_equal(push_body_read(empty, body, strlen(body), &out, NULL), 0);
    assert_null(out);
    _cleanup_state_ const struct cluster_state *other = state_new("c-other");
    assert_int_equal(push_body_read(other, body, strlen(body), &out, NULL), E_WRONG_CLUSTER);
    for (size_t i = 0; i < count; i++)
        state_unref(states[i]);
}

/* Also where the changed documents look as this release knows them. */
static void a_difference_to_a_later_format_is_refused(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *now = state_new("c");
    struct cluster_state *out;
    struct error err = ERROR_INIT;
    const char *text =
        "{\"format\": 9, \"from\": {\"cluster\": \"c\", \"term\": 0, \"version\": 0}, "
        "\"delta\": {\"term\": 1, \"version\": 1, \"next_bucket_id\": 1, "
        "\"primary\": \"p1\"}}";
    assert_int_equal(push_body_read(now, text, strlen(text), &out, &err), E_UNSUPPORTED);
    assert_null(out);
}

/* Of the same version, by a release that did not know a field, or by a load in another order. */
static void a_difference_that_leads_elsewhere_is_refused(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct cluster_state *states[STATES];
        size_t count = history_of(seed, states);
        _cleanup_free_ char *body = push_body_text(states[4], states[5]);
        _cleanup_json_ json_t *doc = state_to_json(states[4]);
        json_t *values = json_object_get(json_object_get(doc, "config"), "values");
        json_object_set_new(values, "of-another-release", json_string("on"));
        struct cluster_state *other, *out = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(state_from_json(doc, &other, NULL), 0);
        assert_int_equal(push_body_read(other, body, strlen(body), &out, &err), E_INVALID);
        assert_null(out);
        state_unref(other);
        for (size_t i = 0; i < count; i++)
            state_unref(states[i]);
    }
}

/* A push as a primary of another build sends it: its sum is of other texts than ours. */
static struct cluster_state *given(const struct cluster_state *now,
                                   const struct cluster_state *from, const struct cluster_state *to,
                                   int code)
{
    _cleanup_free_ char *own = push_body_text(from, to);
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *out;
    assert_int_equal(json_parse(own, strlen(own), &doc, NULL), 0);
    if (from != NULL)
        json_object_set_new(doc, "sum", json_string("0123456789abcdef"));
    json_object_set_new(doc, "build", json_string("0.0.9 bd686e2eb7c2"));
    _cleanup_free_ char *body = json_text(doc);
    assert_int_equal(push_body_read(now, body, strlen(body), &out, NULL), code);
    return out;
}

static void a_difference_of_another_build_begins_with_what_that_build_gave(void **unused)
{
    (void)unused;
    const struct cluster_state *states[STATES];
    size_t count = history_of(7, states);
    assert_null(given(states[4], states[4], states[5], E_INVALID));
    _cleanup_state_ const struct cluster_state *whole = given(states[4], NULL, states[5], 0);
    _cleanup_state_ const struct cluster_state *next = given(whole, states[5], states[6], 0);
    assert_int_equal(state_compare(next, states[6]), 0);
    _cleanup_state_ const struct cluster_state *last = given(next, states[6], states[7], 0);
    assert_int_equal(state_compare(last, states[7]), 0);
    _cleanup_free_ char *own = push_body_text(states[7], states[8]);
    struct cluster_state *out;
    assert_int_equal(push_body_read(last, own, strlen(own), &out, NULL), 0); /* the sum fits */
    assert_true(out->given_by != last->given_by);
    assert_null(given(out, states[8], states[9], E_INVALID));
    state_unref(out);
    for (size_t i = 0; i < count; i++)
        state_unref(states[i]);
}

/* It tells neither its format nor a sum. */
static void a_difference_of_an_earlier_release_is_read(void **unused)
{
    (void)unused;
    const struct cluster_state *states[STATES];
    size_t count = history_of(7, states);
    _cleanup_json_ json_t *doc =
        json_pack("{s:{s:s, s:I, s:I}, s:o}", "from", "cluster", states[4]->cluster_id, "term",
                  (json_int_t)states[4]->term, "version", (json_int_t)states[4]->version, "delta",
                  state_delta(states[4], states[5]));
    _cleanup_free_ char *body = json_text(doc);
    struct cluster_state *out;
    assert_int_equal(push_body_read(states[4], body, strlen(body), &out, NULL), 0);
    assert_int_equal(state_compare(out, states[5]), 0);
    state_unref(out);
    for (size_t i = 0; i < count; i++)
        state_unref(states[i]);
}

static void assert_bad(const char *text, const char *words)
{
    _cleanup_state_ const struct cluster_state *now = state_new("c");
    struct cluster_state *out;
    struct error err = ERROR_INIT;
    assert_int_equal(push_body_read(now, text, strlen(text), &out, &err), E_JSON);
    assert_null(out);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void malformed_bodies_are_refused(void **unused)
{
    (void)unused;
    assert_bad("", "");
    assert_bad("[]", "object");
    assert_bad("{}", "'format'");
    assert_bad("{\"from\": 1}", "'from'");
    assert_bad("{\"from\": {}}", "'from.cluster'");
    assert_bad("{\"from\": {\"cluster\": \"c\", \"term\": 0, \"version\": 0}}", "'delta'");
    assert_bad("{\"from\": {\"cluster\": \"c\", \"term\": 0, \"version\": 0}, "
               "\"delta\": {}}",
               "'term'");
}

/* What the release before sends: it reads wholes only. */
static void a_reply_without_deltas_is_of_an_earlier_release(void **unused)
{
    (void)unused;
    struct push_reply r = {.deltas = true};
    _cleanup_json_ json_t *old = json_pack("{s:i, s:i}", "term", 3, "version", 9);
    assert_int_equal(push_reply_from_json(old, &r, NULL), 0);
    assert_true(r.term == 3 && r.version == 9 && !r.deltas);
    r.deltas = true;
    _cleanup_json_ json_t *now = push_reply_to_json(&r);
    struct push_reply again;
    assert_int_equal(push_reply_from_json(now, &again, NULL), 0);
    assert_true(again.term == 3 && again.version == 9 && again.deltas);
    _cleanup_json_ json_t *bad = json_pack("{s:i}", "term", 3);
    assert_int_equal(push_reply_from_json(bad, &again, NULL), E_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_difference_leads_to_the_whole),
        cmocka_unit_test(a_node_follows_a_history_of_differences),
        cmocka_unit_test(a_node_that_holds_another_state_changes_nothing),
        cmocka_unit_test(a_difference_to_a_later_format_is_refused),
        cmocka_unit_test(a_difference_that_leads_elsewhere_is_refused),
        cmocka_unit_test(a_difference_of_another_build_begins_with_what_that_build_gave),
        cmocka_unit_test(a_difference_of_an_earlier_release_is_read),
        cmocka_unit_test(malformed_bodies_are_refused),
        cmocka_unit_test(a_reply_without_deltas_is_of_an_earlier_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
