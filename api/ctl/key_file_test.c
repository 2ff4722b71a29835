/* Where the cluster's key is looked for. */
#include "api/ctl/key_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_flag_wins(void **state)
{
    (void)state;
    assert_string_equal(key_file_choose("/f", "/e", "http://h:1", true), "/f");
    assert_string_equal(key_file_choose("", "/e", NULL, true), ""); /* none, as was asked */
    assert_string_equal(key_file_choose(NULL, "/e", "http://h:1", true), "/e");
    assert_string_equal(key_file_choose(NULL, "/e", NULL, true), "/e");
}

static void the_local_one_is_for_this_machine(void **state)
{
    (void)state;
    static const char *const near[] = {NULL,
                                       "",
                                       "http://127.0.0.1:8080",
                                       "127.0.0.2:80",
                                       "http://localhost:1, http://LOCALHOST:2",
                                       "http://[::1]:8080/"};
    static const char *const far[] = {"http://10.0.0.1:8080",
                                      "http://127.0.0.1:1,http://h:1",
                                      "http://127.example.org:8080",
                                      "http://127.0.0.evil:8080",
                                      "http://localhost.example:1",
                                      "http://[::2]:1",
                                      "http://[::1",
                                      "http://h/127.0.0.1:1",
                                      "http://127.0.0.1.evil:1"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        assert_string_equal(key_file_choose(NULL, "", near[i], true), KEY_FILE_LOCAL);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        assert_string_equal(key_file_choose(NULL, NULL, far[i], true), "");
    assert_string_equal(key_file_choose(NULL, NULL, NULL, false), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flag_wins),
        cmocka_unit_test(the_local_one_is_for_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
