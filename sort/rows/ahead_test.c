/* What comes out of a thread that reads ahead is what its source gives. */
#include "sort/rows/ahead.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"

/* Rows 0, 1, 2, … whose names are of all lengths; then the end, or an error. */
struct numbers {
    uint64_t count;
    uint64_t next;
    uint64_t longest; /* name, bytes */
    int rc;
    atomic_ulong given;
    char *name;
};

static size_t length_of(const struct numbers *n, uint64_t i)
{
    return 1 + (size_t)(i * 7919 % n->longest);
}

static char letter_of(uint64_t i)
{
    return (char)('a' + i % 26);
}

static int numbers_next(void *ctx, struct sort_row *row, struct error *err)
{
    struct numbers *n = ctx;
    if (n->next == n->count)
        return n->rc < 0
                   ? error_set(err, n->rc, "row %llu is not to be had", (unsigned long long)n->next)
                   : 0;
    *row = (struct sort_row){.name = n->name,
                             .name_len = (uint32_t)length_of(n, n->next),
                             .position = (uint32_t)n->next,
                             .size = SORT_BLOCK};
    memset(n->name, letter_of(n->next), row->name_len); /* what the row before had is gone */
    n->next++;
    atomic_fetch_add(&n->given, 1);
    return 1;
}

static struct ahead *begin(struct numbers *n)
{
    struct ahead *a = NULL;
    n->name = xmalloc((size_t)n->longest);
    const struct row_source source = {.next = numbers_next, .ctx = n};
    assert_int_equal(ahead_new("test", source, &a, NULL), 0);
    return a;
}

static void check_row(const struct numbers *n, const struct sort_row *row, uint64_t i)
{
    assert_int_equal(row->position, i);
    assert_int_equal(row->name_len, length_of(n, i));
    assert_int_equal(row->name[0], letter_of(i));
    assert_int_equal(row->name[row->name_len - 1], letter_of(i));
}

/* Takes all of it, and asks once more. */
static void check_all(uint64_t count, uint64_t longest, int rc)
{
    struct numbers n = {.count = count, .longest = longest, .rc = rc};
    struct ahead *a = begin(&n);
    struct row_source rows = ahead_rows(a);
    struct sort_row row;
    struct error err = ERROR_INIT;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(rows.next(rows.ctx, &row, &err), 1);
        check_row(&n, &row, i);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rows.next(rows.ctx, &row, &err), rc);
        assert_int_equal(err.code, rc);
        assert_true(rc == 0 || strstr(err.message, "is not to be had") != NULL);
    }
    ahead_free(a);
    free(n.name);
}

static void test_rows_come_in_order(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 1023, 1024, 1025, 3072, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_all(counts[i], 20, 0);
        check_all(counts[i], 20, E_CORRUPT);
    }
    check_all(300, ROW_NAME_MAX, 0);
}

/* One row of each is out when the next one of another is read. */
static void test_a_name_lives_until_the_next_call(void **state)
{
    (void)state;
    struct numbers n = {.count = 5000, .longest = 50};
    struct ahead *a = begin(&n);
    struct row_source rows = ahead_rows(a);
    struct sort_row row;
    for (uint64_t i = 0; i < n.count; i++) {
        assert_int_equal(rows.next(rows.ctx, &row, NULL), 1);
        if (i % 1024 == 1023) { /* the last of a batch: the thread fills others meanwhile */
            while (atomic_load(&n.given) < n.count && atomic_load(&n.given) < i + 1 + 2 * 1024)
                sched_yield();
        }
        check_row(&n, &row, i);
    }
    ahead_free(a);
    free(n.name);
}

static void test_leaving_early(void **state)
{
    (void)state;
    for (unsigned taken = 0; taken < 3000; taken += 500) {
        struct numbers n = {.count = UINT32_MAX, .longest = 20};
        struct ahead *a = begin(&n);
        struct row_source rows = ahead_rows(a);
        struct sort_row row;
        for (unsigned i = 0; i < taken; i++)
            assert_int_equal(rows.next(rows.ctx, &row, NULL), 1);
        ahead_free(a);
        assert_true(n.next < n.count);
        free(n.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_in_order),
        cmocka_unit_test(test_a_name_lives_until_the_next_call),
        cmocka_unit_test(test_leaving_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
