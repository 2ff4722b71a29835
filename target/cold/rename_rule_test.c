#include "target/cold/rename_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum what { NONE, OBJECT, PENDING, GRAVE, PENDING_GRAVE };

static struct object_held held_of(enum what what, uint64_t counter)
{
    return (struct object_held){.found = what != NONE,
                                .visible = what == OBJECT || what == PENDING,
                                .pending = what == PENDING || what == PENDING_GRAVE,
                                .version.counter = what != NONE ? counter : 0};
}

static void ways(void **unused)
{
    (void)unused;
    static const struct {
        enum what here, earlier; /* the earlier one's is the newer */
        bool fresh;
        enum rename_way way;
    } rows[] = {
        {NONE, NONE, true, RENAME_THERE},
        {OBJECT, NONE, true, RENAME_HERE},
        {OBJECT, NONE, false, RENAME_THERE},
        {GRAVE, NONE, true, RENAME_THERE},
        {PENDING, NONE, true, RENAME_HERE},
        {PENDING, NONE, false, RENAME_HERE},
        {PENDING_GRAVE, NONE, true, RENAME_NOTHING},
        {NONE, OBJECT, true, RENAME_THERE},
        {OBJECT, OBJECT, true, RENAME_THERE},
        {NONE, PENDING, true, RENAME_THERE},
        {PENDING, PENDING_GRAVE, true, RENAME_THERE},
        {PENDING, GRAVE, true, RENAME_THERE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct object_held here = held_of(rows[i].here, 5), earlier = held_of(rows[i].earlier, 6);
        assert_int_equal(rename_way(&here, &earlier, rows[i].fresh), rows[i].way);
        earlier.version.counter = 5; /* it has come here, and is still there */
        if (rows[i].here == OBJECT && rows[i].earlier == OBJECT)
            assert_int_equal(rename_way(&here, &earlier, true), RENAME_HERE);
    }
}

static void patience(void **unused)
{
    (void)unused;
    const struct rename_patience p = {.call_ms = 10, .try_ms = 100, .tries = 3};
    assert_int_equal(rename_copy_ms(&p, 0), 10 + 4 * 300);
    assert_int_equal(rename_copy_ms(&p, (64 << 20) - 1), 10 + 4 * 300);
    assert_int_equal(rename_copy_ms(&p, (uint64_t)5 << 30), 10 + (4 + 80) * 300);
    const struct rename_patience most = {
        .call_ms = UINT64_MAX, .try_ms = UINT64_MAX, .tries = UINT64_MAX};
    assert_int_equal(rename_copy_ms(&most, UINT64_MAX), RENAME_COPY_MAX_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways), cmocka_unit_test(patience)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
