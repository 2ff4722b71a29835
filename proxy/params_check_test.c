/* Which values of parameters a start refuses, and a reload. */
#include "proxy/params_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* Rows: parameters and values, and a part of the message; NULL: they are fine. */
static const struct {
    const char *names[3], *values[3], *message;
} rows[] = {
    {{"dir"}, {"d"}, NULL},
    {{"dir"}, {""}, "--dir"},
    {{"log_level"}, {"loud"}, "log_level: 'loud' is none of"},
    {{"log_format"}, {"xml"}, "--log-format"},
    {{"backend_endpoints"}, {"nonsense"}, "--backend-endpoints"},
    {{"electable"}, {"false"}, "--electable=false is for a metastore in etcd"},
    {{"metastore", "join"},
     {"etcd://127.0.0.1:2379", "http://127.0.0.1:8081"},
     "--join is for an embedded metastore: leave it out, for the proxies of "
     "'etcd://127.0.0.1:2379'"},
    {{"metastore", "electable"}, {"etcd://127.0.0.1:2379", "false"}, NULL},
};

static void what_a_start_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proxy_params params = {.id = NULL};
        struct error err = ERROR_INIT;
        assert_int_equal(params_defaults(proxy_param_rows, &params, NULL), 0);
        assert_int_equal(params_set(proxy_param_rows, &params, "id", "p1", "test", NULL), 0);
        assert_int_equal(params_set(proxy_param_rows, &params, "dir", "d", "test", NULL), 0);
        for (size_t k = 0; k < 3 && rows[i].names[k] != NULL; k++)
            assert_int_equal(params_set(proxy_param_rows, &params, rows[i].names[k],
                                        rows[i].values[k], "test", NULL),
                             0);
        int code = proxy_params_try(&params, &err);
        if (rows[i].message == NULL ? code != 0
                                    : code == 0 || strstr(err.message, rows[i].message) == NULL)
            fail_msg("row %zu: %d, '%s'", i, code, err.message);
        params_free(proxy_param_rows, &params);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_a_start_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
