#include "target/node/admit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/buf.h"
#include "common/jsonx.h"

/* State 2.50 of a cluster with one proxy, two targets and the bucket "b" with id 3. */
static const char state_text[] =
    "{\"format\": 1, \"cluster\": \"c-1\", \"term\": 2, \"version\": 50, \"next_bucket_id\": 4,"
    " \"primary\": \"p1\","
    " \"smap\": {\"version\": 9, \"nodes\": ["
    "  {\"id\": \"p1\", \"role\": \"proxy\", \"state\": \"active\", \"public_url\": \"http://p\","
    "   \"control_url\": \"http://pc\", \"data_url\": \"\", \"weight\": 0, \"boot\": \"x\","
    "   \"since\": 1},"
    "  {\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"public_url\": \"http://1\","
    "   \"control_url\": \"http://1c\", \"data_url\": \"http://1d\", \"weight\": 1024,"
    "   \"boot\": \"x\", \"since\": 1},"
    "  {\"id\": \"t2\", \"role\": \"target\", \"state\": \"STATE2\", \"public_url\": \"http://2\","
    "   \"control_url\": \"http://2c\", \"data_url\": \"http://2d\", \"weight\": 1024,"
    "   \"boot\": \"x\", \"since\": 1}]},"
    " \"bmd\": {\"version\": 5, \"buckets\": [{\"id\": 3, \"name\": \"b\", \"created\": 1,"
    "  \"props\": {}}]},"
    " \"config\": {\"version\": 0, \"values\": {}}, \"jobs\": {\"version\": 0, \"jobs\": []}}";

