/* What only a PostgreSQL server is asked: databases, passwords, settings, large pages, numbers. */
#include "mount/meta/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mount/meta/engines.h"
#include "mount/meta/postgres_pool.h"
#include "mount/meta/testing/fields.h"
#include "mount/meta/testing/server.h"

#define PSQL "PGOPTIONS= psql -qAt -v ON_ERROR_STOP=1 -h 127.0.0.1 -p $1 -U dfc -d postgres -c "

enum { SLOW_MS = 2000 };

static int setup(void **state)
{
    server_start(&postgres_server);
    *state = open_url(server_url(&postgres_server));
    return 0;
}

static int teardown(void **state)
{
    meta_close(*state);
    server_remove(&postgres_server);
    return 0;
}

static void url_of(char url[static 128], const char *login, const char *database)
{
    snprintf(url, 128, "postgres://%s@127.0.0.1:%u/%s", login, postgres_server.port, database);
}

static void a_database_without_a_volume_is_left_alone(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    char url[128];
    (void)state;
    url_of(url, "dfc", "none");
    assert_int_equal(engines_open(url, true, &m, &err), E_NET);
    assert_non_null(strstr(err.message, "\"none\""));
    server_shell(&postgres_server, PSQL "'CREATE DATABASE other'");
    url_of(url, "dfc", "other");
    assert_int_equal(engines_open(url, false, &m, &err), E_NOT_FOUND);
    assert_int_equal(engines_open(url, false, &m, &err), E_NOT_FOUND);
    meta_close(open_url(url));
    assert_int_equal(engines_open(url, false, &m, &err), 0);
    meta_close(m);
}

static void a_url_that_cannot_be_read_is_not_quoted(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(engines_open("postgres://u:sec%zzret@127.0.0.1/d", false, &m, &err),
                     E_INVALID);
    assert_null(strstr(err.message, "sec"));
    assert_non_null(strstr(err.message, "%25"));
}

static void a_password_is_asked_for(void **state)
{
    struct meta *m = *state;
    struct error err = ERROR_INIT;
    char url[128];
    server_shell(&postgres_server, PSQL "\"CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'open'\"");
    server_shell(
        &postgres_server,
        "echo 'host all ann all scram-sha-256' | cat - \"$0/data/pg_hba.conf\" > \"$0/hba\""
        " && cat \"$0/hba\" > \"$0/data/pg_hba.conf\" && " PSQL "'SELECT pg_reload_conf()'");
    assert_int_equal(put_field(m, one, 3), 0);
    url_of(url, "ann:shut", "postgres");
    assert_int_equal(engines_open(url, true, &m, &err), E_NET);
    assert_null(strstr(err.message, "shut"));
    url_of(url, "ann:open", "postgres");
    m = open_url(url);
    assert_int_equal(field_of(m, one), 3);
    meta_close(m);
    setenv("DFC_META_PASSWORD", "open", 1);
    url_of(url, "ann", "postgres");
    int rc = engines_open(url, false, &m, &err);
    unsetenv("DFC_META_PASSWORD");
    assert_int_equal(rc, 0);
    assert_int_equal(field_of(m, one), 3);
    meta_close(m);
}

static void cut_connections_are_made_anew(void **state)
{
    static const char cut[] = PSQL "'SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
                                   "WHERE pid <> pg_backend_pid()'"; /* waits for their end */
    struct meta *m = *state;
    assert_int_equal(put_field(m, one, 1), 0);
    server_shell(&postgres_server, cut);
    assert_int_equal(field_of(m, one), 1);
    server_shell(&postgres_server, cut);
    assert_int_equal(add_field(m, one, 5), 0);
    assert_int_equal(field_of(m, one), 6);
}

static int visit_slowly(void *context, const struct meta_row *row, struct error *err)
{
    (void)row;
    (void)err;
    *(unsigned *)context += 1;
    usleep(SLOW_MS * 1000);
    return 0;
}

