#include "common/id_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    uint64_t id;
    int value;
};

static void test_rows_are_in_order_and_once(void **state)
{
    (void)state;
    static const uint64_t ids[] = {5, 0, UINT64_MAX, 3, 5, 4, 0};
    static const uint64_t wanted[] = {0, 3, 4, 5, UINT64_MAX};
    struct row *rows = NULL;
    size_t count = 0;
    bool found;
    assert_int_equal(id_rows_place(rows, count, sizeof *rows, 1, &found), 0);
    assert_false(found);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        size_t at = id_rows_place(rows, count, sizeof *rows, ids[i], &found);
        if (!found)
            rows = id_rows_insert(rows, &count, sizeof *rows, at, ids[i]);
        assert_true(rows[at].id == ids[i]);
        assert_int_equal(rows[at].value, found ? 1 : 0);
        rows[at].value = 1;
    }
    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].id == wanted[i]);
        assert_int_equal(rows[i].value, 1);
    }
    assert_int_equal(id_rows_place(rows, count, sizeof *rows, 6, &found), 4);
    assert_false(found);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_in_order_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
