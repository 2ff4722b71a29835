/* What servers of images are told, and what they refuse. */
#include "mount/image/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_values(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"url", "dfc://images/a/b.vdsc"},
        {"endpoint", "http://h:1"},
        {"insecure", "true"},
        {"parallel", "3"},
        {"buffer-size", "8MiB"},
        {"cache-free", "0"},
    };
    struct image_settings s = image_settings_default;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(image_settings_take(&s, words[i][0], words[i][1], &err), 0);
    assert_string_equal(s.bucket, "images");
    assert_string_equal(s.key, "a/b.vdsc");
    assert_string_equal(s.endpoint, "http://h:1");
    assert_true(s.insecure == 1 && s.parallel == 3 && s.cache_free_percent == 0);
    const struct objects_options o = image_settings_objects(&s);
    assert_true(o.buffer_bytes == 8u << 20 && o.fetchers == 3);
    assert_int_equal(image_settings_take(&s, "url", "dfc://all/", &err), 0);
    assert_string_equal(s.bucket, "all");
    assert_null(s.key);
    image_settings_done(&s);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"url", "images/a.vdsc", "is not dfc://BUCKET"},
        {"url", "dfc:///a.vdsc", "is not dfc://BUCKET"},
        {"url", "dfc://", "is not dfc://BUCKET"},
        {"parallel", "0", "out of range"},
        {"parallel", "many", "parallel=many"},
        {"insecure", "2", "out of range"},
        {"buffer-size", "1MiB", "out of range"},
        {"colour", "red", "no parameter 'colour'"},
        {"", "", "no parameter ''"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct image_settings s = image_settings_default;
        struct error err = ERROR_INIT;
        assert_int_not_equal(image_settings_take(&s, rows[i][0], rows[i][1], &err), 0);
        if (strstr(err.message, rows[i][2]) == NULL)
            fail_msg("row %zu: %s", i, err.message);
        image_settings_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
