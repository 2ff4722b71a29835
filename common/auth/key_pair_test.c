#include "common/auth/key_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void keys_are_two_lines_or_a_document(void **state)
{
    (void)state;
    static const char *const good[] = {
        "A\nS\n",
        "A\nS",
        "\n  A \r\n\tS\r\n",
        "{\"access_key\": \"A\", \"secret_key\": \"S\", \"endpoint\": \"http://h:1\"}\n",
    };
    static const char *const bad[] = {"",
                                      "\n",
                                      "A",
                                      "A\n",
                                      "A\n\n",
                                      "{}",
                                      "{\"access_key\": \"A\"}",
                                      "{\"access_key\": 1, \"secret_key\": \"S\"}",
                                      "{"};
    struct key_pair k;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(key_pair_parse(good[i], strlen(good[i]), &k, NULL), 0);
        assert_string_equal(k.access_key, "A");
        assert_string_equal(k.secret_key, "S");
        key_pair_done(&k);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(key_pair_parse(bad[i], strlen(bad[i]), &k, NULL), 0);
        assert_null(k.access_key);
        assert_null(k.secret_key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_two_lines_or_a_document)};
    return cmocka_run_group_tests_name("key_pair", tests, NULL, NULL);
}
