#include "target/store/lru_pick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/rng.h"

enum { OBJECTS = 500 };

static void of_nothing_nothing(void **unused)
{
    (void)unused;
    _cleanup_(lru_pick_freep)
    struct lru_pick *p = lru_pick_new(100, 10);
    size_t count = 1;
    lru_pick_finish(p, &count);
    assert_int_equal(count, 0);
}

static void the_oldest_and_no_more_than_enough(void **unused)
{
    (void)unused;
    _cleanup_(lru_pick_freep)
    struct lru_pick *p = lru_pick_new(250, 10);
    static const int64_t used[] = {50, 10, 40, 20, 30};
    for (size_t i = 0; i < 5; i++)
        lru_pick_add(p, used[i], 100, 7, "x");
    size_t count;
    const struct lru_item *items = lru_pick_finish(p, &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i].used_s, 10 * (int64_t)(i + 1));
}

static void never_more_than_the_number(void **unused)
{
    (void)unused;
    _cleanup_(lru_pick_freep)
    struct lru_pick *p = lru_pick_new(UINT64_MAX, 2);
    for (int64_t used = 9; used >= 1; used--)
        lru_pick_add(p, used, 1, 7, "x");
    size_t count;
    const struct lru_item *items = lru_pick_finish(p, &count);
    assert_int_equal(count, 2);
    assert_int_equal(items[0].used_s, 1);
    assert_int_equal(items[1].used_s, 2);
}

/* Against a look at all of them: nobody older was left out, and without the youngest of those that
 * were picked it would not be enough. */
static void against_all(void **unused)
{
    (void)unused;
    struct rng rng;
    rng_seed(&rng, 4711);
    for (unsigned round = 0; round < 200; round++) {
        uint64_t need = rng_below(&rng, 30000), sum = 0, older = 0;
        _cleanup_(lru_pick_freep)
        struct lru_pick *p = lru_pick_new(need, OBJECTS);
        struct lru_item all[OBJECTS];
        for (size_t i = 0; i < OBJECTS; i++) {
            all[i] = (struct lru_item){.used_s = (int64_t)(i * 7919 % OBJECTS),
                                       .size = rng_below(&rng, 100)};
            lru_pick_add(p, all[i].used_s, all[i].size, 1, "x");
        }
        size_t count;
        const struct lru_item *items = lru_pick_finish(p, &count);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++)
            sum += items[i].size;
        for (size_t i = 0; i < OBJECTS; i++)
            older += all[i].used_s <= items[count - 1].used_s;
        assert_int_equal(older, count);
        assert_true(sum >= need || count == OBJECTS);
        assert_true(count == 1 || sum - items[count - 1].size < need);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_nothing_nothing),
        cmocka_unit_test(the_oldest_and_no_more_than_enough),
        cmocka_unit_test(never_more_than_the_number),
        cmocka_unit_test(against_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
