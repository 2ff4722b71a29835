#include "target/cold/backlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FOREVER_MS = 1000000 };

static struct backlog *backlog_of(size_t most)
{
    const struct backlog_rules rules = {
        .most = most, .pause_ms = 100, .pause_max_ms = 1000, .put_off_ms = 500};
    return backlog_new(&rules);
}

static struct backlog_name *take(struct backlog *b, uint64_t now_ms, const char *want)
{
    uint64_t wait_ms;
    struct backlog_name *n = backlog_take(b, now_ms, &wait_ms);
    assert_non_null(n);
    assert_string_equal(backlog_text(n), want);
    return n;
}

static uint64_t take_none(struct backlog *b, uint64_t now_ms)
{
    uint64_t wait_ms;
    assert_null(backlog_take(b, now_ms, &wait_ms));
    return wait_ms;
}

static size_t count(const struct backlog *b)
{
    size_t stuck;
    return backlog_count(b, 0, FOREVER_MS, &stuck);
}

static void names_are_taken_in_order_and_once(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    assert_true(backlog_note(b, 1, "a", 0));
    assert_true(backlog_note(b, 1, "b", 0));
    assert_true(backlog_note(b, 1, "a", 0));
    assert_int_equal(count(b), 2);
    struct backlog_name *a = take(b, 0, "a"), *second = take(b, 0, "b");
    assert_true(take_none(b, 0) == UINT64_MAX);
    assert_true(backlog_runs(b, 1, "a"));
    assert_false(backlog_runs(b, 2, "a"));
    backlog_over(b, a);
    backlog_over(b, second);
    assert_int_equal(count(b), 0);
}

static void what_is_written_while_it_runs_runs_again(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    assert_true(backlog_note(b, 1, "a", 0));
    struct backlog_name *a = take(b, 0, "a");
    assert_true(backlog_note(b, 1, "a", 0));
    assert_true(take_none(b, 0) == UINT64_MAX); /* never twice at once */
    backlog_over(b, a);
    backlog_over(b, take(b, 0, "a"));
    assert_int_equal(count(b), 0);
}

static void a_bucket_that_fails_rests_and_is_tried_with_one(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    size_t stuck;
    backlog_note(b, 1, "a", 0);
    backlog_note(b, 1, "b", 0);
    struct backlog_name *first = take(b, 1000, "a"), *second = take(b, 1000, "b");
    backlog_failed(b, first, 1000);
    backlog_failed(b, second, 1000); /* counts once */
    assert_int_equal(take_none(b, 1000), 100);
    first = take(b, 1100, "a");
    assert_true(take_none(b, 1100) == UINT64_MAX);
    backlog_failed(b, first, 1100);
    assert_int_equal(take_none(b, 1100), 200);
    second = take(b, 1300, "b");
    assert_int_equal(backlog_count(b, 1999, 1000, &stuck), 2);
    assert_int_equal(stuck, 0);
    backlog_count(b, 2000, 1000, &stuck);
    assert_int_equal(stuck, 2);
    backlog_over(b, second);
    backlog_note(b, 1, "c", 0);
    first = take(b, 1300, "a");
    second = take(b, 1300, "c");
    backlog_over(b, first);
    backlog_over(b, second);
}

static void pauses_have_an_end(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    uint64_t now_ms = 1;
    backlog_note(b, 1, "a", 0);
    for (int i = 0; i < 100; i++) {
        backlog_failed(b, take(b, now_ms, "a"), now_ms);
        now_ms += take_none(b, now_ms);
    }
    backlog_failed(b, take(b, now_ms, "a"), now_ms);
    assert_int_equal(take_none(b, now_ms), 1000);
}

