#include "target/store/renames.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "io/pool.h"

struct turn {
    sem_t begun, may_end, over;
};

static void turn_run(void *arg)
{
    struct turn *t = arg;
    sem_post(&t->begun);
    sem_wait(&t->may_end);
    sem_post(&t->over);
}

static void test_a_name_is_busy_for_as_long_as_anybody_has_a_turn(void **state)
{
    (void)state;
    struct pool *pool = NULL;
    struct error err = ERROR_INIT;
    struct turn t;
    sem_init(&t.begun, 0, 0);
    sem_init(&t.may_end, 0, 0);
    sem_init(&t.over, 0, 0);
    assert_int_equal(pool_new("test", 2, 16, &pool, &err), 0);
    struct renames *r = renames_new(pool);
    assert_false(renames_busy(r, 1, "a"));
    assert_int_equal(renames_enter(r, 1, "a", turn_run, &t, &err), 0);
    sem_wait(&t.begun);
    assert_true(renames_busy(r, 1, "a"));
    assert_false(renames_busy(r, 1, "b"));
    assert_false(renames_busy(r, 2, "a"));
    sem_post(&t.may_end);
    sem_wait(&t.over);
    pool_free(pool);
    assert_false(renames_busy(r, 1, "a"));
    renames_free(r);
}

static struct rename_request request(const char *id, uint64_t bucket, const char *name,
                                     const char *new_name)
{
    return (struct rename_request){
        .id = id, .bucket_id = bucket, .name = name, .new_name = new_name};
}

static void test_the_very_same_request_is_known_and_no_other(void **state)
{
    (void)state;
    _cleanup_(renames_freep)
    struct renames *r = renames_new(NULL);
    struct rename_request q = request("id", 1, "a", "b");
    assert_false(renames_knows(r, &q));
    renames_note(r, &q);
    assert_true(renames_knows(r, &q));
    const struct rename_request others[] = {
        request("id2", 1, "a", "b"), request("id", 2, "a", "b"), request("id", 1, "c", "b"),
        request("id", 1, "a", "c"),  request("ida", 1, "", "b"), request("", 1, "ida", "b"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(renames_knows(r, &others[i]));
}

static void test_the_last_ones_are_kept(void **state)
{
    (void)state;
    _cleanup_(renames_freep)
    struct renames *r = renames_new(NULL);
    char id[32];
    struct rename_request first = request("first", 1, "a", "b");
    renames_note(r, &first);
    for (int i = 1; i < RENAMES_KEPT; i++) {
        snprintf(id, sizeof id, "%d", i);
        struct rename_request q = request(id, 1, "a", "b");
        renames_note(r, &q);
    }
    assert_true(renames_knows(r, &first));
    struct rename_request last = request("last", 1, "a", "b");
    renames_note(r, &last);
    assert_true(renames_knows(r, &last));
    assert_false(renames_knows(r, &first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_busy_for_as_long_as_anybody_has_a_turn),
        cmocka_unit_test(test_the_very_same_request_is_known_and_no_other),
        cmocka_unit_test(test_the_last_ones_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
