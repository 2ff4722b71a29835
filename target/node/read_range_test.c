#include "target/node/read_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIZE = 1000 };

struct row {
    const char *range, *if_range, *offset, *length;
    uint64_t size;
    int code;
    int status;
    uint64_t want_offset, want_length;
};

static void test_every_way_to_ask(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {NULL, NULL, NULL, NULL, SIZE, 0, 200, 0, SIZE},
        {"bytes=0-9", NULL, NULL, NULL, SIZE, 0, 206, 0, 10},
        {"bytes=990-2000", NULL, NULL, NULL, SIZE, 0, 206, 990, 10},
        {"bytes=-1", NULL, NULL, NULL, SIZE, 0, 206, 999, 1},
        {"bytes=1000-", NULL, NULL, NULL, SIZE, E_RANGE, 0, 0, 0},
        {"bytes=0-1,3-4", NULL, NULL, NULL, SIZE, 0, 200, 0, SIZE},
        {"nonsense", NULL, NULL, NULL, SIZE, 0, 200, 0, SIZE},
        {"bytes=0-9", "\"1.2.3\"", NULL, NULL, SIZE, 0, 206, 0, 10},
        {"bytes=0-9", "\"1.2.4\"", NULL, NULL, SIZE, 0, 200, 0, SIZE},  /* changed: the whole */
        {"bytes=0-9", "\"d41d8cd9\"", NULL, NULL, SIZE, 0, 206, 0, 10}, /* its MD5 */
        {NULL, NULL, "0", "10", SIZE, 0, 206, 0, 10},
        {NULL, NULL, "10", NULL, SIZE, 0, 206, 10, 990},
        {NULL, NULL, NULL, "10", SIZE, 0, 206, 0, 10},
        {NULL, NULL, "999", "18446744073709551615", SIZE, 0, 206, 999, 1},
        {NULL, NULL, "1000", "1", SIZE, E_RANGE, 0, 0, 0},
        {NULL, NULL, "0", "0", SIZE, E_RANGE, 0, 0, 0},
        {NULL, NULL, "-1", NULL, SIZE, E_INVALID, 0, 0, 0},
        {NULL, NULL, "1", "x", SIZE, E_INVALID, 0, 0, 0},
        {"bytes=0-9", NULL, "5", "1", SIZE, 0, 206, 5, 1}, /* the query goes first */
        {"bytes=0-0", NULL, NULL, NULL, 0, E_RANGE, 0, 0, 0},
        {NULL, NULL, "0", "10", 0, 0, 200, 0, 0},
        {NULL, NULL, "1", NULL, 0, E_RANGE, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        const struct read_question q = {.range = r->range,
                                        .if_range = r->if_range,
                                        .offset = r->offset,
                                        .length = r->length,
                                        .size = r->size,
                                        .etag = "\"1.2.3\"",
                                        .md5 = "d41d8cd9"};
        struct read_range got;
        assert_int_equal(read_range_pick(&q, &got, NULL), r->code);
        if (r->code != 0)
            continue;
        assert_int_equal(got.status, r->status);
        assert_int_equal(got.offset, r->want_offset);
        assert_int_equal(got.length, r->want_length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_way_to_ask)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
