/* What only a Redis server is asked: URLs, passwords, memory, commands of an operator. */
#include "mount/meta/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mount/meta/engines.h"
#include "mount/meta/redis_link.h"
#include "mount/meta/redis_pool.h"
#include "mount/meta/redis_slot.h"
#include "mount/meta/testing/fields.h"
#include "mount/meta/testing/server.h"

static int setup(void **state)
{
    server_start(&redis_server);
    *state = open_url(server_url(&redis_server));
    return 0;
}

static int teardown(void **state)
{
    meta_close(*state);
    server_remove(&redis_server);
    return 0;
}

/* ---- places ---- */

static void urls_name_a_place(void **state)
{
    static const struct {
        const char *where, *host, *port, *user, *password, *database;
    } good[] = {
        {"h", "h", "6379", NULL, NULL, "0"},
        {"h:1/", "h", "1", NULL, NULL, "0"},
        {"h/15", "h", "6379", NULL, NULL, "15"},
        {":p@w:d@h:70/2", "h", "70", NULL, "p@w:d", "2"},
        {"u:p/w@h", "h", "6379", "u", "p/w", "0"},
        {"p@h", "h", "6379", NULL, "p", "0"},
        {"[::1]:80/3", "::1", "80", NULL, NULL, "3"},
        {"[::1]", "::1", "6379", NULL, NULL, "0"},
    };
    static const char *const bad[] = {"",    "/0",   ":6379", "h:0",    "h:65536", "h:x",
                                      "h/x", "h/-1", "[::1",  "[::1]x", "h/1/2",   ":secret@/0"};
    struct redis_place p;
    struct error err = ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(redis_place_parse(good[i].where, &p, &err), 0);
        assert_string_equal(p.host, good[i].host);
        assert_string_equal(p.port, good[i].port);
        assert_string_equal(p.user != NULL ? p.user : "", good[i].user ? good[i].user : "");
        assert_string_equal(p.password != NULL ? p.password : "",
                            good[i].password ? good[i].password : "");
        assert_string_equal(p.database, good[i].database);
        redis_place_done(&p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(redis_place_parse(bad[i], &p, &err), E_INVALID);
        assert_null(strstr(err.message, "secret"));
    }
}

static void a_database_without_a_volume_is_left_alone(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    char url[96];
    (void)state;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/7", redis_server.port);
    assert_int_equal(engines_open(url, false, &m, &err), E_NOT_FOUND);
    assert_int_equal(engines_open(url, false, &m, &err), E_NOT_FOUND);
    meta_close(open_url(url));
    assert_int_equal(engines_open(url, false, &m, &err), 0);
    meta_close(m);
    snprintf(url, sizeof url, "redis://:no@127.0.0.1:%u/7", redis_server.port);
    assert_int_not_equal(engines_open(url, false, &m, &err), 0);
}

/* ---- commands of the test's own ---- */

static void tell_server(const char *const *words)
{
    struct redis_place place;
    struct redis_link *l;
    redisReply *reply;
    size_t sizes[8], count = 0;
    assert_int_equal(
        redis_place_parse(server_url(&redis_server) + strlen("redis://"), &place, NULL), 0);
    assert_int_equal(redis_link_open(&place, 60000, &l, NULL), 0);
    for (; words[count] != NULL; count++)
        sizes[count] = strlen(words[count]);
    const struct redis_words command = {words, sizes, count};
    assert_int_equal(redis_link_call(l, &command, &reply, NULL), 0);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    redis_link_close(l);
    redis_place_done(&place);
}
#define TELL(...) tell_server((const char *const[]){__VA_ARGS__, NULL})

static void a_password_is_asked_for(void **state)
{
    struct meta *m;
    struct error err = ERROR_INIT;
    char url[96];
    (void)state;
    TELL("ACL", "SETUSER", "ann", "on", ">open sesame", "allkeys", "allcommands");
    snprintf(url, sizeof url, "redis://ann:shut@127.0.0.1:%u", redis_server.port);
    assert_int_equal(engines_open(url, true, &m, &err), E_ACCESS_DENIED);
    assert_null(strstr(err.message, "shut"));
    snprintf(url, sizeof url, "redis://ann:open sesame@127.0.0.1:%u", redis_server.port);
    m = open_url(url);
    assert_int_equal(put_field(m, one, 3), 0);
    meta_close(m);
    TELL("CONFIG", "SET", "requirepass", "x");
    assert_int_equal(engines_open(server_url(&redis_server), false, &m, &err), E_ACCESS_DENIED);
    setenv("DFC_META_PASSWORD", "x", 1);
    int rc = engines_open(server_url(&redis_server), false, &m, &err);
    unsetenv("DFC_META_PASSWORD");
    assert_int_equal(rc, 0);
    assert_int_equal(field_of(m, one), 3);
    meta_close(m);
}

/* ---- the server goes away ---- */

