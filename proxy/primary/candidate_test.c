/* Proxies that share a metastore: who is primary changes while they run. */
#include "proxy/primary/candidate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/testing/fake_etcd.h"
#include "proxy/testing/test_cluster.h"

enum { PROXIES = 3 };

struct fixture {
    struct fake_etcd *etcd;
    struct test_client client;
    struct test_proxy *proxies[PROXIES];
    char *metastore;
};

static struct test_proxy *start(struct fixture *f, const char *id, const char *more)
{
    const char *const params[] = {f->metastore,         "lease_ttl=1s", "keepalive_timeout=10s",
                                  "primary_wait=300ms", more,           NULL};
    return test_proxy_new(id, NULL, params);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->etcd = fake_etcd_new();
    f->metastore = xprintf("metastore=etcd://127.0.0.1:%u", fake_etcd_port(f->etcd));
    test_client_open(&f->client);
    for (int i = 0; i < PROXIES; i++) {
        char id[8];
        snprintf(id, sizeof id, "p%d", i + 1);
        f->proxies[i] = start(f, id, NULL);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < PROXIES; i++)
        test_proxy_free(f->proxies[i]);
    test_client_close(&f->client);
    fake_etcd_free(f->etcd);
    free(f->metastore);
    free(f);
    return 0;
}

static const char *public_of(const struct test_proxy *p)
{
    return p->proxy->public_url;
}

static struct test_proxy *primary_of(struct fixture *f)
{
    for (int i = 0; i < PROXIES; i++) {
        if (proxy_is_primary(f->proxies[i]->proxy))
            return f->proxies[i];
    }
    return NULL;
}

static int create(struct fixture *f, const struct test_proxy *p, const char *name)
{
    _cleanup_free_ char *path = xprintf("/v1/buckets/%s", name);
    return test_call(&f->client, HTTP_POST, public_of(p), path, "{\"action\": \"create\"}", NULL);
}

/* As a client does who is told to repeat: 409 is a change that was made and whose answer was lost.
 */
static void create_in_the_end(struct fixture *f, const struct test_proxy *p, const char *name)
{
    int status;
    test_until((status = create(f, p, name)) != 503);
    assert_true(status == 201 || status == 409);
}

static size_t count_buckets(struct fixture *f, const struct test_proxy *p)
{
    _cleanup_json_ json_t *doc =
        test_json(&f->client, HTTP_GET, public_of(p), "/v1/buckets", NULL, 200);
    return json_array_size(json_object_get(doc, "buckets"));
}

static json_t *overview_of(struct fixture *f, const struct test_proxy *p)
{
    return test_json(&f->client, HTTP_GET, public_of(p), "/v1/cluster", NULL, 200);
}

static const char *text_at(json_t *doc, const char *field)
{
    return json_string_value(json_object_get(doc, field));
}

/* What each proxy says of the cluster: red, and that nobody is known to be the primary now. */
static void all_say_red(struct fixture *f)
{
    for (int i = 0; i < PROXIES; i++) {
        _cleanup_json_ json_t *doc = overview_of(f, f->proxies[i]);
        json_t *first = json_array_get(json_object_get(doc, "reasons"), 0);
        assert_string_equal(text_at(doc, "health"), "red");
        assert_non_null(strstr(text_at(first, "text"), "does not answer"));
    }
}

static void any_takes_changes(void **state)
{
    struct fixture *f = *state;
    test_until(primary_of(f) != NULL);
    for (size_t i = 0; i < PROXIES; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%zu", i);
        assert_int_equal(create(f, f->proxies[i], name), 201);
        for (int k = 0; k < PROXIES; k++)
            assert_int_equal(count_buckets(f, f->proxies[k]), i + 1);
    }
}

static void an_election_is_survived(void **state)
{
    struct fixture *f = *state;
    uint64_t term = 0;
    size_t made = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < PROXIES; i++) {
            char name[16];
            snprintf(name, sizeof name, "b%zu", made++);
            create_in_the_end(f, f->proxies[i], name);
        }
        for (int i = 0; i < PROXIES; i++)
            test_until(count_buckets(f, f->proxies[i]) == made);
        _cleanup_state_ const struct cluster_state *s =
            state_current(f->proxies[round % PROXIES]->proxy->state);
        assert_true(s->term > term);
        term = s->term;
        fake_etcd_expire(f->etcd); /* which the primary hears from etcd alone */
    }
}