/* The role's timeouts are shorter than what its calls take. */
static void timeouts_of_the_role_end_no_call(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    unsigned rows = 0;
    (void)state;
    server_shell(&postgres_server,
                 PSQL "\"ALTER ROLE dfc SET statement_timeout = '1s'; ALTER ROLE dfc SET "
                      "lock_timeout = '1s'; ALTER ROLE dfc SET "
                      "idle_in_transaction_session_timeout = '1s'\"");
    server_shell(&postgres_server,
                 PSQL "\"CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
                      "'BEGIN PERFORM pg_sleep(2); RETURN NEW; END'; CREATE TRIGGER slow "
                      "BEFORE INSERT ON dfc_kv FOR EACH ROW EXECUTE FUNCTION slow()\"");
    assert_int_equal(engines_open(server_url(&postgres_server), false, &m, &err), 0);
    assert_int_equal(put_field(m, one, 1), 0);
    assert_int_equal(m->ops->snapshot(m, visit_slowly, &rows, &err), 0);
    assert_int_equal(rows, 1);
    meta_close(m);
}

static void expect_shown(struct postgres_pool *p, const char *show, const char *wanted)
{
    struct postgres_ask ask = {.text = show};
    struct error err = ERROR_INIT;
    assert_int_equal(postgres_pool_run(p, &ask, 1, true, &err), 0);
    assert_string_equal(PQgetvalue(ask.result, 0, 0), wanted);
    postgres_asks_done(&ask, 1);
}

/* A transaction whose client is gone ends soon, though no timeout of statements ends it. */
static void connections_end_with_their_client(void **state)
{
    struct postgres_pool *p;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(postgres_pool_open(server_url(&postgres_server), false, 1, SLOW_MS, &p, &err),
                     0);
    expect_shown(p, "SHOW tcp_keepalives_idle", "10");
    expect_shown(p, "SHOW tcp_keepalives_interval", "5");
    expect_shown(p, "SHOW tcp_keepalives_count", "3");
    expect_shown(p,
                 "SELECT coalesce(min(setting), '10000') FROM pg_settings"
                 " WHERE name = 'client_connection_check_interval'",
                 "10000");
    expect_shown(p,
                 "SELECT coalesce(min(setting), '0') FROM pg_settings"
                 " WHERE name = 'transaction_timeout'",
                 "0");
    postgres_pool_close(p);
}

static void what_cannot_be_written_changes_nothing(void **state)
{
    struct meta *m = *state;
    assert_int_equal(put_field(m, one, 1), 0);
    server_shell(&postgres_server,
                 PSQL "\"ALTER TABLE dfc_kv ADD CONSTRAINT small CHECK (length(v) < 100)\"");
    const char large[200] = "";
    const struct meta_step steps[] = {
        {.kind = META_ADD, .key = one, .number = 5},
        {.kind = META_PUT, .key = {.kind = META_ATTR, .id = 2}, .data = large, .size = 200},
    };
    struct meta_commit c = {.steps = steps, .count = 2};
    assert_int_equal(m->ops->commit(m, &c, NULL), E_IO);
    assert_int_equal(field_of(m, one), 1);
    assert_int_equal(add_field(m, one, 1), 0);
    assert_int_equal(field_of(m, one), 2);
}

/* The list of starts, too: a client that was away through many of them is refused, not misled. */
static void a_new_format_and_an_emptied_database_are_refused(void **state)
{
    struct meta *m = *state, *other;
    struct error err = ERROR_INIT;
    int64_t number;
    assert_int_equal(put_field(m, one, 1), 0);
    server_shell(&postgres_server, PSQL "'UPDATE dfc_volume SET format = 2'");
    assert_int_equal(engines_open(server_url(&postgres_server), false, &other, &err),
                     E_UNSUPPORTED);
    server_shell(&postgres_server, PSQL "'UPDATE dfc_volume SET format = 1, number = 0'");
    server_shell(&postgres_server, PSQL "'TRUNCATE dfc_kv'");
    server_kill(&postgres_server);
    server_start(&postgres_server);
    assert_int_equal(read_field(m, one, &number), E_CORRUPT);
    assert_int_equal(put_field(m, one, 2), E_CORRUPT);
}