static void cut_connections_are_made_anew(void **state)
{
    struct meta *m = *state;
    assert_int_equal(put_field(m, one, 1), 0);
    TELL("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_int_equal(field_of(m, one), 1);
    TELL("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_int_equal(add_field(m, one, 5), 0);
    TELL("SCRIPT", "FLUSH");
    assert_int_equal(add_field(m, one, 5), 0);
    assert_int_equal(field_of(m, one), 11);
}

static void a_server_that_lost_all_is_refused(void **state)
{
    struct meta *m = *state;
    int64_t number;
    assert_int_equal(put_field(m, one, 1), 0);
    server_remove(&redis_server);
    server_start(&redis_server); /* on another port, and with nothing */
    TELL("FLUSHALL");
    meta_close(m);
    *state = m = open_url(server_url(&redis_server));
    assert_int_equal(put_field(m, one, 1), 0);
    TELL("FLUSHALL");
    TELL("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_int_equal(read_field(m, one, &number), E_CORRUPT);
}

static void a_full_server_refuses_and_changes_nothing(void **state)
{
    struct meta *m = *state;
    assert_int_equal(put_field(m, one, 1), 0);
    TELL("CONFIG", "SET", "maxmemory", "1mb");
    assert_int_equal(put_field(m, one, 2), E_NO_SPACE);
    TELL("CONFIG", "SET", "maxmemory", "0");
    assert_int_equal(field_of(m, one), 1);
    assert_int_equal(put_field(m, one, 3), 0);
}

/* ---- snapshots ---- */

struct during {
    const char *const *words; /* told to the server at the first row */
    struct meta *m;
    struct meta_key key; /* put then */
    unsigned times;      /* that the server is told the words; 0: once */
    unsigned rows;
};

static int disturb(void *context, const struct meta_row *row, struct error *err)
{
    struct during *d = context;
    (void)row;
    (void)err;
    for (unsigned i = 0; d->rows == 0 && d->words != NULL && i < d->times + (d->times == 0); i++)
        tell_server(d->words);
    d->rows++;
    return 0;
}

static int disturb_and_put(void *context, const struct meta_row *row, struct error *err)
{
    struct during *d = context;
    int rc = disturb(d, row, err);
    if (rc == 0 && d->rows == 1)
        assert_int_equal(put_field(d->m, d->key, 2), 0); /* this engine can be called here */
    return rc;
}

static int snapshot_during(struct meta *m, const char *const *words, struct error *err)
{
    struct during d = {.words = words};
    *err = ERROR_INIT;
    return m->ops->snapshot(m, disturb, &d, err);
}

static void commits_of_an_earlier_release_are_noticed(void **state)
{
    static const char *const words[] = {"INCR", REDIS_TAG "number", NULL};
    struct error err;
    assert_int_equal(put_field(*state, one, 1), 0);
    assert_int_equal(snapshot_during(*state, words, &err), E_NOT_READY);
    assert_non_null(strstr(err.message, "earlier release"));
    assert_int_equal(snapshot_during(*state, NULL, &err), 0);
}

static void a_cut_that_is_gone_is_noticed(void **state)
{
    static const char *const words[] = {"DEL", REDIS_TAG "cut", NULL};
    struct error err;
    assert_int_equal(put_field(*state, one, 1), 0);
    assert_int_equal(snapshot_during(*state, words, &err), E_NOT_READY);
    assert_non_null(strstr(err.message, "faster"));
    assert_int_equal(snapshot_during(*state, NULL, &err), 0);
}

static int again(void *context, const struct meta_row *row, struct error *err)
{
    struct meta *m = context;
    struct during d = {0};
    (void)row;
    /* This engine can be called here. */
    int rc = m->ops->snapshot(m, disturb, &d, err);
    return rc == E_NOT_READY ? error_recode(err, E_TOO_LARGE, "the second one") : rc;
}

static void one_snapshot_at_a_time(void **state)
{
    struct meta *m = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(put_field(m, one, 1), 0);
    assert_int_equal(m->ops->snapshot(m, again, m, &err), E_TOO_LARGE);
    assert_int_equal(snapshot_during(m, NULL, &err), 0);
}

static void what_too_many_commits_changed_is_not_kept(void **state)
{
    struct error err;
    static const char fill[] = /* in steps that no server is busy with for long */
        "for i = 1, 50 do local n, all = redis.call('HLEN', KEYS[1]), {} for j = 1, 1000 do "
        "all[2 * j - 1] = n + j all[2 * j] = '' end redis.call('HSET', KEYS[1], unpack(all)) end "
        "return 1";
    static const char cut[] = REDIS_TAG "cut";
    static const char *const words[] = {"EVAL", fill, "1", cut, NULL};
    struct during d = {.words = words, .m = *state, .key = one, .times = 21};
    assert_int_equal(put_field(*state, one, 1), 0);
    assert_int_equal(d.m->ops->snapshot(d.m, disturb_and_put, &d, &err), E_NOT_READY);
    assert_int_equal(field_of(*state, one), 2);
    TELL("EVAL", "return redis.call('EXISTS', KEYS[1]) == 0 and 1 or redis.error_reply('kept')",
         "1", cut);
}

#define ON_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_name_a_place),
        ON_SERVER(a_database_without_a_volume_is_left_alone),
        ON_SERVER(a_password_is_asked_for),
        ON_SERVER(cut_connections_are_made_anew),
        ON_SERVER(a_server_that_lost_all_is_refused),
        ON_SERVER(a_full_server_refuses_and_changes_nothing),
        ON_SERVER(commits_of_an_earlier_release_are_noticed),
        ON_SERVER(a_cut_that_is_gone_is_noticed),
        ON_SERVER(one_snapshot_at_a_time),
        ON_SERVER(what_too_many_commits_changed_is_not_kept),
    };
    if (!server_is_installed(&redis_server)) {
        printf("skipped: redis-server is not installed\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
