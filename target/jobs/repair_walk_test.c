#include "target/jobs/repair_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

enum { WATCH = 77 };

/* Two others, t2 and t3, each as it was at the beginning. */
static struct repair_need need_new(void)
{
    struct repair_need n = {.placed = 3, .lagged = 9, .raised = 1, .count = 2};
    n.peers = xcalloc(2, sizeof *n.peers);
    n.peers[0] = (struct repair_peer){
        .id = xstrdup("t2"), .boot = xstrdup("b2"), .steps = 4, .quarantine = 1000};
    n.peers[1] = (struct repair_peer){
        .id = xstrdup("t3"), .boot = xstrdup("b3"), .steps = 5, .quarantine = 2000};
    return n;
}

static void set(char **text, const char *value)
{
    free(*text);
    *text = xstrdup(value);
}

static void restarts(struct repair_need *n)
{
    n->lagged++;
    set(&n->peers[0].boot, "b2'");
}

static struct repair_walk walk_new(void)
{
    struct repair_walk w = {.watch = 0};
    struct repair_need n = need_new();
    repair_walk_begin(&w, WATCH, &n);
    assert_int_equal(n.count, 0);
    w.job = xstrdup("rpr-1");
    repair_walk_reach(&w, 7, "m");
    w.slices = 6;
    return w;
}

/* Does a walk go on whose need has changed so? */
static bool goes_on(void (*change)(struct repair_need *n))
{
    struct repair_walk w = walk_new();
    struct repair_need n = need_new();
    change(&n);
    bool on = repair_walk_go_on(&w, &n);
    if (on) {
        assert_true(repair_walk_passed(&w, 7, "m"));
        assert_int_equal(w.need.lagged, n.lagged);
    }
    repair_need_done(&n);
    repair_walk_done(&w);
    return on;
}

static void nothing(struct repair_need *n)
{
    (void)n;
}

static void another_owner(struct repair_need *n)
{
    n->placed++;
}

static void more_copies(struct repair_need *n)
{
    n->raised++;
}

static void one_away(struct repair_need *n)
{
    n->lagged++;
    n->count--;
    free(n->peers[1].id);
    free(n->peers[1].boot);
}

static void another_one(struct repair_need *n)
{
    n->lagged++;
    set(&n->peers[1].id, "t4");
}

static void back_without_power(struct repair_need *n)
{
    restarts(n);
    n->peers[0].steps++;
}

static void a_disk_given_up(struct repair_need *n)
{
    n->lagged++;
    n->peers[0].steps++;
}

static void does_not_say(struct repair_need *n)
{
    n->lagged++;
    n->peers[0].steps = REPAIR_UNKNOWN;
}

static void back_with_damage(struct repair_need *n)
{
    restarts(n);
    n->peers[0].quarantine++;
}

static void back_and_mute(struct repair_need *n)
{
    restarts(n);
    n->peers[0].quarantine = 0;
}

static void damage_in_the_same_run(struct repair_need *n)
{
    n->lagged++;
    n->peers[0].quarantine++;
}

static void damage_under_the_same_map(struct repair_need *n)
{
    n->peers[0].quarantine++;
    n->peers[0].steps++;
}

static void test_it_goes_on_while_nobody_has_lost_anything(void **state)
{
    (void)state;
    assert_true(goes_on(nothing));
    assert_true(goes_on(restarts));
    assert_true(goes_on(damage_in_the_same_run));
    assert_true(goes_on(damage_under_the_same_map));
}

static void test_else_it_begins_anew(void **state)
{
    (void)state;
    assert_false(goes_on(another_owner));
    assert_false(goes_on(more_copies));
    assert_false(goes_on(one_away));
    assert_false(goes_on(another_one));
    assert_false(goes_on(back_without_power));
    assert_false(goes_on(a_disk_given_up));
    assert_false(goes_on(does_not_say));
    assert_false(goes_on(back_with_damage));
    assert_false(goes_on(back_and_mute));
}

/* Who did not say at the beginning has no past to compare with. */
static void test_two_unknowns_are_not_equal(void **state)
{
    (void)state;
    struct repair_walk w = walk_new();
    struct repair_need n = need_new();
    w.need.peers[0].steps = n.peers[0].steps = REPAIR_UNKNOWN;
    assert_true(repair_walk_go_on(&w, &n));
    n.lagged++;
    assert_false(repair_walk_go_on(&w, &n));
    repair_need_done(&n);
    repair_walk_done(&w);
}

