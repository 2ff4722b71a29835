#include "access/exposure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void test_which_parameters_give_which_mode(void **state)
{
    (void)state;
    static const struct {
        struct exposure_params params;
        int code;
        enum exposure mode;
        const char *says;
    } rows[] = {
        {{"127.0.0.1", "", false, ""}, 0, EXPOSURE_LOOPBACK, NULL},
        {{"::1", "", false, ""}, 0, EXPOSURE_LOOPBACK, NULL},
        {{"0.0.0.0", "", false, ""}, E_INVALID, 0, "--public-auth"},
        {{"0.0.0.0", "key", false, ""}, E_INVALID, 0, "--anonymous=all"},
        {{"10.0.0.1", "", false, "all"}, 0, EXPOSURE_ANONYMOUS, NULL},
        {{"127.0.0.1", "", false, "all"}, 0, EXPOSURE_ANONYMOUS, NULL},
        {{"10.0.0.1", "key", true, ""}, 0, EXPOSURE_AUTH, NULL},
        {{"127.0.0.1", "key", true, ""}, 0, EXPOSURE_AUTH, NULL},
        {{"127.0.0.1", "", true, ""}, E_INVALID, 0, "--cluster-key-file"},
        {{"127.0.0.1", "key", true, "all"}, E_INVALID, 0, "take one"},
        {{"127.0.0.1", "", false, "none"}, E_INVALID, 0, "'none'"},
        {{"127.0.0.1", "key", true, "", 9000}, 0, EXPOSURE_AUTH, NULL},
        {{"127.0.0.1", "key", false, "", 9000}, E_INVALID, 0, "--admin-port needs --public-auth"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        enum exposure mode = EXPOSURES;
        assert_int_equal(exposure_of(&rows[i].params, &mode, &err), rows[i].code);
        if (rows[i].code == 0)
            assert_int_equal(mode, rows[i].mode);
        else
            assert_non_null(strstr(err.message, rows[i].says));
    }
}

static void test_nodes_ask_for_proof_alike(void **state)
{
    (void)state;
    static const char *const without[] = {"", "loopback", "anonymous"};
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        assert_int_equal(exposure_check_node(EXPOSURE_LOOPBACK, "t1", without[i], &err), 0);
        assert_int_equal(exposure_check_node(EXPOSURE_ANONYMOUS, "t1", without[i], &err), 0);
        assert_int_equal(exposure_check_node(EXPOSURE_AUTH, "t1", without[i], &err), E_NODE_STATE);
    }
    assert_int_equal(exposure_check_node(EXPOSURE_AUTH, "t1", "auth", &err), 0);
    assert_int_equal(exposure_check_node(EXPOSURE_LOOPBACK, "t1", "auth", &err), E_NODE_STATE);
    assert_int_equal(exposure_check_node(EXPOSURE_ANONYMOUS, "t1", "auth", &err), E_NODE_STATE);
}

static void test_a_cluster_with_users_is_locked(void **state)
{
    (void)state;
    static const enum exposure open[] = {EXPOSURE_LOOPBACK, EXPOSURE_ANONYMOUS};
    struct error err = ERROR_INIT;
    assert_int_equal(exposure_check_users(EXPOSURE_AUTH, "p1", 3, &err), 0);
    assert_int_equal(exposure_check_users(EXPOSURE_AUTH, "p1", 0, &err), 0);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        assert_int_equal(exposure_check_users(open[i], "p1", 0, &err), 0);
        assert_int_equal(exposure_check_users(open[i], "p1", 3, &err), E_NODE_STATE);
        assert_non_null(strstr(err.message, "has users: start every node with --public-auth"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_parameters_give_which_mode),
        cmocka_unit_test(test_nodes_ask_for_proof_alike),
        cmocka_unit_test(test_a_cluster_with_users_is_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
