#include "access/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cluster/base/document.h"
#include "common/jsonx.h"

#define OWNER "00112233445566778899aabbccddee01"

static const char document[] =
    "{\"version\": 1, \"users\": ["
    "{\"id\": \"" OWNER "\", \"name\": \"owner\"},"
    "{\"id\": \"00112233445566778899aabbccddee02\", \"name\": \"root\", \"roles\": [\"admin\"]},"
    "{\"id\": \"00112233445566778899aabbccddee03\", \"name\": \"ops\", \"roles\": [\"operator\"]},"
    "{\"id\": \"00112233445566778899aabbccddee04\", \"name\": \"reader\", \"roles\": "
    "[\"reader\"]},"
    "{\"id\": \"00112233445566778899aabbccddee05\", \"name\": \"writer\", \"roles\": "
    "[\"writer\"]},"
    "{\"id\": \"00112233445566778899aabbccddee06\", \"name\": \"off\", \"roles\": [\"admin\"],"
    " \"enabled\": false},"
    "{\"id\": \"00112233445566778899aabbccddee07\", \"name\": \"below\","
    " \"grants\": [{\"rights\": [\"list\", \"read\"], \"bucket\": \"train-*\", \"prefix\": "
    "\"img/\"}]},"
    "{\"id\": \"00112233445566778899aabbccddee08\", \"name\": \"keeper\","
    " \"grants\": [{\"rights\": [\"admin\"], \"bucket\": \"train-a\"}]},"
    "{\"id\": \"00112233445566778899aabbccddee0b\", \"name\": \"part-keeper\","
    " \"grants\": [{\"rights\": [\"admin\"], \"bucket\": \"train-a\", \"prefix\": \"img/\"}]},"
    "{\"id\": \"00112233445566778899aabbccddee09\", \"name\": \"nothing\"},"
    "{\"id\": \"00112233445566778899aabbccddee0a\", \"name\": \"anonymous\", \"kind\": "
    "\"anonymous\","
    " \"grants\": [{\"rights\": [\"read\"], \"bucket\": \"open\"}]}],"
    "\"roles\": []}";

static struct access doc;

