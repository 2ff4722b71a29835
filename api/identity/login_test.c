/* Logins of libdfc against api/testing/mock_cluster.py with access control. */
#include "api/dfc.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/testing/mock_child.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define LOGINS "\"path\": \"/v1/auth/token\""
#define SECRET "0123456789012345678901234567890123456789"

static struct dfc_error err;

static int setup(void **state)
{
    (void)state;
    mock_steer("DELETE", "/mock", NULL, NULL);
    mock_steer("PUT", "/mock/auth", "{\"secrets\": {\"DFCKEY\": \"" SECRET "\"}}", NULL);
    return 0;
}

static struct dfc_client *client_of(const char *access, const char *secret, const char *token)
{
    struct dfc_client *c;
    const struct dfc_client_options o = {.endpoints = mock_endpoint,
                                         .access_key = access,
                                         .secret_key = secret,
                                         .token = token,
                                         .attempts = 2,
                                         .retry_budget_ms = 20000};
    assert_int_equal(dfc_client_open(&o, &c, &err), DFC_OK);
    return c;
}

static int lists_buckets(struct dfc_client *c, struct dfc_error *e)
{
    char *document = NULL;
    int rc = dfc_bucket_list(c, &document, e);
    dfc_free(document);
    return rc;
}

static void a_token_goes_to_the_proxy_alone(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(dfc_bucket_create(c, "b", NULL, &err), DFC_OK);
    assert_int_equal(dfc_put_memory(c, "b", "k", "data", 4, NULL, NULL, &err), DFC_OK);
    assert_int_equal(dfc_head(c, "b", "k", NULL, &err), DFC_OK);
    assert_int_equal(mock_logged(LOGINS), 1);
    assert_int_equal(mock_logged("\"authorization\": \"Bearer dfc1.token-1\""), 3);
    assert_int_equal(mock_logged("\"at\": \"target\""), 2); /* by the redirects' proof */
    assert_int_equal(mock_logged(SECRET), 0);
    dfc_client_close(c);
}

static void a_node_is_asked_with_the_token(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    char *document;
    assert_int_equal(dfc_node_show(c, "t1", NULL, &document, &err), DFC_OK);
    dfc_free(document);
    assert_int_equal(mock_logged("\"authorization\": \"Bearer dfc1.token-1\""), 2);
    dfc_client_close(c);
}

static void without_a_login_the_cluster_refuses(void **state)
{
    (void)state;
    struct dfc_client *c = client_of(NULL, NULL, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_DENIED);
    assert_int_equal(err.status, 401);
    assert_int_equal(mock_logged(LOGINS), 0);
    dfc_client_close(c);
}

static void a_token_that_ends_is_renewed_once(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    mock_steer("PUT", "/mock/auth", "{\"withdraw\": true}", NULL);
    assert_int_equal(dfc_bucket_create(c, "b", NULL, &err), DFC_OK);
    assert_int_equal(mock_logged(LOGINS), 2);
    mock_plan("[{\"do\": \"status\", \"status\": 401, \"times\": 9, \"path\": \"/v1/buckets\","
              "  \"code\": \"unauthorized\", \"challenge\": \"Bearer error=\\\"expired\\\"\"}]");
    assert_int_equal(lists_buckets(c, &err), DFC_DENIED);
    assert_int_equal(mock_logged(LOGINS), 3);
    dfc_client_close(c);
}

/* Four fifths of a life of 250 ms are over. */
static void a_token_is_renewed_before_it_ends(void **state)
{
    (void)state;
    mock_steer("PUT", "/mock/auth", "{\"token_ms\": 250}", NULL);
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    for (uint64_t begin = clock_ms(); clock_ms() - begin < 201;)
        assert_int_equal(lists_buckets(c, &err), DFC_OK);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    assert_true(mock_logged(LOGINS) >= 2); /* the mock refuses none by its age */
    dfc_client_close(c);
}

static void an_old_token_serves_where_its_renewal_fails(void **state)
{
    (void)state;
    mock_steer("PUT", "/mock/auth", "{\"token_ms\": 250}", NULL);
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    mock_plan(
        "[{\"do\": \"status\", \"status\": 500, \"path\": \"/v1/auth/token\", \"times\": 9}]");
    for (uint64_t begin = clock_ms(); clock_ms() - begin < 201;)
        assert_int_equal(lists_buckets(c, &err), DFC_OK);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    assert_int_equal(mock_logged(LOGINS), 2); /* and is not tried at once again */
    dfc_client_close(c);
}