/* What a run has moved aside it has mended while it lasts; the one after it has forgotten that. */
static void test_damage_counts_with_the_next_run(void **state)
{
    (void)state;
    struct repair_walk w = walk_new();
    struct repair_need n = need_new();
    restarts(&n);
    assert_true(repair_walk_go_on(&w, &n));
    n.lagged++;
    n.peers[0].quarantine++;
    assert_true(repair_walk_go_on(&w, &n));
    n.lagged++;
    set(&n.peers[0].boot, "b2''");
    assert_false(repair_walk_go_on(&w, &n));
    repair_need_done(&n);
    repair_walk_done(&w);
}

static void test_slices_are_passed_only_while_nobody_moves(void **state)
{
    (void)state;
    struct repair_walk w = walk_new();
    struct repair_need n = need_new();
    assert_true(repair_walk_go_on(&w, &n));
    assert_int_equal(w.slices, 6);
    restarts(&n);
    assert_true(repair_walk_go_on(&w, &n));
    assert_int_equal(w.slices, 0);
    repair_need_done(&n);
    repair_walk_done(&w);
}

static void test_what_is_passed(void **state)
{
    (void)state;
    struct repair_walk w = walk_new();
    assert_true(repair_walk_passed(&w, 6, "z"));
    assert_true(repair_walk_passed(&w, 7, "a"));
    assert_false(repair_walk_passed(&w, 7, "ma"));
    assert_false(repair_walk_passed(&w, 8, "a"));
    repair_walk_reach(&w, 7, "b"); /* it was there before */
    assert_true(repair_walk_passed(&w, 7, "m"));
    repair_walk_reach(&w, 8, "b");
    assert_true(repair_walk_passed(&w, 7, "z"));
    repair_walk_turn(&w);
    assert_true(w.second);
    assert_false(repair_walk_passed(&w, 1, "a"));
    repair_walk_reach(&w, REPAIR_ALL, "");
    assert_true(repair_walk_passed(&w, 1000, "z"));
    repair_walk_done(&w);
}

static void test_a_new_one_has_passed_nothing(void **state)
{
    (void)state;
    struct repair_walk w = walk_new(), none = {.watch = 0};
    struct repair_need n = need_new();
    assert_false(repair_walk_go_on(&none, &n));
    w.put_off = true;
    repair_walk_turn(&w);
    repair_walk_begin(&w, WATCH + 1, &n);
    assert_false(w.second);
    assert_false(w.put_off);
    assert_int_equal(w.slices, 0);
    assert_false(repair_walk_passed(&w, 1, ""));
    repair_walk_done(&w);
}

static void test_it_is_read_as_it_was_saved(void **state)
{
    (void)state;
    struct repair_walk w = walk_new(), read = {.watch = 0};
    struct repair_need n = need_new();
    w.put_off = true;
    repair_walk_turn(&w);
    repair_walk_reach(&w, 3, "ä\"/1");
    w.slices = 2;
    _cleanup_json_ json_t *doc = repair_walk_to_json(&w);
    assert_int_equal(repair_walk_from_json(&read, doc, NULL), 0);
    _cleanup_json_ json_t *again = repair_walk_to_json(&read);
    assert_true(json_equal(doc, again));
    assert_true(repair_walk_go_on(&read, &n));
    assert_true(repair_walk_passed(&read, 3, "ä\"/1"));
    repair_need_done(&n);
    repair_walk_done(&w);
    repair_walk_done(&read);
}

static void test_another_format_and_missing_fields_are_refused(void **state)
{
    (void)state;
    struct repair_walk w = walk_new();
    _cleanup_json_ json_t *doc = repair_walk_to_json(&w);
    const char *field;
    json_t *value;
    json_object_foreach(doc, field, value)
    {
        struct repair_walk read = {.watch = 0};
        _cleanup_json_ json_t *other = json_copy(doc);
        if (strcmp(field, "second") == 0 || strcmp(field, "put_off") == 0)
            json_object_set_new(other, field, json_string("yes"));
        else
            json_object_set_new(other, field, json_real(0.5));
        assert_int_not_equal(repair_walk_from_json(&read, other, NULL), 0);
        repair_walk_done(&read);
    }
    repair_walk_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_goes_on_while_nobody_has_lost_anything),
        cmocka_unit_test(test_else_it_begins_anew),
        cmocka_unit_test(test_two_unknowns_are_not_equal),
        cmocka_unit_test(test_damage_counts_with_the_next_run),
        cmocka_unit_test(test_slices_are_passed_only_while_nobody_moves),
        cmocka_unit_test(test_what_is_passed),
        cmocka_unit_test(test_a_new_one_has_passed_nothing),
        cmocka_unit_test(test_it_is_read_as_it_was_saved),
        cmocka_unit_test(test_another_format_and_missing_fields_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
