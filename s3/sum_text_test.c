#include "s3/sum_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void texts(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        bool is_one, is_known;
    } rows[] = {
        {"CRC32C", true, false},
        {"CRC32C:yZRlqg==", true, true},
        {"CRC32:yZRlqg==", true, true},
        {"CRC64NVME:AAAAAAAAAAA=", true, true},
        {"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", true, true},
        {"CRC32C:", false, false},
        {"CRC32C:yZRlqg", false, false},
        {"CRC32C:yZRlqg== ", false, false},
        {"CRC64NVME:yZRlqg==", false, false},
        {"crc32c", false, false},
        {"CRC3", false, false},
        {"CRC32CC", false, false},
        {":yZRlqg==", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct s3_sum_text t;
        char again[S3_SUM_TEXT_MAX];
        if (s3_sum_text_parse(rows[i].text, &t) != rows[i].is_one)
            fail_msg("row %zu", i);
        if (!rows[i].is_one)
            continue;
        assert_int_equal(t.is_known, rows[i].is_known);
        assert_string_equal(s3_sum_text_print(&t, again), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