static int set_up(void **state)
{
    (void)state;
    _cleanup_json_ json_t *json = json_loads(document, 0, NULL);
    return access_from_json(json, &doc, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    document_unref(doc.memory);
    return 0;
}

static struct access_decision ask(const char *user, enum right right, const char *bucket,
                                  const char *key)
{
    struct access_question q = {.right = right, .bucket = bucket, .owner = OWNER, .key = key};
    q.key_len = key != NULL ? strlen(key) : 0;
    const struct user *u = user != NULL ? access_user(&doc, user) : NULL;
    assert_true(user == NULL || u != NULL);
    return access_decide(&doc, u, &q);
}

#define B(name) (1u << RIGHT_##name)
#define OF_BUCKETS (B(LIST) | B(READ) | B(WRITE) | B(DELETE) | B(ADMIN))
#define OF_CLUSTER (B(SEE) | B(JOBS) | B(OPERATE) | B(USERS) | B(CREATE) | B(CLUSTER_ADMIN))

/* Each right, for each kind of identity, on each kind of place. */
static void test_rights(void **state)
{
    static const struct {
        const char *user, *bucket, *key;
        unsigned allowed;
    } rows[] = {
        {"root", "train-a", "img/1", OF_BUCKETS},
        {"root", NULL, NULL, OF_CLUSTER},
        {"ops", "train-a", "img/1", 0},
        {"ops", NULL, NULL, B(SEE) | B(JOBS) | B(OPERATE)},
        {"reader", "train-a", "img/1", B(LIST) | B(READ)},
        {"reader", NULL, NULL, 0},
        {"writer", "train-a", "", B(LIST) | B(READ) | B(WRITE) | B(DELETE)},
        {"writer", NULL, NULL, 0},
        {"owner", "train-a", "img/1", OF_BUCKETS},
        {"owner", "train-a", "", OF_BUCKETS},
        {"owner", NULL, NULL, 0},
        {"off", "train-a", "img/1", 0},
        {"off", NULL, NULL, 0},
        {"below", "train-a", "img/1", B(LIST) | B(READ)},
        {"below", "train-a", "img/", B(LIST) | B(READ)},
        {"below", "train-a", "img", 0},
        {"below", "train-a", "", 0},
        {"below", "train-a", "imgs/1", 0},
        {"below", "train-a", NULL, B(LIST) | B(READ)},
        {"below", "other", "img/1", 0},
        {"below", NULL, NULL, 0},
        {"keeper", "train-a", "", B(ADMIN)},
        {"keeper", "train-b", "", 0},
        {"keeper", NULL, NULL, 0},
        {"part-keeper", "train-a", "img/1", 0}, /* administration is of the bucket as a whole */
        {"part-keeper", "train-a", NULL, 0},
        {"nothing", "train-a", "img/1", 0},
        {"nothing", NULL, NULL, 0},
        {NULL, "train-a", "img/1", 0},
        {NULL, "open", "img/1", B(READ)},
        {NULL, NULL, NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
            if (right_is_of_cluster(r) != (rows[i].bucket == NULL))
                continue;
            bool want = (rows[i].allowed & right_bit(r)) != 0;
            struct access_decision d = ask(rows[i].user, r, rows[i].bucket, rows[i].key);
            if (d.allowed != want)
                fail_msg("row %zu: %s on %s", i, right_name(r),
                         rows[i].bucket != NULL ? rows[i].bucket : "the cluster");
        }
    }
}

static void test_calls_without_a_right(void **state)
{
    (void)state;
    assert_true(ask(NULL, RIGHT_NONE, NULL, NULL).allowed);
    assert_true(ask("off", RIGHT_NONE, NULL, NULL).allowed);
    assert_true(ask("nothing", RIGHT_ANY, NULL, NULL).allowed);
    assert_false(ask("off", RIGHT_ANY, NULL, NULL).allowed);
    assert_false(ask(NULL, RIGHT_ANY, NULL, NULL).allowed);
}

/* A bucket without an owner has none by the name of "". */
static void test_a_bucket_without_owner(void **state)
{
    (void)state;
    struct access_question q = {
        .right = RIGHT_READ, .bucket = "b", .owner = "", .key = "k", .key_len = 1};
    assert_false(access_decide(&doc, access_user(&doc, "owner"), &q).allowed);
    q.owner = NULL;
    assert_false(access_decide(&doc, access_user(&doc, "owner"), &q).allowed);
}

/* A cluster without the document: nobody may anything. */
static void test_no_document(void **state)
{
    (void)state;
    struct access none = {0};
    struct access_question q = {.right = RIGHT_READ, .bucket = "b", .key = "k", .key_len = 1};
    assert_false(access_decide(&none, NULL, &q).allowed);
}

static void test_the_rule_is_said(void **state)
{
    static const struct {
        const char *user, *bucket, *text;
    } rows[] = {
        {"owner", "train-a", "owner"},
        {"root", "train-a", "role admin on the cluster"},
        {"reader", "train-a", "role reader on */*"},
        {"below", "train-a", "grant on train-*/img/*"},
        {"nothing", "train-a", "no grant"},
        {"off", "train-a", "user disabled"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[ACCESS_RULE_CHARS];
        struct access_decision d = ask(rows[i].user, RIGHT_READ, rows[i].bucket, "img/1");
        assert_string_equal(access_rule_text(&d, text), rows[i].text);
    }
}

static void test_a_refusal_names_right_and_place(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct access_question q = {.right = RIGHT_READ, .bucket = "b", .key = "k/1", .key_len = 3};
    assert_int_equal(access_deny(access_user(&doc, "ops"), &q, &err), E_ACCESS_DENIED);
    assert_string_equal(err.message, "user 'ops' lacks the right 'read' on 'b/k/1'");
    q.bucket = NULL;
    q.right = RIGHT_USERS;
    (void)access_deny(NULL, &q, &err);
    assert_string_equal(err.message, "user 'anonymous' lacks the right 'users' on the cluster");
}

/* Says what 64 grants cost; no time is asserted. */
static void test_cost(void **state)
{
    enum { ROUNDS = 100000 };
    (void)state;
    struct grant grants[GRANTS_MAX];
    char buckets[GRANTS_MAX][16];
    for (size_t i = 0; i < GRANTS_MAX; i++) {
        snprintf(buckets[i], sizeof buckets[i], "*-train-%zu*", i);
        grants[i] = (struct grant){B(READ), buckets[i], "images/", 7};
    }
    struct user u = {.id = OWNER, .name = "u", .enabled = true, .grants = {GRANTS_MAX, grants}};
    struct access_question q = {.right = RIGHT_READ,
                                .bucket = "a-long-name-train-63-of-a-bucket",
                                .owner = "",
                                .key = "images/1.jpg",
                                .key_len = 12};
    struct timespec from;
    struct timespec to;
    unsigned allowed = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < ROUNDS; i++)
        allowed += access_decide(&doc, &u, &q).allowed;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal(allowed, ROUNDS);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    print_message("a decision with %d grants takes %.0f ns\n", GRANTS_MAX, ns / ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_calls_without_a_right),
        cmocka_unit_test(test_a_bucket_without_owner),
        cmocka_unit_test(test_no_document),
        cmocka_unit_test(test_the_rule_is_said),
        cmocka_unit_test(test_a_refusal_names_right_and_place),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
