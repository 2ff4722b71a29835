#include "cluster/documents/state.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/random_command.h"
#include "cluster/documents/state_holder.h"
#include "common/jsonx.h"
#include "common/mem.h"

static char *text_of(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    return json_text(doc);
}

static int parse(const char *text, struct cluster_state **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    return state_from_json(doc, out, err);
}

static void random_states_survive_json(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        _cleanup_state_ const struct cluster_state *s = random_state(&rng, (unsigned)seed);
        _cleanup_free_ char *text = text_of(s);
        struct cluster_state *read = NULL;
        struct error err = ERROR_INIT;
        if (parse(text, &read, &err) != 0)
            fail_msg("seed %" PRIu64 ": %s: %s", seed, err.message, text);
        _cleanup_free_ char *again = text_of(read);
        assert_int_equal(state_compare(s, read), 0);
        state_unref(read);
        if (strcmp(text, again) != 0)
            fail_msg("seed %" PRIu64 ":\n%s\n%s", seed, text, again);
    }
}

#define HEAD                                                                                   \
    "{\"format\": 1, \"cluster\": \"c\", \"term\": 1, \"version\": 7, \"next_bucket_id\": 3, " \
    "\"primary\": \"p1\", "
#define SMAP "\"smap\": {\"version\": 1, \"nodes\": []}, "
#define BMD "\"bmd\": {\"version\": 1, \"buckets\": []}, "
#define CONFIG "\"config\": {\"version\": 1, \"values\": {}}, "
#define JOBS "\"jobs\": {\"version\": 1, \"jobs\": []}}"
#define NODE(id)                                                                                   \
    "{\"id\": \"" id "\", \"role\": \"target\", \"public_url\": \"http://h:1\", \"control_url\": " \
    "\"http://h:2\", \"data_url\": \"http://h:3\", \"boot\": \"b\"}"

static void unknown_fields_are_ignored(void **unused)
{
    (void)unused;
    struct cluster_state *s = NULL;
    struct error err = ERROR_INIT;
    const char *text = HEAD "\"new\": [1], "
                            "\"smap\": {\"version\": 1, \"x\": 1, \"nodes\": [" NODE(
                                "t2") ", " NODE("t1") "]}, " BMD CONFIG JOBS;
    if (parse(text, &s, &err) != 0)
        fail_msg("%s", err.message);
    /* What a document leaves out has its default; nodes come out in order. */
    assert_string_equal(s->smap.nodes[0].id, "t1");
    assert_int_equal(s->smap.nodes[0].state, NODE_ACTIVE);
    assert_int_equal(s->smap.nodes[0].weight, 1024);
    state_unref(s);
}