static void a_large_page_comes_in_parts(void **state)
{
    enum { ROWS = META_POSTGRES_PAGE + 700, BATCH = 100 };
    struct meta *m = *state;
    for (uint64_t from = 0; from < ROWS; from += BATCH) {
        struct meta_step steps[BATCH];
        struct meta_commit c = {.steps = steps, .count = BATCH};
        for (uint64_t i = 0; i < BATCH; i++)
            steps[i] = (struct meta_step){.kind = META_PUT,
                                          .key = meta_key_number(META_CHUNK, UINT64_MAX, from + i)};
        assert_int_equal(m->ops->commit(m, &c, NULL), 0);
    }
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct meta_item item = {
        .ask = META_PAGE, .key = meta_key_number(META_CHUNK, UINT64_MAX, 0), .limit = ROWS + 1};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    assert_int_equal(m->ops->read(m, &r, NULL), 0);
    assert_int_equal(item.count, META_POSTGRES_PAGE);
    assert_true(item.more);
    item.key = item.rows[item.count - 1].key;
    item.after = true;
    assert_int_equal(m->ops->read(m, &r, NULL), 0);
    assert_int_equal(item.count, 700);
    assert_false(item.more);
    assert_int_equal(item.rows[699].key.sub, ROWS - 1);
}

static void a_large_queue_comes_whole(void **state)
{
    enum { ROWS = META_POSTGRES_PAGE + 700 };
    struct meta *m = *state;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct meta_step *steps = arena_alloc(arena, ROWS * sizeof *steps);
    struct meta_commit c = {.steps = steps, .count = ROWS};
    struct meta_item item = {.key.kind = META_GARBAGE, .limit = ROWS};
    for (uint64_t i = 0; i < ROWS; i++)
        steps[i] =
            (struct meta_step){.kind = META_PUT, .key = meta_key_number(META_GARBAGE, 7, 1 + i)};
    assert_int_equal(m->ops->commit(m, &c, NULL), 0);
    assert_int_equal(m->ops->queue(m, arena, &item, 7, NULL), 0);
    assert_int_equal(item.count, ROWS);
    assert_false(item.more);
}

/* Before the engine gives up waiting for the server. */
static void a_large_commit_is_made(void **state)
{
    enum { STEPS = 60000 };
    struct meta *m = *state;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct meta_step *steps = arena_alloc(arena, STEPS * sizeof *steps);
    struct meta_commit c = {.steps = steps, .count = STEPS};
    struct error err = ERROR_INIT;
    for (uint64_t i = 0; i < STEPS; i++)
        steps[i] = (struct meta_step){.kind = i % 2 == 0 ? META_EXPECT_ABSENT : META_PUT,
                                      .key = meta_key_number(META_GARBAGE, 7, 1 + i),
                                      .data = "12345678",
                                      .size = 8};
    if (m->ops->commit(m, &c, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(put_field(m, one, 1), 0);
    steps[STEPS - 2].key = one;
    assert_int_equal(m->ops->commit(m, &c, NULL), E_PRECONDITION);
    assert_int_equal(c.conflict, STEPS - 2);
}

static void numbers_wrap_around(void **state)
{
    struct meta *m = *state;
    assert_int_equal(put_field(m, one, INT64_MAX), 0);
    assert_int_equal(add_field(m, one, 2), 0);
    assert_int_equal(field_of(m, one), INT64_MIN + 1);
    assert_int_equal(add_field(m, one, INT64_MIN), 0);
    assert_int_equal(field_of(m, one), 1);
}

#define ON_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SERVER(a_database_without_a_volume_is_left_alone),
        cmocka_unit_test(a_url_that_cannot_be_read_is_not_quoted),
        ON_SERVER(a_password_is_asked_for),
        ON_SERVER(cut_connections_are_made_anew),
        ON_SERVER(timeouts_of_the_role_end_no_call),
        ON_SERVER(connections_end_with_their_client),
        ON_SERVER(what_cannot_be_written_changes_nothing),
        ON_SERVER(a_new_format_and_an_emptied_database_are_refused),
        ON_SERVER(a_large_page_comes_in_parts),
        ON_SERVER(a_large_queue_comes_whole),
        ON_SERVER(a_large_commit_is_made),
        ON_SERVER(numbers_wrap_around),
    };
    if (!server_is_installed(&postgres_server)) {
        printf("skipped: there is no server postgres\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