static void an_expired_redirect_is_asked_for_again(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(dfc_bucket_create(c, "b", NULL, &err), DFC_OK);
    assert_int_equal(dfc_put_memory(c, "b", "k", "data", 4, NULL, NULL, &err), DFC_OK);
    mock_plan("[{\"at\": \"target\", \"do\": \"status\", \"status\": 401,"
              "  \"code\": \"proof_expired\", \"challenge\": \"Bearer error=\\\"expired\\\"\"}]");
    assert_int_equal(dfc_head(c, "b", "k", NULL, &err), DFC_OK);
    assert_int_equal(mock_logged(LOGINS), 1); /* the token is as good as before */
    dfc_client_close(c);
}

static void a_given_token_is_used_as_it_is(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    dfc_client_close(c);
    c = client_of(NULL, NULL, "dfc1.token-1");
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    mock_steer("PUT", "/mock/auth", "{\"withdraw\": true}", NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_DENIED);
    assert_int_equal(mock_logged(LOGINS), 1);
    dfc_client_close(c);
}

static void a_wrong_secret_is_said(void **state)
{
    (void)state;
    struct dfc_client *c = client_of("DFCKEY", "wrong", NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_DENIED);
    assert_int_equal(err.status, 401);
    assert_non_null(strstr(err.message, "secret"));
    assert_int_equal(mock_logged("/v1/buckets"), 0);
    dfc_client_close(c);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    static const struct dfc_client_options rows[] = {
        {.endpoints = "http://h:1", .access_key = "A"},
        {.endpoints = "http://h:1", .secret_key = "S"},
        {.endpoints = "http://h:1", .access_key = "A", .secret_key = "S", .token = "T"},
        {.endpoints = "http://h:1", .token = "a\r\nb"},
        {.endpoints = "https://h:1,http://h:2", .token = "T"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dfc_client *c;
        assert_int_equal(dfc_client_open(&rows[i], &c, &err), DFC_INVALID);
    }
}

static void the_environment_names_the_user(void **state)
{
    (void)state;
    struct dfc_client *c;
    const struct dfc_client_options nobody = {.endpoints = mock_endpoint, .token = ""};
    setenv("DFC_ACCESS_KEY", "DFCKEY", 1);
    setenv("DFC_SECRET_KEY", SECRET, 1);
    c = client_of(NULL, NULL, NULL);
    assert_int_equal(lists_buckets(c, &err), DFC_OK);
    dfc_client_close(c);
    assert_int_equal(dfc_client_open(&nobody, &c, &err), DFC_OK);
    assert_int_equal(lists_buckets(c, &err), DFC_DENIED);
    dfc_client_close(c);
    unsetenv("DFC_ACCESS_KEY");
    unsetenv("DFC_SECRET_KEY");
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 20 };

struct user {
    struct dfc_client *client;
    unsigned ok, denied;
};

static void *use(void *arg)
{
    struct user *u = arg;
    struct dfc_error own;
    for (int i = 0; i < ROUNDS; i++) {
        int rc = lists_buckets(u->client, &own);
        u->ok += rc == DFC_OK;
        u->denied += rc == DFC_DENIED;
    }
    return NULL;
}

static void run_threads(struct dfc_client *c, struct user users[THREADS], const char *meanwhile)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.client = c};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    if (meanwhile != NULL)
        mock_steer("PUT", "/mock/auth", meanwhile, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void threads_share_one_login(void **state)
{
    (void)state;
    struct user users[THREADS];
    struct dfc_client *c = client_of("DFCKEY", SECRET, NULL);
    run_threads(c, users, NULL);
    assert_int_equal(mock_logged(LOGINS), 1);
    run_threads(c, users, "{\"withdraw\": true}");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(users[i].ok, ROUNDS);
    assert_int_equal(mock_logged(LOGINS), 2);
    dfc_client_close(c);
}

int main(void)
{
    unsetenv("DFC_ACCESS_KEY");
    unsetenv("DFC_SECRET_KEY");
    unsetenv("DFC_TOKEN");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_token_goes_to_the_proxy_alone, setup),
        cmocka_unit_test_setup(a_node_is_asked_with_the_token, setup),
        cmocka_unit_test_setup(without_a_login_the_cluster_refuses, setup),
        cmocka_unit_test_setup(a_token_that_ends_is_renewed_once, setup),
        cmocka_unit_test_setup(a_token_is_renewed_before_it_ends, setup),
        cmocka_unit_test_setup(an_old_token_serves_where_its_renewal_fails, setup),
        cmocka_unit_test_setup(an_expired_redirect_is_asked_for_again, setup),
        cmocka_unit_test_setup(a_given_token_is_used_as_it_is, setup),
        cmocka_unit_test_setup(a_wrong_secret_is_said, setup),
        cmocka_unit_test_setup(what_does_not_fit_together_is_refused, setup),
        cmocka_unit_test_setup(the_environment_names_the_user, setup),
        cmocka_unit_test_setup(threads_share_one_login, setup),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("login", tests, mock_start, mock_stop);
}