static const struct {
    const char *text;
    int code;
    const char *words;
} malformed[] = {
    {"[]", E_JSON, "object"},
    {"{}", E_JSON, "'format'"},
    {"{\"format\": 4}", E_UNSUPPORTED, "'format' is 4"},
    {"{\"format\": 1}", E_JSON, "'cluster'"},
    {"{\"format\": 1, \"cluster\": 5}", E_JSON, "'cluster'"},
    {"{\"format\": 1, \"cluster\": \"c\", \"term\": -1}", E_JSON, "'term'"},
    {"{\"format\": 1, \"cluster\": \"c\", \"term\": 1}", E_JSON, "'version'"},
    {"{\"format\": 1, \"cluster\": \"a/b\", \"term\": 1, \"version\": 1, "
     "\"next_bucket_id\": 1}",
     E_INVALID, "'cluster'"},
    {HEAD BMD CONFIG JOBS, E_JSON, "'smap' is missing"},
    {HEAD SMAP CONFIG JOBS, E_JSON, "'bmd' is missing"},
    {HEAD SMAP BMD JOBS, E_JSON, "'config' is missing"},
    {HEAD SMAP BMD CONFIG "\"jobs\": 1}", E_JSON, "'jobs'"},
    {HEAD "\"smap\": {\"version\": 1, \"nodes\": {}}, " BMD CONFIG JOBS, E_JSON, "'smap.nodes'"},
    {HEAD "\"smap\": {\"version\": 1, \"nodes\": [1]}, " BMD CONFIG JOBS, E_JSON,
     "'smap.nodes[0]'"},
    {HEAD "\"smap\": {\"version\": 1, \"nodes\": [" NODE("t1") ", {}]}, " BMD CONFIG JOBS, E_JSON,
     "'smap.nodes[1].id'"},
    {HEAD
     "\"smap\": {\"version\": 1, \"nodes\": [" NODE("t1") ", " NODE("t1") "]}, " BMD CONFIG JOBS,
     E_JSON, "node 't1' twice"},
    {HEAD "\"smap\": {\"version\": 1, \"nodes\": [" NODE("t/1") "]}, " BMD CONFIG JOBS, E_INVALID,
     "'t/1'"},
    {HEAD SMAP "\"bmd\": {\"version\": 1}, " CONFIG JOBS, E_JSON, "'bmd.buckets'"},
    {HEAD SMAP
     "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 3, \"name\": \"b\"}]}, " CONFIG JOBS,
     E_INVALID, "id 3"},
    {HEAD SMAP
     "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 0, \"name\": \"b\"}]}, " CONFIG JOBS,
     E_INVALID, "id 0"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\"}, "
               "{\"id\": 1, \"name\": \"c\"}]}, " CONFIG JOBS,
     E_INVALID, "twice"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\"}, "
               "{\"id\": 2, \"name\": \"b\"}]}, " CONFIG JOBS,
     E_JSON, "bucket 'b' twice"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"durability\": \"never\"}}]}, " CONFIG JOBS,
     E_INVALID, "'props.durability'"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"checksum\": \"crc\"}}]}, " CONFIG JOBS,
     E_INVALID, "'props.checksum'"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"copies\": 9}}]}, " CONFIG JOBS,
     E_INVALID, "'bmd.buckets[0].props.copies' must be between 1 and 8"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"copies\": 0}}]}, " CONFIG JOBS,
     E_INVALID, "'bmd.buckets[0].props.copies'"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"ec\": {\"data\": 33, \"parity\": 2}}}]}, " CONFIG JOBS,
     E_INVALID, "'bmd.buckets[0].props.ec'"},
    {HEAD SMAP "\"bmd\": {\"version\": 1, \"buckets\": [{\"id\": 1, \"name\": \"b\", "
               "\"props\": {\"copies\": 2, \"ec\": {\"data\": 4, \"parity\": 8}}}]}, " CONFIG JOBS,
     E_INVALID, "'bmd.buckets[0].props.ec'"},
    {HEAD "\"access\": {\"version\": 0}, " SMAP BMD CONFIG JOBS, E_INVALID, "version 0"},
    {HEAD "\"access\": {\"version\": 1, \"users\": [{}]}, " SMAP BMD CONFIG JOBS, E_JSON,
     "'access.users[0].id'"},
    {HEAD "\"access\": {\"version\": 1, \"users\": [{\"id\": "
          "\"00112233445566778899aabbccddeeff\", \"name\": \"a\", \"roles\": "
          "[\"none\"]}]}, " SMAP BMD CONFIG JOBS,
     E_ROLE_NOT_FOUND, "role 'none'"},
    {HEAD SMAP BMD "\"config\": {\"version\": 1, \"values\": {\"a\": 1}}, " JOBS, E_JSON,
     "'config.values.a'"},
    {HEAD SMAP BMD CONFIG "\"jobs\": {\"version\": 1, \"jobs\": [{}]}}", E_JSON,
     "jobs.jobs[0]: field 'job.id'"},
    {HEAD SMAP BMD CONFIG "\"jobs\": {\"version\": 1, \"jobs\": [{\"id\": \"j\", \"kind\": "
                          "\"sort\", \"state\": \"asleep\"}]}}",
     E_INVALID, "'job.state'"},
    {HEAD SMAP BMD CONFIG
     "\"jobs\": {\"version\": 1, \"jobs\": [{\"id\": \"j\", \"kind\": \"k\", \"state\": "
     "\"queued\"}, {\"id\": \"j\", \"kind\": \"k\", \"state\": \"queued\"}]}}",
     E_JSON, "job 'j' twice"},
};

static void malformed_documents_are_refused_by_field(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        struct cluster_state *s = NULL;
        struct error err = ERROR_INIT;
        if (parse(malformed[i].text, &s, &err) != malformed[i].code)
            fail_msg("row %zu: %s: %s", i, error_name(err.code), err.message);
        if (strstr(err.message, malformed[i].words) == NULL)
            fail_msg("row %zu: '%s' does not say '%s'", i, err.message, malformed[i].words);
        assert_null(s);
    }
}

static void states_compare_by_term_then_version(void **unused)
{
    (void)unused;
    struct cluster_state *a = state_new("c");
    struct cluster_state *b = state_new("c");
    a->term = 1;
    a->version = 9;
    b->term = 2;
    b->version = 3;
    assert_true(state_compare(a, b) < 0);
    assert_true(state_compare(b, a) > 0);
    b->term = 1;
    assert_true(state_compare(a, b) > 0);
    b->version = 9;
    assert_int_equal(state_compare(a, b), 0);
    state_unref(a);
    state_unref(b);
}

