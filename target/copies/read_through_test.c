/* Which replies of another target are not the object that owners were compared for. */
#include "target/copies/read_through.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "target/format/version.h"

static void only_the_version_that_was_compared_is_passed_on(void **unused)
{
    (void)unused;
    const struct version wanted = {.term = 2, .map = 9, .counter = 7};
    const struct version later = {.term = 2, .map = 9, .counter = 8};
    char same[VERSION_TEXT_MAX];
    char other[VERSION_TEXT_MAX];
    version_format(&wanted, same);
    version_format(&later, other);
    const struct {
        const struct version *wanted;
        int status;
        const char *sent;
        bool gone;
    } rows[] = {
        {NULL, 200, other, false},   {NULL, 200, NULL, false},    {NULL, 404, NULL, true},
        {NULL, 503, NULL, false},    {&wanted, 200, same, false}, {&wanted, 206, same, false},
        {&wanted, 200, other, true}, {&wanted, 206, other, true}, {&wanted, 200, NULL, true},
        {&wanted, 200, "?", true},   {&wanted, 304, NULL, false}, {&wanted, 416, NULL, false},
        {&wanted, 404, NULL, true},  {&wanted, 503, other, true}, {NULL, 404, same, false},
        {&wanted, 404, same, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(read_through_is_gone(rows[i].wanted, rows[i].status, rows[i].sent),
                         rows[i].gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_version_that_was_compared_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
