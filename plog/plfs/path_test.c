#include "plog/plfs/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_paths(void **state)
{
    static const struct {
        const char *path, *mount, *bucket, *key; /* bucket NULL: refused */
    } rows[] = {
        {"/plfs/b/a/f", "/plfs", "b", "a/f"},
        {"plfs:/plfs/b/f", "/plfs", "b", "f"},
        {"plfs:dfc://b/f", "/plfs", "b", "f"},
        {"dfc://b/a/f", "/plfs", "b", "a/f"},
        {"dfc://b", "/plfs", "b", ""},
        {"/plfs/b", "/plfs", "b", ""},
        {"/plfs/b/", "/plfs/", "b", ""},
        {"/plfs//b/./a///f/", "/plfs//", "b", "a/f"},
        {"/b/f", "/", "b", "f"},
        {"/plfs/b/..f/...", "/plfs", "b", "..f/..."},
        {"/plfs", "/plfs", NULL, NULL},
        {"/plfs/", "/plfs", NULL, NULL},
        {"/plfsx/b/f", "/plfs", NULL, NULL},
        {"/other/b/f", "/plfs", NULL, NULL},
        {"plfs/b/f", "/plfs", NULL, NULL},
        {"/plfs/b/../c", "/plfs", NULL, NULL},
        {"dfc://", "/plfs", NULL, NULL},
        {"", "/plfs", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_plfs_path_ struct plfs_path p;
        assert_int_equal(plfs_path_parse(rows[i].path, rows[i].mount, &p), rows[i].bucket != NULL);
        if (rows[i].bucket != NULL) {
            assert_string_equal(p.bucket, rows[i].bucket);
            assert_string_equal(p.key, rows[i].key);
        }
    }
}

static void test_long_names(void **state)
{
    char path[1100] = "dfc://b/";
    struct plfs_path p;
    (void)state;
    memset(path + 8, 'x', 1024);
    path[8 + 1024] = '\0';
    assert_true(plfs_path_parse(path, "/plfs", &p));
    plfs_path_done(&p);
    path[8 + 1024] = 'x';
    path[8 + 1025] = '\0';
    assert_false(plfs_path_parse(path, "/plfs", &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