static void a_state_knows_its_past(void **unused)
{
    (void)unused;
    struct cluster_state *s = state_new("c");
    s->term = 6;
    s->version = 25;
    s->term_version = 21;
    static const struct {
        uint64_t term, version;
        int code;
    } rows[] = {
        {0, 0, 0},
        {5, 20, 0},
        {4, 3, 0},
        {6, 21, 0},
        {6, 25, 0},
        {5, 21, E_STALE_MAP}, /* lost with the directory */
        {5, 30, E_STALE_MAP},
        {6, 26, E_STALE_MAP},
        {7, 1, E_STALE_MAP},
        {(uint64_t)1 << 44, 1, E_STALE_MAP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(state_check_history(s, rows[i].term, rows[i].version, &err), rows[i].code);
        assert_true(err.code == 0 || strstr(err.message, "--import") != NULL);
    }
    /* Whatever was before an import is past. */
    uint64_t imported = state_next_term(s, 5000, true);
    assert_true(imported > s->term);
    s->term = imported;
    s->term_version = 26;
    s->version = 26;
    assert_int_equal(state_check_history(s, 7, 99, NULL), 0);
    assert_int_equal(state_check_history(s, imported, 27, NULL), E_STALE_MAP);
    state_unref(s);
}

static void a_node_takes_what_leads_on_from_what_it_holds(void **unused)
{
    (void)unused;
    static const struct {
        const char *holds_cluster;
        uint64_t holds_term, holds_version;
        uint64_t term, version, term_version;
        int code;
        bool newer;
    } rows[] = {
        {"", 0, 0, 1, 1, 1, 0, true},
        {"c", 3, 7, 3, 8, 5, 0, true},
        {"c", 3, 7, 3, 7, 5, 0, false},
        {"c", 3, 7, 3, 6, 5, 0, false},
        {"c", 3, 7, 2, 99, 5, 0, false},
        {"c", 3, 7, 4, 9, 8, 0, true},
        {"c", 3, 9, 4, 10, 8, E_STALE_MAP, false}, /* 3.9 is not in its past */
        {"d", 3, 7, 3, 8, 5, E_WRONG_CLUSTER, false},
        {"d", 3, 7, 3, 6, 5, E_WRONG_CLUSTER, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster_state *holds = state_new(rows[i].holds_cluster);
        struct cluster_state *s = state_new("c");
        bool newer = !rows[i].newer;
        holds->term = rows[i].holds_term;
        holds->version = rows[i].holds_version;
        s->term = rows[i].term;
        s->version = rows[i].version;
        s->term_version = rows[i].term_version;
        assert_int_equal(state_accept(holds, s, &newer, NULL), rows[i].code);
        assert_int_equal(newer, rows[i].newer);
        state_unref(holds);
        state_unref(s);
    }
}

static void no_two_lives_have_one_term(void **unused)
{
    (void)unused;
    struct cluster_state *s = state_new("c");
    s->term = state_next_term(s, 1700000000123, false);
    assert_int_equal(s->term, 1700000000123);
    assert_int_equal(state_next_term(s, 1700000000124, false), 1700000000124);
    assert_int_equal(state_next_term(s, 1700000000123, false), 1700000000124);
    assert_int_equal(state_next_term(s, 1600000000000, false), 1700000000124); /* clock gone back */
    assert_int_equal(state_next_term(s, -1, false), 1700000000124);
    s->term = state_next_term(s, 1600000000000, true);
    assert_int_equal(s->term, ((uint64_t)1 << 44) + 1600000000000);
    assert_int_equal(state_next_term(s, 1700000000000, false), ((uint64_t)1 << 44) + 1700000000000);
    state_unref(s);
}

static struct cluster_state *at_version(uint64_t version)
{
    struct cluster_state *s = state_new("c");
    s->version = version;
    return s;
}

static void a_holder_only_advances(void **unused)
{
    (void)unused;
    struct state_holder *h = state_holder_new(at_version(5));
    _cleanup_state_ const struct cluster_state *six = at_version(6);
    _cleanup_state_ const struct cluster_state *five = at_version(5);
    assert_false(state_advance(h, five));
    assert_true(state_advance(h, six));
    assert_false(state_advance(h, six));
    _cleanup_state_ const struct cluster_state *now = state_current(h);
    assert_ptr_equal(now, six);
    state_holder_free(h);
}

enum { ADVANCES = 2000 };

static void *read_until_last(void *arg)
{
    uint64_t seen = 0;
    while (seen < ADVANCES) {
        _cleanup_state_ const struct cluster_state *s = state_current(arg);
        if (s->version < seen)
            return arg; /* went back */
        seen = s->version;
    }
    return NULL;
}

static void readers_see_whole_states_that_only_grow(void **unused)
{
    (void)unused;
    struct state_holder *h = state_holder_new(at_version(0));
    pthread_t readers[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_until_last, h), 0);
    for (uint64_t v = 1; v <= ADVANCES; v++) {
        _cleanup_state_ const struct cluster_state *s = at_version(v);
        assert_true(state_advance(h, s));
    }
    for (size_t i = 0; i < 3; i++) {
        void *complaint;
        pthread_join(readers[i], &complaint);
        assert_null(complaint);
    }
    state_holder_free(h);
}

static void names_are_checked(void **unused)
{
    (void)unused;
    static const char longest[] = "012345678901234567890123456789012345678901234567890123456789012";
    assert_int_equal(bucket_name_check(longest, NULL), 0);
    assert_int_equal(bucket_name_check("a", NULL), 0);
    assert_int_equal(bucket_name_check("A.b-c_9", NULL), 0);
    static const char *const bad[] = {"", ".", "..", "-a", "_a", "a/b", "a b", "\xc3\xa9", "a%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(bucket_name_check(bad[i], NULL), E_NAME);
    char over[65];
    memset(over, 'a', 64);
    over[64] = '\0';
    assert_int_equal(bucket_name_check(over, NULL), E_NAME);
    assert_int_equal(node_id_check(over, NULL), E_INVALID);
    assert_int_equal(node_id_check("-t", NULL), 0);
    assert_int_equal(node_id_check("", NULL), E_INVALID);
    static const char *const joins[] = {"", "http://p1:9080", "http://10.0.0.1:9080",
                                        "http://a:1,http://[::1]:2"};
    static const char *const no_joins[] = {"foo",
                                           "10.0.0.1:9080",
                                           "http://",
                                           "http://:9080",
                                           "http://p1",
                                           "http://p1:",
                                           "http://p1:x",
                                           ",",
                                           "http://a:1,b:2",
                                           "https://p1:9080",
                                           "http://p1:1/v1",
                                           "http://p1:1/"};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        assert_int_equal(node_join_check(joins[i], NULL), 0);
    for (size_t i = 0; i < sizeof no_joins / sizeof *no_joins; i++)
        assert_int_equal(node_join_check(no_joins[i], NULL), E_INVALID);
}

static void nearly_anything_names_an_object(void **unused)
{
    (void)unused;
    char name[1025];
    memset(name, 'x', sizeof name);
    assert_int_equal(object_name_check(name, 1024, NULL), 0);
    assert_int_equal(object_name_check(name, 1025, NULL), E_NAME);
    assert_int_equal(object_name_check("", 0, NULL), E_NAME);
    static const char *const good[] = {"..", "/", "a//b", "a/", "\xf0\x9f\x90\xa7", "\n", " "};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(object_name_check(good[i], strlen(good[i]), NULL), 0);
    assert_int_equal(object_name_check("\xff", 1, NULL), E_NAME);
    assert_int_equal(object_name_check("a\0b", 3, NULL), E_NAME);
}

/* What operators see, and what nodes keep. */
static void secrets_are_for_nodes_alone(void **unused)
{
    (void)unused;
    static const char access[] =
        "\"access\": {\"version\": 1, \"users\": [{\"id\": "
        "\"00112233445566778899aabbccddeeff\", \"name\": \"anna\", \"kind\": \"person\", "
        "\"keys\": [{\"access\": \"DFC4AAAAAAAAAAAAAAA1\", \"secret\": \"sealed\"}], "
        "\"password\": \"scrypt:15:8:1:a:b\"}]}, ";
    _cleanup_free_ char *text = xprintf("%s%s%s", HEAD, access, SMAP BMD CONFIG JOBS);
    struct cluster_state *s = NULL;
    struct error err = ERROR_INIT;
    if (parse(text, &s, &err) != 0)
        fail_msg("%s", err.message);
    static const char *const parts[] = {"state", "access"};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_json_ json_t *doc = state_part_to_json(s, parts[i]);
        _cleanup_free_ char *seen = json_text(doc);
        assert_non_null(strstr(seen, "anna"));
        assert_null(strstr(seen, "sealed"));
        assert_null(strstr(seen, "scrypt"));
    }
    _cleanup_free_ char *kept = text_of(s);
    assert_non_null(strstr(kept, "\"format\":3"));
    assert_non_null(strstr(kept, "sealed"));
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_states_survive_json),
        cmocka_unit_test(secrets_are_for_nodes_alone),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(malformed_documents_are_refused_by_field),
        cmocka_unit_test(states_compare_by_term_then_version),
        cmocka_unit_test(a_state_knows_its_past),
        cmocka_unit_test(a_node_takes_what_leads_on_from_what_it_holds),
        cmocka_unit_test(no_two_lives_have_one_term),
        cmocka_unit_test(a_holder_only_advances),
        cmocka_unit_test(readers_see_whole_states_that_only_grow),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(nearly_anything_names_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