static struct cluster_state *make_state(const char *t2_state)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    const char *hole = strstr(state_text, "STATE2");
    buf_append(&text, state_text, (size_t)(hole - state_text));
    buf_puts(&text, t2_state);
    buf_puts(&text, hole + strlen("STATE2"));
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *s = NULL;
    if (json_parse(text.data, text.len, &doc, &err) != 0 || state_from_json(doc, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static struct cluster_state *state;

static int setup(void **unused)
{
    (void)unused;
    state = make_state("active");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(state);
    return 0;
}

/* A name that t1 owns, or t2. */
static const char *name_of(const char *owner)
{
    static char name[16];
    for (unsigned i = 0; i < 100; i++) {
        const struct node *n;
        snprintf(name, sizeof name, "o%u", i);
        assert_int_equal(smap_owners(&state->smap, 3, name, 1, &n), 1);
        if (strcmp(n->id, owner) == 0)
            return name;
    }
    fail_msg("no name for %s", owner);
    return NULL;
}

/* As t1, which has seen the present map since state 2.40. */
static struct admit_question question(const char *object)
{
    return (struct admit_question){.state = state,
                                   .self = "t1",
                                   .placement_term = 2,
                                   .placement_version = 40,
                                   .bucket = "b",
                                   .object = object};
}

static void assert_verdict(const struct admit_question *q, enum admit_verdict want, int code)
{
    struct admit_answer a;
    struct error err = ERROR_INIT;
    admit(q, &a, &err);
    assert_int_equal(a.verdict, want);
    assert_int_equal(err.code, code);
    if (want == ADMIT_SERVE || want == ADMIT_REDIRECT)
        assert_int_equal(a.bucket->id, 3);
}

static void test_own_objects_are_served_others_redirected(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t1"));
    assert_verdict(&q, ADMIT_SERVE, 0);
    q = question(name_of("t2"));
    struct admit_answer a;
    admit(&q, &a, NULL);
    assert_int_equal(a.verdict, ADMIT_REDIRECT);
    assert_string_equal(a.owner->id, "t2");
}

static void test_names_and_buckets(void **unused)
{
    (void)unused;
    struct admit_question q = question("x");
    q.bucket = "none";
    assert_verdict(&q, ADMIT_REFUSE, E_BUCKET_NOT_FOUND);
    q.bucket = "-b";
    assert_verdict(&q, ADMIT_REFUSE, E_NAME);
    q = question("");
    assert_verdict(&q, ADMIT_REFUSE, E_NAME);
    q = question("\xff");
    assert_verdict(&q, ADMIT_REFUSE, E_NAME);
}

static void test_redirects_of_another_age(void **unused)
{
    (void)unused;
    static const struct {
        const char *dfcv;
        enum admit_verdict verdict;
        int code;
    } rows[] = {
        {"2.50", ADMIT_SERVE, 0},
        {"2.40", ADMIT_SERVE, 0}, /* the map and the buckets were as they are now */
        {"2.39", ADMIT_SERVE, 0}, /* of the same bucket, and its owner is who we know */
        {"1.900", ADMIT_SERVE, 0},
        {"2.51", ADMIT_REFRESH, 0},
        {"3.1", ADMIT_REFRESH, 0},
        {"", ADMIT_REFUSE, E_INVALID},
        {"2", ADMIT_REFUSE, E_INVALID},
        {"2.", ADMIT_REFUSE, E_INVALID},
        {"2.5x", ADMIT_REFUSE, E_INVALID},
        {".5", ADMIT_REFUSE, E_INVALID},
        {"2.5.6", ADMIT_REFUSE, E_INVALID},
        {"99999999999999999999999999.5", ADMIT_REFUSE, E_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct admit_question q = question(name_of("t1"));
        q.dfcb = "3";
        q.dfcv = rows[i].dfcv;
        assert_verdict(&q, rows[i].verdict, rows[i].code);
    }
    struct admit_question q = question(name_of("t1"));
    q.dfcv = "2.39"; /* of which bucket is not known */
    assert_verdict(&q, ADMIT_REFUSE, E_STALE_MAP);
}

static void test_an_old_redirect_leads_on_to_the_owner(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t2"));
    q.dfcb = "3";
    q.dfcv = "2.39";
    assert_verdict(&q, ADMIT_REDIRECT, 0);
}

static void test_a_holder_serves_what_another_owns(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t2"));
    q.holder = true;
    q.dfcb = "3";
    q.dfcv = "2.50";
    assert_verdict(&q, ADMIT_SERVE, 0);
    q.dfcv = "2.51";
    assert_verdict(&q, ADMIT_REFRESH, 0);
    q.dfcb = "2";
    q.dfcv = "2.50";
    assert_verdict(&q, ADMIT_REFUSE, E_STALE_MAP);
}

/* Bucket "b" with a copy on each target. */
static struct cluster_state *state_of_copies(const char *props)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *patch = json_loads(props, 0, NULL);
    const struct command cmd = {.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch};
    const struct command filled = {.kind = CMD_COPIES_FILLED};
    if (command_apply(state, &cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    struct command done = filled;
    done.raised = next->bmd.buckets[0].raised;
    done.lagged = next->smap.lagged;
    done.placed = next->smap.placed;
    const struct cluster_state *whole;
    if (command_apply(next, &done, &whole, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(next);
    return (struct cluster_state *)whole;
}

static void test_reads_are_for_all_good_owners(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t2"));
    struct admit_answer a;
    struct cluster_state *any = state_of_copies("{\"copies\": 2, \"read_from\": \"any\"}");
    struct cluster_state *acting = state_of_copies("{\"copies\": 2, \"read_from\": \"acting\"}");
    q.state = any;
    q.reads = true;
    admit(&q, &a, NULL);
    assert_int_equal(a.verdict, ADMIT_SERVE);
    assert_true(a.beside);
    q.reads = false;
    admit(&q, &a, NULL);
    assert_int_equal(a.verdict, ADMIT_REDIRECT);
    q.state = acting;
    q.reads = true;
    admit(&q, &a, NULL);
    assert_int_equal(a.verdict, ADMIT_REDIRECT);
    assert_string_equal(a.owner->id, "t2");
    q.self = "t2"; /* the one that acts */
    q.state = any;
    admit(&q, &a, NULL);
    assert_int_equal(a.verdict, ADMIT_SERVE);
    assert_false(a.beside);
    state_unref(any);
    state_unref(acting);
}

static void test_a_state_that_stays_older_is_refused(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t1"));
    q.dfcv = "2.51";
    q.refreshed = true;
    assert_verdict(&q, ADMIT_REFUSE, E_NOT_READY);
}

static void test_a_bucket_made_anew_is_another_one(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t1"));
    q.dfcv = "2.50";
    q.dfcb = "2";
    assert_verdict(&q, ADMIT_REFUSE, E_STALE_MAP);
    q.dfcb = "x";
    assert_verdict(&q, ADMIT_REFUSE, E_INVALID);
}

static void test_an_unreachable_owner_is_named(void **unused)
{
    (void)unused;
    struct admit_question q = question(name_of("t2"));
    state_unref(state);
    state = make_state("unreachable");
    q.state = state;
    struct admit_answer a;
    struct error err = ERROR_INIT;
    admit(&q, &a, &err);
    assert_int_equal(a.verdict, ADMIT_REFUSE);
    assert_int_equal(err.code, E_NODE_UNREACHABLE);
    assert_non_null(strstr(err.message, "'t2'"));
}

static void test_before_it_has_joined(void **unused)
{
    (void)unused;
    struct cluster_state *empty = state_new("");
    struct admit_question q = question("x");
    q.state = empty;
    q.placement_term = q.placement_version = 0;
    assert_verdict(&q, ADMIT_REFUSE, E_NOT_READY);
    q.dfcv = "1.1"; /* a proxy has sent the client here: it knows */
    assert_verdict(&q, ADMIT_REFRESH, 0);
    state_unref(empty);
}

#define admit_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        admit_test(test_own_objects_are_served_others_redirected),
        admit_test(test_names_and_buckets),
        admit_test(test_redirects_of_another_age),
        admit_test(test_an_old_redirect_leads_on_to_the_owner),
        admit_test(test_a_holder_serves_what_another_owns),
        admit_test(test_reads_are_for_all_good_owners),
        admit_test(test_a_state_that_stays_older_is_refused),
        admit_test(test_a_bucket_made_anew_is_another_one),
        admit_test(test_an_unreachable_owner_is_named),
        admit_test(test_before_it_has_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
