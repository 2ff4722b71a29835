#include "vdisc/burn_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/mem.h"

static void test_header_names(void **state)
{
    (void)state;
    const struct checksum_value sum = {.type = CHECKSUM_SHA256, .bytes = {0x01, 0xab}};
    _cleanup_free_ char *name = burn_rules_header_name("a/x.vdsc", &sum);
    assert_true(burn_rules_is_header(name, NULL));
    assert_true(burn_rules_is_header(name, "a/x.vdsc"));
    assert_false(burn_rules_is_header(name, "a/x.vds"));
    assert_false(burn_rules_is_header(name, "a/x.vdsd"));
    assert_false(burn_rules_is_header(name, "x.vdsc"));
    static const char *const others[] = {"",
                                         ".isohdr",
                                         ".0123456789abcdef.isohdr",
                                         "x0123456789abcdef.isohdr",
                                         "x.0123456789abcdeF.isohdr",
                                         "x.0123456789abcde.isohdr",
                                         "x.0123456789abcdef.isohdr2"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(burn_rules_is_header(others[i], NULL));
}

static void test_names_of_images(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const char *const images[] = {"a.vdsc", "a/b.vdsc", "a/.vdsc", ".dfc-old/a.vdsc",
                                         ".dfc-unique.vdsc"};
    static const char *const others[] = {"",
                                         "a",
                                         ".vdsc",
                                         "a.vdsc/",
                                         "a.VDSC",
                                         "a.vdsc.0123456789abcdef.isohdr",
                                         ".dfc-unique/a.vdsc",
                                         ".dfc-packs/a.vdsc",
                                         ".dfc-vdisc/burn/0123456789abcdef/a.vdsc"};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        assert_int_equal(burn_rules_check_name(images[i], &err), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(burn_rules_check_name(others[i], &err), E_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_header_names),
                                       cmocka_unit_test(test_names_of_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
