#include "mount/cached/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static int load(struct cached_params *p, const char *const *words, struct error *err)
{
    char *argv[8] = {(char *)"dfc-cached"};
    bool help;
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)words[argc - 1];
    int rc = params_load(cached_param_rows, p, argc, argv, &help, err);
    return rc != 0 ? rc : cached_params_check(p, err);
}

static void what_is_missing_is_named(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct cached_params p = {0};
    assert_int_equal(load(&p, (const char *[]){"--cache-dir=/c", NULL}, &err), E_INVALID);
    assert_non_null(strstr(err.message, "--group "));
    params_free(cached_param_rows, &p);
    p = (struct cached_params){0};
    assert_int_equal(load(&p, (const char *[]){"--group=g", NULL}, &err), E_INVALID);
    assert_non_null(strstr(err.message, "--cache-dir "));
    params_free(cached_param_rows, &p);
}

static uint64_t weight_of(const char *size, const char *weight)
{
    struct error err = ERROR_INIT;
    struct cached_params p = {0};
    const char *const words[] = {"--group=g", "--cache-dir=/c", size, weight, NULL};
    assert_int_equal(load(&p, words, &err), 0);
    assert_true(p.id[0] != '\0');
    uint64_t found = p.weight;
    params_free(cached_param_rows, &p);
    return found;
}

static void a_weight_is_the_size_in_gib(void **unused)
{
    (void)unused;
    assert_int_equal(weight_of("--cache-size=16MiB", "--weight=0"), 1);
    assert_int_equal(weight_of("--cache-size=2TiB", "--weight=0"), 2048);
    assert_int_equal(weight_of("--cache-size=2TiB", "--weight=7"), 7);
    assert_int_equal(weight_of("--cache-size=2TiB", "--weight=4294967295"), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_weight_is_the_size_in_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