static void buckets_take_turns(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    backlog_note(b, 1, "a", 0);
    backlog_note(b, 1, "b", 0);
    backlog_note(b, 2, "x", 0);
    backlog_failed(b, take(b, 0, "x"), 0); /* keeps its own waiting alone */
    backlog_over(b, take(b, 0, "a"));
    backlog_note(b, 3, "y", 0);
    backlog_note(b, 3, "z", 0);
    backlog_over(b, take(b, 0, "b"));
    backlog_over(b, take(b, 0, "y"));
    backlog_over(b, take(b, 0, "z"));
    backlog_over(b, take(b, 100, "x"));
}

static void what_is_put_off_rests_alone(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    size_t stuck;
    backlog_note(b, 1, "away", 0);
    backlog_note(b, 1, "b", 0);
    backlog_note(b, 1, "c", 0);
    struct backlog_name *away = take(b, 0, "away");
    assert_false(backlog_has_failed(away));
    backlog_put_off(b, away, 0);
    assert_true(backlog_has_failed(away));
    struct backlog_name *second = take(b, 0, "b"); /* side by side, as if nothing had been */
    backlog_over(b, take(b, 0, "c"));
    backlog_over(b, second);
    assert_int_equal(take_none(b, 100), 400);
    assert_true(backlog_note(b, 1, "away", 0)); /* known, and not for that sooner */
    assert_int_equal(take_none(b, 499), 1);
    backlog_count(b, 1001, 1000, &stuck);
    assert_int_equal(stuck, 1);
    backlog_note(b, 1, "d", 0);
    backlog_over(b, take(b, 500, "d"));
    backlog_over(b, take(b, 500, "away"));
    assert_int_equal(count(b), 0);
}

static void the_bucket_rests_with_what_was_put_off(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    backlog_note(b, 1, "away", 0);
    backlog_note(b, 1, "b", 0);
    backlog_put_off(b, take(b, 0, "away"), 0);
    backlog_failed(b, take(b, 450, "b"), 450); /* the backend's own failure */
    assert_int_equal(take_none(b, 460), 40);   /* … until "away" is due; … */
    assert_int_equal(take_none(b, 500), 50);   /* … which waits for the bucket as all do */
    backlog_over(b, take(b, 550, "b"));
    backlog_over(b, take(b, 550, "away"));
}

static bool is_b(void *ctx, uint64_t bucket_id, const char *name)
{
    return bucket_id == *(uint64_t *)ctx && strcmp(name, "b") == 0;
}

static void it_is_bounded_and_says_what_runs(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(4);
    uint64_t bucket = 1;
    assert_true(backlog_note(b, 1, "a", 0));
    assert_true(backlog_note(b, 1, "b", 0));
    assert_false(backlog_note(b, 1, "c", 0));
    assert_true(backlog_note(b, 1, "b", 0));
    backlog_over(b, take(b, 0, "a"));
    assert_true(backlog_note(b, 1, "c", 0));
    assert_false(backlog_any_runs(b, is_b, &bucket));
    struct backlog_name *n = take(b, 0, "b");
    assert_true(backlog_any_runs(b, is_b, &bucket));
    backlog_over(b, n);
    assert_false(backlog_any_runs(b, is_b, &bucket));
}

static void note_many(struct backlog *b, uint64_t bucket_id, size_t from, size_t end)
{
    char name[24];
    for (size_t i = from; i < end; i++) {
        snprintf(name, sizeof name, "%zu", i);
        assert_true(backlog_note(b, bucket_id, name, 0));
    }
}

static void finish_many(struct backlog *b, size_t many)
{
    uint64_t wait_ms;
    for (size_t i = 0; i < many; i++) {
        struct backlog_name *n = backlog_take(b, 0, &wait_ms);
        assert_non_null(n);
        backlog_over(b, n);
    }
}

