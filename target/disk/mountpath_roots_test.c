/* Which paths may become mountpaths. */
#include "target/disk/mountpath_roots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "io/file.h"

static char *top; /* below it: disks/mp1, disks/deep, other, link -> other, disks/out -> ../other */

static char *at(const char *name)
{
    return xprintf("%s/%s", top, name);
}

static void assert_check(const char *roots, const char *mountpaths, const char *path, int code,
                         const char *real)
{
    _cleanup_free_ char *full = path[0] == '/' ? xstrdup(path) : at(path);
    _cleanup_free_ char *in_roots = roots[0] != '\0' ? at(roots) : xstrdup("");
    _cleanup_free_ char *in_use = mountpaths[0] != '/' ? at(mountpaths) : xstrdup(mountpaths);
    _cleanup_free_ char *got = NULL;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *in_force = mountpath_roots_in_force(in_roots, in_use);
    if (mountpath_roots_check(in_force, full, true, &got, &err) != code)
        fail_msg("'%s': %s", full, err.message);
    if (real != NULL) {
        _cleanup_free_ char *wanted = at(real);
        assert_string_equal(got, wanted);
    }
}

static void test_the_parents_of_those_in_use(void **state)
{
    (void)state;
    assert_check("", "disks/mp1", "disks/mp2", 0, "disks/mp2");
    assert_check("", "disks/mp1", "disks/mp1", 0, "disks/mp1");
    assert_check("", "disks/mp1/", "disks/mp2//", 0, "disks/mp2");
    assert_check("", "disks/mp1", "disks/deep/mp", 0, "disks/deep/mp");
    assert_check("", "disks/mp1", "disks/deep/new/mp", E_NOT_FOUND, NULL);
    assert_check("", "disks/mp1", "disks", E_INVALID, NULL);
    assert_check("", "disks/mp1", "other/mp", E_INVALID, NULL);
    assert_check("", "disks/mp1", "disks/../other/mp", E_INVALID, NULL);
    assert_check("", "disks/mp1", "disks/out/mp", E_INVALID, NULL);
    assert_check("", "disks/mp1", "disks/out", E_INVALID, NULL);
    assert_check("", "disks/mp1", "disks/new/..", E_NOT_FOUND, NULL);
    assert_check("", "/mp1", "other/mp", E_INVALID, NULL); /* not all of the machine */
}

static void test_the_roots_that_are_named(void **state)
{
    (void)state;
    assert_check("other", "disks/mp1", "other/mp", 0, "other/mp");
    assert_check("other", "disks/mp1", "link/mp", 0, "other/mp");
    assert_check("link", "disks/mp1", "other/mp", 0, "other/mp");
    assert_check("other", "disks/mp1", "disks/mp2", E_INVALID, NULL);
    assert_check("absent", "disks/mp1", "disks/mp2", E_INVALID, NULL);
    assert_check("othe", "disks/mp1", "other/mp", E_INVALID, NULL);
    _cleanup_free_ char *two = xprintf("%s/absent , %s/other", top, top);
    _cleanup_free_ char *path = at("other/mp");
    _cleanup_free_ char *real = NULL;
    assert_int_equal(mountpath_roots_check(two, path, true, &real, NULL), 0);
    free(steal(real));
    assert_int_equal(mountpath_roots_check("/", path, true, &real, NULL), 0);
}

static void assert_in_force(const char *roots, const char *mountpaths, const char *wanted)
{
    _cleanup_free_ char *got = mountpath_roots_in_force(roots, mountpaths);
    assert_string_equal(got, wanted);
}

/* As `--mountpaths=disk1,disk2` of a target that is started in a directory of its own. */
static void test_relative_ones_begin_at_the_working_directory(void **state)
{
    (void)state;
    _cleanup_free_ char *before = realpath(".", NULL);
    _cleanup_free_ char *disks = at("disks");
    _cleanup_free_ char *both = xprintf("%s,%s", top, disks);
    _cleanup_free_ char *next = at("mp2");
    _cleanup_free_ char *real = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(chdir(top), 0);
    assert_in_force("", "mp1, mp3", top);
    assert_in_force("", "mp1,disks/mp1,/x", both);
    assert_in_force("disks", "mp1", disks);
    assert_in_force("/", "mp1", "/");
    assert_in_force("", "/mp1", "");
    assert_int_equal(mountpath_roots_check(top, next, true, &real, &err), 0);
    assert_int_equal(mountpath_roots_check(both, "/usr/mp", true, &real, &err), E_INVALID);
    assert_non_null(strstr(err.message, both));
    assert_int_equal(chdir(before), 0);
}

/* A typing error, or a disk that is not mounted. */
static void test_an_absent_directory_is_created_on_demand_only(void **state)
{
    (void)state;
    char *real = NULL;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *root = at("other");
    _cleanup_free_ char *absent = at("other/mp");
    _cleanup_free_ char *outside = at("disks/mp2");
    assert_int_equal(mountpath_roots_check(root, absent, false, &real, &err), E_NOT_FOUND);
    assert_non_null(strstr(err.message, "does not exist: mount the disk first"));
    assert_non_null(strstr(err.message, "--create"));
    assert_int_equal(mountpath_roots_check(root, outside, false, &real, NULL), E_INVALID);
    assert_null(real);
    assert_int_equal(mountpath_roots_check(top, root, false, &real, NULL), 0);
    assert_string_equal(real, root);
    free(real);
}

static void test_texts_that_are_no_paths(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "mp", "./mp", "/\n", "/tmp/a\x7f", "/tmp/a\tb", "/"};
    char *real = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mountpath_roots_check("/", bad[i], true, &real, NULL), E_INVALID);
    assert_null(real);
}

static int make_tree(void **state)
{
    (void)state;
    static const char *const dirs[] = {"disks/mp1", "disks/deep", "other"};
    char pattern[] = "/tmp/dfc-roots-test-XXXXXX";
    top = realpath(mkdtemp(pattern), NULL);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        _cleanup_free_ char *dir = at(dirs[i]);
        assert_int_equal(file_mkdirs(dir, 0700, NULL), 0);
    }
    _cleanup_free_ char *link = at("link");
    _cleanup_free_ char *out = at("disks/out");
    return symlink("other", link) == 0 ? symlink("../other", out) : -1;
}

static int remove_tree(void **state)
{
    (void)state;
    int code = file_remove_tree(top, NULL);
    free(top);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_parents_of_those_in_use),
        cmocka_unit_test(test_the_roots_that_are_named),
        cmocka_unit_test(test_relative_ones_begin_at_the_working_directory),
        cmocka_unit_test(test_an_absent_directory_is_created_on_demand_only),
        cmocka_unit_test(test_texts_that_are_no_paths),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
