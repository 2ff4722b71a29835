#include "cluster/documents/delta.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/base/document.h"
#include "cluster/testing/random_command.h"
#include "common/jsonx.h"
#include "common/mem.h"

static void assert_same_state(const struct cluster_state *a, const struct cluster_state *b,
                              uint64_t seed)
{
    _cleanup_json_ json_t *ja = state_to_json(a);
    _cleanup_json_ json_t *jb = state_to_json(b);
    _cleanup_free_ char *ta = json_text(ja);
    _cleanup_free_ char *tb = json_text(jb);
    if (strcmp(ta, tb) != 0)
        fail_msg("seed %" PRIu64 ":\n%s\n%s", seed, ta, tb);
}

/* Through text, as the metastore's log has it. */
static const struct cluster_state *patched(const struct cluster_state *from,
                                           const struct cluster_state *to)
{
    _cleanup_json_ json_t *delta = state_delta(from, to);
    _cleanup_free_ char *text = json_text(delta);
    _cleanup_json_ json_t *read = NULL;
    struct cluster_state *out = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(text, strlen(text), &read, &err) != 0 ||
        state_patch(from, read, &out, &err) != 0)
        fail_msg("%s: %s", err.message, text);
    return out;
}

static void a_delta_leads_from_one_state_to_the_next(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        _cleanup_state_ const struct cluster_state *s = state_new("c-random");
        _cleanup_state_ const struct cluster_state *old = state_ref(s);
        for (unsigned step = 0; step < 150; step++) {
            if (step % 40 == 30) { /* another beginning for the long difference */
                state_unref(old);
                old = state_ref(s);
            }
            struct arena *a = arena_new(512);
            struct command cmd = random_command(&rng, s, a);
            const struct cluster_state *next;
            if (command_apply(s, &cmd, &next, NULL) == 0) {
                if (next != s) {
                    _cleanup_state_ const struct cluster_state *one = patched(s, next);
                    assert_same_state(one, next, seed);
                }
                state_unref(s);
                s = next;
            }
            job_unref(cmd.job);
            json_decref(cmd.patch);
            arena_free(a);
        }
        _cleanup_state_ const struct cluster_state *far = patched(old, s);
        assert_same_state(far, s, seed);
    }
}

/* The first job ends, is forgotten, and its id is used again. */
static const struct cluster_state *with_first_job_last(const struct cluster_state *s)
{
    struct cluster_state *next = state_next(s);
    struct jobs without, with;
    jobs_without(&s->jobs, s->jobs.jobs[0]->id, &without);
    jobs_with(&without, s->jobs.jobs[0], &with);
    document_unref(without.memory);
    document_unref(next->jobs.memory);
    next->jobs = with;
    return next;
}

static void a_job_that_returns_comes_last(void **unused)
{
    (void)unused;
    unsigned tried = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        _cleanup_state_ const struct cluster_state *s = random_state(&rng, 150);
        if (s->jobs.count < 2)
            continue;
        _cleanup_state_ const struct cluster_state *next = with_first_job_last(s);
        _cleanup_state_ const struct cluster_state *got = patched(s, next);
        assert_same_state(got, next, seed);
        tried++;
    }
    assert_true(tried > 5);
}

static void assert_bad(const char *text, int code, const char *words)
{
    struct rng rng;
    rng_seed(&rng, 7);
    _cleanup_state_ const struct cluster_state *s = random_state(&rng, 40);
    _cleanup_json_ json_t *delta = NULL;
    struct cluster_state *out = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &delta, NULL), 0);
    assert_int_equal(state_patch(s, delta, &out, &err), code);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, words);
}

#define HEAD "{\"term\": 99, \"version\": 999, \"next_bucket_id\": 99, \"primary\": \"p1\""

static void malformed_deltas_are_refused(void **unused)
{
    (void)unused;
    assert_bad("[]", E_JSON, "object");
    assert_bad("{}", E_JSON, "'term'");
    assert_bad("{\"term\": 0, \"version\": 1, \"next_bucket_id\": 1, \"primary\": \"\"}",
               E_STALE_MAP, "does not lead on");
    assert_bad(HEAD ", \"smap\": []}", E_JSON, "'smap'");
    assert_bad(HEAD ", \"smap\": {}}", E_JSON, "'smap.version'");
    assert_bad(HEAD ", \"smap\": {\"version\": 1}}", E_JSON, "'smap.put'");
    assert_bad(HEAD ", \"smap\": {\"version\": 1, \"put\": [{}]}}", E_JSON, "'smap.put[0].id'");
    assert_bad(HEAD ", \"smap\": {\"version\": 1, \"put\": [1]}}", E_JSON, "'smap.put[0]'");
    assert_bad(HEAD ", \"bmd\": {\"version\": 1, \"put\": [], \"drop\": [1]}}", E_JSON,
               "'bmd.drop[0]'");
    assert_bad(HEAD ", \"bmd\": {\"version\": 1, \"put\": [{\"id\": 99, \"name\": \"x\"}]}}",
               E_INVALID, "id 99");
    assert_bad(HEAD ", \"bmd\": {\"version\": 1, \"put\": {\"id\": 1}}}", E_JSON, "'bmd.put'");
    assert_bad(HEAD ", \"config\": {\"version\": 1, \"put\": []}}", E_JSON, "'config.put'");
    assert_bad(HEAD ", \"config\": {\"version\": 1, \"put\": {\"a\": 1}}}", E_JSON,
               "'config.put.a'");
    assert_bad(HEAD ", \"users\": {\"version\": 1, \"put\": [{}]}}", E_JSON, "'users.put[0].id'");
    assert_bad(HEAD ", \"users\": {\"version\": 1, \"put\": {\"a\": 1}}}", E_JSON, "'users.put'");
    assert_bad(HEAD ", \"roles\": {\"version\": 0, \"put\": [{\"name\": \"r\"}]}}", E_INVALID,
               "version 0");
    assert_bad(HEAD ", \"jobs\": {\"version\": 1, \"put\": [{\"id\": \"x\"}]}}", E_JSON,
               "jobs.put[0]");
}

/* What was not made for this state is not applied in part. */
static void a_delta_of_another_state_is_refused(void **unused)
{
    (void)unused;
    static const char *const fields[] = {"smap", "bmd", "jobs", "users", "roles", "config"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *none = strcmp(fields[i], "config") == 0 ? "{}" : "[]";
        _cleanup_free_ char *drop =
            xprintf(HEAD ", \"%s\": {\"version\": 9, \"put\": %s, \"drop\": [\"no-such\"]}}",
                    fields[i], none);
        assert_bad(drop, E_INVALID, "not there");
        _cleanup_free_ char *count = xprintf(
            HEAD ", \"%s\": {\"version\": 9, \"count\": 999, \"put\": %s}}", fields[i], none);
        assert_bad(count, E_INVALID, "not to 999");
    }
    assert_bad(HEAD ", \"config\": {\"version\": 9, \"put\": {}, \"drop\": [\"a\", \"a\"]}}",
               E_INVALID, "not there");
    assert_bad(HEAD ", \"roles\": {\"version\": 9, \"put\": [{\"name\": \"r\"}, "
                    "{\"name\": \"r\"}]}}",
               E_INVALID, "twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delta_leads_from_one_state_to_the_next),
        cmocka_unit_test(a_job_that_returns_comes_last),
        cmocka_unit_test(malformed_deltas_are_refused),
        cmocka_unit_test(a_delta_of_another_state_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