/* The first bucket's earlier owner is away. */
static void a_bucket_that_is_stuck_leaves_room_for_others(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(16);
    uint64_t wait_ms;
    note_many(b, 1, 0, 8);
    assert_false(backlog_overflows(b));
    assert_false(backlog_note(b, 1, "more", 0));
    assert_true(backlog_overflows(b));
    for (size_t i = 0; i < 8; i++)
        backlog_put_off(b, backlog_take(b, 0, &wait_ms), 0);
    note_many(b, 2, 0, 4);
    assert_false(backlog_note(b, 2, "more", 0));
    note_many(b, 3, 0, 2);
    assert_false(backlog_note(b, 3, "more", 0));
    note_many(b, 4, 0, 1);
    assert_int_equal(count(b), 15);
    finish_many(b, 7);
    assert_null(backlog_take(b, 0, &wait_ms)); /* the first bucket's are all that is left */
    assert_int_equal(count(b), 8);
}

static void what_overflowed_is_looked_for_when_half_of_its_room_is_there(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(16);
    note_many(b, 1, 0, 8);
    assert_false(backlog_note(b, 1, "more", 0));
    finish_many(b, 4);
    assert_false(backlog_has_room(b));
    finish_many(b, 1);
    assert_true(backlog_has_room(b));
    backlog_looks(b);
    assert_false(backlog_overflows(b));
    assert_false(backlog_has_room(b)); /* all there are are here, until one is refused */
    note_many(b, 1, 8, 13);
    assert_false(backlog_note(b, 1, "more", 0));
    assert_false(backlog_has_room(b));
}

/* It has no name here, and is looked for when the others have let go of one. */
static void a_bucket_without_a_place_gets_one(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(2);
    assert_true(backlog_note(b, 1, "a", 0));
    assert_true(backlog_note(b, 2, "x", 0));
    assert_false(backlog_note(b, 3, "late", 0));
    assert_false(backlog_has_room(b));
    finish_many(b, 1);
    assert_true(backlog_has_room(b));
    assert_true(backlog_note(b, 3, "late", 0));
}

static void what_is_late_is_told_by_the_first_write(void **unused)
{
    (void)unused;
    _cleanup_(backlog_freep)
    struct backlog *b = backlog_of(10);
    int64_t oldest_ms;
    assert_int_equal(backlog_late(b, 1000, &oldest_ms), 0);
    assert_true(oldest_ms == INT64_MAX);
    backlog_note(b, 1, "a", 200);
    backlog_note(b, 1, "a", 900); /* the backend lacks the first one all the same */
    backlog_note(b, 1, "x", 500);
    assert_int_equal(backlog_late(b, 500, &oldest_ms), 1);
    assert_int_equal(oldest_ms, 200);
    struct backlog_name *a = take(b, 0, "a");
    backlog_note(b, 1, "a", 1100);
    backlog_note(b, 1, "a", 1200);
    assert_int_equal(backlog_late(b, 501, &oldest_ms), 2);
    backlog_over(b, a);
    assert_int_equal(backlog_late(b, 1101, &oldest_ms), 2);
    assert_int_equal(oldest_ms, 500);
    backlog_over(b, take(b, 0, "x"));
    assert_int_equal(backlog_late(b, 1100, &oldest_ms), 0);
    assert_int_equal(oldest_ms, 1100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_in_order_and_once),
        cmocka_unit_test(what_is_written_while_it_runs_runs_again),
        cmocka_unit_test(a_bucket_that_fails_rests_and_is_tried_with_one),
        cmocka_unit_test(pauses_have_an_end),
        cmocka_unit_test(buckets_take_turns),
        cmocka_unit_test(what_is_put_off_rests_alone),
        cmocka_unit_test(the_bucket_rests_with_what_was_put_off),
        cmocka_unit_test(it_is_bounded_and_says_what_runs),
        cmocka_unit_test(a_bucket_that_is_stuck_leaves_room_for_others),
        cmocka_unit_test(what_overflowed_is_looked_for_when_half_of_its_room_is_there),
        cmocka_unit_test(a_bucket_without_a_place_gets_one),
        cmocka_unit_test(what_is_late_is_told_by_the_first_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
