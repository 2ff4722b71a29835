/* What engines on servers promise: a server that is away, that dies, that loses commits;
 * connections that are cut.
 *
 *     mount_meta_servers_test redis|postgres
 */
#include "mount/meta/testing/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "mount/meta/engines.h"
#include "mount/meta/patience.h"
#include "mount/meta/testing/cutter.h"
#include "mount/meta/testing/fields.h"

static struct server *server; /* of this run */

static int setup(void **state)
{
    server_start(server);
    *state = open_url(server_url(server));
    return 0;
}

static int teardown(void **state)
{
    meta_close(*state);
    server_remove(server);
    return 0;
}

static void a_server_that_is_not_there_is_not_waited_for(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    char port[16];
    (void)state;
    server_start(server);
    server_kill(server);
    const uint64_t before = clock_ms();
    assert_int_equal(engines_open(server_url(server), true, &m, &err), E_NET);
    snprintf(port, sizeof port, "%u", server->port);
    assert_non_null(strstr(err.message, port));
    assert_true(clock_ms() - before < META_AWAY_MS / 2);
    server_remove(server);
}

struct call {
    struct meta *m;
    bool add;
    int64_t number;
    int rc;
};

static void *run_call(void *arg)
{
    struct call *c = arg;
    c->rc = c->add ? add_field(c->m, one, 0) : read_field(c->m, one, &c->number);
    return NULL;
}

/* The server starts in the test's own thread: it ends with the thread that starts it. */
static void calls_wait_for_a_server_that_starts_again(void **state)
{
    struct meta *m = *state;
    for (int64_t i = 0; i < 6; i++) {
        pthread_t thread;
        struct call c = {.m = m, .add = i % 2 != 0, .number = i};
        assert_int_equal(put_field(m, one, i), 0);
        server_kill(server);
        assert_int_equal(pthread_create(&thread, NULL, run_call, &c), 0);
        server_start(server);
        pthread_join(thread, NULL);
        assert_int_equal(c.rc, 0);
        assert_int_equal(c.number, i);
        assert_int_equal(field_of(m, one), i);
    }
}

static void a_server_with_old_files_is_refused(void **state)
{
    struct meta *m = *state;
    struct error err = ERROR_INIT;
    int64_t number, now;
    assert_int_equal(put_field(m, one, 1), 0);
    server_kill(server);
    server_save_files(server);
    server_start(server);
    assert_int_equal(field_of(m, one), 1); /* nothing is lost */
    struct meta *idle = open_url(server_url(server));
    assert_int_equal(put_field(m, one, 2), 0);
    server_kill(server);
    server_back_to_them(server);
    server_start(server);
    struct meta *other = open_url(server_url(server)); /* a new client knows nothing */
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(put_field(other, one, 10 + i), 0);
    assert_int_equal(read_field(m, one, &number), E_CORRUPT);
    assert_int_equal(put_field(m, one, 3), E_CORRUPT);
    assert_int_equal(m->ops->now(m, &now, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "mount the volume again"));
    assert_int_equal(field_of(other, one), 14);
    assert_int_equal(read_field(idle, one, &number), E_CORRUPT); /* its run is unknown */
    meta_close(idle);
    meta_close(other);
}

/* ---- cut within a call ---- */

static void a_commit_without_a_reply_is_in_doubt(void **state)
{
    char url[64];
    unsigned port = cutter_start(server);
    (void)state;
    snprintf(url, sizeof url, server->url, port); /* NOLINT: the format is one of the table's */
    struct meta *m = open_url(url);
    assert_int_equal(put_field(m, one, 1), 0);
    cutter_set(CUTTER_REQUEST);
    assert_int_equal(add_field(m, one, 10), E_IN_DOUBT);
    assert_int_equal(field_of(m, one), 1);
    cutter_set(CUTTER_REPLY);
    assert_int_equal(add_field(m, one, 10), E_IN_DOUBT);
    assert_int_equal(field_of(m, one), 11); /* made once */
    /* What changes nothing is asked again. */
    const struct meta_step look = {.kind = META_EXPECT_PRESENT, .key = one};
    cutter_set(CUTTER_REPLY);
    assert_int_equal(commit_step(m, &look), 0);
    meta_close(m);
    cutter_stop();
}

enum { THREADS = 24, ADDS = 50 };

static void *add_often(void *arg)
{
    size_t failed = 0;
    for (unsigned i = 0; i < ADDS; i++)
        failed += add_field(arg, one, 1) != 0;
    return (void *)failed; /* NOLINT: a number */
}

static void more_threads_than_connections_add_up(void **state)
{
    struct meta *m = *state;
    pthread_t threads[THREADS];
    assert_int_equal(put_field(m, one, 0), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_often, m), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(field_of(m, one), THREADS * ADDS);
}

#define ON_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_not_there_is_not_waited_for),
        ON_SERVER(calls_wait_for_a_server_that_starts_again),
        ON_SERVER(a_server_with_old_files_is_refused),
        ON_SERVER(a_commit_without_a_reply_is_in_doubt),
        ON_SERVER(more_threads_than_connections_add_up),
    };
    server = argc > 1 ? server_named(argv[1]) : NULL;
    if (server == NULL) {
        fprintf(stderr, "give the name of a server: redis or postgres\n");
        return 2;
    }
    if (!server_is_installed(server)) {
        printf("skipped: there is no server %s\n", server->name);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