/* What it answers then is told from a mistake of the client's, and nothing is lost. */
static void without_etcd_nothing_changes(void **state)
{
    struct fixture *f = *state;
    test_until(primary_of(f) != NULL);
    assert_int_equal(create(f, f->proxies[0], "before"), 201);
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_LOSES_IT, 1000000);
    fake_etcd_fault(f->etcd, FAKE_RENEWAL, FAKE_LOSES_IT, 1000000);
    fake_etcd_fault(f->etcd, FAKE_CAMPAIGN, FAKE_UNAVAILABLE, 1000000);
    test_error(&f->client, HTTP_POST, public_of(primary_of(f)), "/v1/buckets/during",
               "{\"action\": \"create\"}", 503, "in_doubt", "repeating it is safe");
    test_until(primary_of(f) == NULL);
    all_say_red(f);
    for (int i = 0; i < PROXIES; i++) {
        assert_int_equal(create(f, f->proxies[i], "after"), 503);
        assert_int_equal(count_buckets(f, f->proxies[i]), 1);
    }
    fake_etcd_fault(f->etcd, FAKE_COMMIT, FAKE_NONE, 0);
    fake_etcd_fault(f->etcd, FAKE_RENEWAL, FAKE_NONE, 0);
    fake_etcd_fault(f->etcd, FAKE_CAMPAIGN, FAKE_NONE, 0);
    create_in_the_end(f, f->proxies[0], "again");
    test_until(count_buckets(f, f->proxies[2]) == 2);
}

static void a_graceful_end_hands_over(void **state)
{
    struct fixture *f = *state;
    test_until(primary_of(f) != NULL);
    struct test_proxy *first = primary_of(f);
    struct test_proxy *other = f->proxies[first == f->proxies[0]];
    assert_int_equal(create(f, other, "b"), 201);
    test_proxy_stop(first); /* gives the lease back: nobody else would end it here */
    create_in_the_end(f, other, "c");
    test_proxy_start(first);
    test_until(count_buckets(f, first) == 2);
    create_in_the_end(f, first, "d");
}

/* Has the primary heard it? */
static bool tells_electable(struct fixture *f, const char *id, bool electable)
{
    _cleanup_json_ json_t *doc = overview_of(f, f->proxies[0]);
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(doc, "nodes"), i, node)
    {
        json_t *told = json_object_get(node, "electable");
        if (strcmp(text_at(node, "id"), id) == 0 && told != NULL)
            return json_is_true(told) == electable;
    }
    return false;
}

static void what_may_not_be_elected_is_a_follower(void **state)
{
    struct fixture *f = *state;
    test_until(primary_of(f) != NULL);
    struct test_proxy *follower = start(f, "g1", "electable=false");
    test_until(tells_electable(f, "g1", false));
    for (int i = 0; i < PROXIES; i++)
        test_until(tells_electable(f, f->proxies[i]->proxy->id, true));
    for (int i = 0; i < PROXIES; i++)
        test_proxy_stop(f->proxies[i]);
    assert_int_equal(create(f, follower, "alone"), 503);
    assert_int_equal(count_buckets(f, follower), 0);
    for (int i = 0; i < PROXIES; i++)
        test_proxy_start(f->proxies[i]);
    create_in_the_end(f, follower, "b");
    test_proxy_free(follower);
}

/* etcd has lost its data: nothing may begin anew in its place. */
static void an_empty_etcd_is_not_taken_for_a_new_cluster(void **state)
{
    struct fixture *f = *state;
    test_until(primary_of(f) != NULL);
    assert_int_equal(create(f, f->proxies[0], "b"), 201);
    test_until(count_buckets(f, f->proxies[1]) == 1 && count_buckets(f, f->proxies[2]) == 1);
    for (int i = 0; i < PROXIES; i++)
        test_proxy_stop(f->proxies[i]);
    fake_etcd_forget(f->etcd);
    unsigned campaigns = fake_etcd_seen(f->etcd, FAKE_CAMPAIGN);
    for (int i = 0; i < PROXIES; i++)
        test_proxy_start(f->proxies[i]);
    test_until(fake_etcd_seen(f->etcd, FAKE_CAMPAIGN) >= campaigns + 3);
    assert_int_equal(create(f, f->proxies[0], "c"), 503);
    assert_int_equal(count_buckets(f, f->proxies[0]), 1);
    assert_null(fake_etcd_get(f->etcd, "/dfc/head"));
}

#define proxies_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        proxies_test(any_takes_changes),
        proxies_test(an_election_is_survived),
        proxies_test(without_etcd_nothing_changes),
        proxies_test(a_graceful_end_hands_over),
        proxies_test(what_may_not_be_elected_is_a_follower),
        proxies_test(an_empty_etcd_is_not_taken_for_a_new_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
