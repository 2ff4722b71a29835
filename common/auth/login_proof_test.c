#include "common/auth/login_proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Computed with Python's hmac and hashlib. */
static void test_the_proof_is_that_of_another_implementation(void **state)
{
    (void)state;
    char hex[AUTH_HEX_MAX];
    login_proof("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY00", "DFC4JEXAMPLE01234567", 1700000000000,
                "00112233445566778899aabbccddeeff", hex);
    assert_string_equal(hex, "42bc5000b875afaa270a1c03642c6fa926701a26466112dc3e10f0660acabcf4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_proof_is_that_of_another_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
