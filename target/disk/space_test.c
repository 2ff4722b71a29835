#include "target/disk/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct space_limits limits = {.low = 75, .high = 90, .out = 95, .reserve_bytes = 10};

static struct space used(uint64_t percent)
{
    return (struct space){.total = 1000, .available = 1000 - 10 * percent};
}

static enum space_state state_at(uint64_t percent, enum space_state before)
{
    const struct space s = used(percent);
    return space_state(&limits, &s, before);
}

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(state_at(0, SPACE_FINE), SPACE_FINE);
    assert_int_equal(state_at(90, SPACE_FINE), SPACE_FINE);
    assert_int_equal(state_at(91, SPACE_FINE), SPACE_HIGH);
    assert_int_equal(state_at(95, SPACE_FINE), SPACE_HIGH);
    assert_int_equal(state_at(96, SPACE_FINE), SPACE_OUT);
    assert_int_equal(state_at(100, SPACE_HIGH), SPACE_OUT);
}

static void test_steps(void **state)
{
    (void)state;
    static const struct space_steps steps = {.first = 4, .most = 16},
                                    odd = {.first = 5, .most = 16},
                                    swapped = {.first = 64, .most = 16};
    static const uint64_t ends[] = {4,  4,  4,  4,  8,  8,  8,  8,  16, 16, 16,
                                    16, 16, 16, 16, 16, 32, 32, 32, 32, 32, 32,
                                    32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 48};
    for (uint64_t at = 0; at < sizeof ends / sizeof ends[0]; at++)
        assert_int_equal(space_step_end(&steps, at), ends[at]);
    assert_int_equal(space_step_end(&odd, 10), 16);
    assert_int_equal(space_step_end(&odd, 15), 16);
    assert_int_equal(space_step_end(&odd, 16), 32);
    assert_int_equal(space_step_end(&swapped, 0), 16);
    assert_int_equal(space_step_end(&steps, INT64_MAX), (uint64_t)INT64_MAX + 1);
}

/* A disk that goes up and down around a limit is not warned of again and again. */
static void test_a_warning_ends_at_low(void **state)
{
    (void)state;
    assert_int_equal(state_at(89, SPACE_HIGH), SPACE_HIGH);
    assert_int_equal(state_at(94, SPACE_OUT), SPACE_HIGH);
    assert_int_equal(state_at(76, SPACE_OUT), SPACE_HIGH);
    assert_int_equal(state_at(75, SPACE_HIGH), SPACE_FINE);
    assert_int_equal(state_at(80, SPACE_FINE), SPACE_FINE);
}

static int admit(const struct space_limits *l, uint64_t percent, uint64_t size, struct error *err)
{
    const struct space s = used(percent);
    *err = ERROR_INIT;
    return space_admit(l, "/d1", &s, size, err);
}

static void test_admission(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(admit(&limits, 94, 0, &err), 0);
    assert_int_equal(admit(&limits, 94, 10, &err), 0);
    assert_int_equal(admit(&limits, 94, 11, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "'/d1' is 94% full"));
    assert_non_null(strstr(err.message, "space_out (95%)"));
    assert_non_null(strstr(err.message, "delete"));
    assert_int_equal(admit(&limits, 96, 0, &err), E_NO_SPACE);
}

static int admit_known(uint64_t available, uint64_t reserve, uint64_t size, struct error *err)
{
    const struct space_limits l = {.low = 75, .high = 90, .out = 95, .reserve_bytes = reserve};
    const struct space s = {.total = 1000, .available = available};
    *err = ERROR_INIT;
    return space_admit_known(&l, "/d1", &s, size, err);
}

static void test_known_objects_take_half_of_the_reserve(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(admit_known(32, 40, 12, &err), 0); /* above space_out, too */
    assert_int_equal(admit_known(32, 40, 13, &err), E_NO_SPACE);
    assert_non_null(strstr(err.message, "kept for deletions (space_reserve)"));
    assert_int_equal(admit_known(19, 40, 0, &err), E_NO_SPACE);
    assert_int_equal(admit_known(31, 4000, 1, &err), E_NO_SPACE); /* 62: a sixteenth of all */
    assert_int_equal(admit_known(32, 4000, 1, &err), 0);
    assert_int_equal(admit_known(0, 0, 8, &err), 0); /* nothing is kept: the disk says */
}

static void test_the_reserve_is_left_whatever_the_percentages(void **state)
{
    (void)state;
    struct error err;
    const struct space_limits all = {.low = 98, .high = 99, .out = 100, .reserve_bytes = 10};
    assert_int_equal(admit(&all, 98, 10, &err), 0);
    assert_int_equal(admit(&all, 98, 11, &err), E_NO_SPACE);
    assert_non_null(
        strstr(err.message, "20 B left, 10 B of it reserved (space_reserve), and 11 B"));
    const struct space_limits none = {.reserve_bytes = 10};
    assert_int_equal(admit(&none, 98, 10, &err), 0);
    assert_int_equal(admit(&none, 99, 1, &err), E_NO_SPACE);
    /* On a small disk it is smaller. */
    const struct space_limits large = {.reserve_bytes = 1000000};
    assert_int_equal(admit(&large, 90, 38, &err), 0);
    assert_int_equal(admit(&large, 90, 39, &err), E_NO_SPACE);
}

static void test_limits_must_grow(void **state)
{
    (void)state;
    static const unsigned bad[][3] = {
        {90, 90, 95}, {75, 95, 95}, {95, 90, 75}, {75, 90, 101}, {0, 0, 0}};
    assert_int_equal(space_limits_check(&limits, NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = ERROR_INIT;
        const struct space_limits l = {.low = bad[i][0], .high = bad[i][1], .out = bad[i][2]};
        assert_int_equal(space_limits_check(&l, &err), E_INVALID);
    }
}

static void test_percent(void **state)
{
    (void)state;
    const struct space huge = {.total = UINT64_MAX, .available = UINT64_MAX / 2};
    const struct space empty = {0};
    assert_int_equal(space_percent(&huge), 50);
    assert_int_equal(space_percent(&empty), 0);
    assert_int_equal(space_state(&limits, &empty, SPACE_FINE), SPACE_FINE);
}

static void test_room(void **state)
{
    (void)state;
    struct error err;
    for (uint64_t percent = 0; percent <= 100; percent += 5) {
        const struct space s = used(percent);
        uint64_t room = space_room(&limits, &s);
        assert_int_equal(room, percent < 95 ? 950 - 10 * percent : 0);
        assert_int_equal(admit(&limits, percent, room, &err), percent <= 95 ? 0 : E_NO_SPACE);
        assert_int_equal(admit(&limits, percent, room + 1, &err), E_NO_SPACE);
    }
    const struct space_limits reserve_alone = {.reserve_bytes = 500};
    const struct space half = used(50);
    assert_int_equal(space_room(&reserve_alone, &half), 500 - 1000 / 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_a_warning_ends_at_low),
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_known_objects_take_half_of_the_reserve),
        cmocka_unit_test(test_the_reserve_is_left_whatever_the_percentages),
        cmocka_unit_test(test_limits_must_grow),
        cmocka_unit_test(test_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
