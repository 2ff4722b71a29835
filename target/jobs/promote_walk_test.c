/* Which files a promotion sees, and that no link leads it out. */
#include "target/jobs/promote_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

static char root[] = "/tmp/dfc-promote-XXXXXX";

static void make(const char *path)
{
    _cleanup_free_ char *full = xprintf("%s/%s", root, path);
    int fd = open(full, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void make_dir(const char *path)
{
    _cleanup_free_ char *full = xprintf("%s/%s", root, path);
    assert_int_equal(mkdir(full, 0700), 0);
}

static void make_link(const char *to, const char *path)
{
    _cleanup_free_ char *full = xprintf("%s/%s", root, path);
    assert_int_equal(symlink(to, full), 0);
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    make_dir("in");
    make_dir("in/deep");
    make_dir("in/empty");
    make("in/a");
    make("in/deep/b");
    make("outside");
    make_link("../outside", "in/link");
    make_link("in", "way");
    return 0;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

struct seen {
    size_t files, others;
    bool a, b, outside, link;
};

static int see_files(void *ctx, int dir, const char *below, char *const *names, size_t n,
                     struct error *err)
{
    struct seen *s = ctx;
    (void)dir;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        _cleanup_free_ char *path = xprintf("%s%s", below, names[i]);
        s->files++;
        s->a |= strcmp(path, "a") == 0;
        s->b |= strcmp(path, "deep/b") == 0;
        s->outside |= strcmp(path, "outside") == 0;
    }
    return 0;
}

static void see_other(void *ctx, const char *below, const char *name, const struct error *err)
{
    struct seen *s = ctx;
    s->others++;
    s->link |= *below == '\0' && strcmp(name, "link") == 0 && err->code == E_INVALID;
}

static int walk(const char *path, struct seen *s)
{
    _cleanup_free_ char *full = xprintf("%s%s", root, path);
    const struct promote_walk w = {
        .root = root, .path = full, .files = see_files, .other = see_other, .ctx = s};
    *s = (struct seen){.files = 0};
    return promote_walk(&w, NULL);
}

static void test_files_below(void **state)
{
    (void)state;
    struct seen s;
    assert_int_equal(walk("/in", &s), 0);
    assert_int_equal(s.files, 2);
    assert_true(s.a && s.b);
    assert_int_equal(s.others, 1);
    assert_true(s.link);
    assert_int_equal(walk("", &s), 0);
    assert_int_equal(s.files, 3);
    assert_true(s.outside);
    assert_int_equal(walk("/in/empty", &s), 0);
    assert_int_equal(s.files + s.others, 0);
}

static void test_one_file(void **state)
{
    (void)state;
    struct seen s;
    assert_int_equal(walk("/in/a", &s), 0);
    assert_int_equal(s.files, 1);
    assert_true(s.a);
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct seen s;
    assert_int_equal(walk("/none", &s), 0);
    assert_int_equal(walk("/none/a", &s), 0);
    assert_int_equal(s.files + s.others, 0);
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    struct seen s;
    assert_int_equal(walk("/in/link", &s), E_INVALID);
    assert_int_equal(walk("/way/a", &s), E_INVALID);
    assert_int_equal(walk("/way", &s), E_INVALID);
    assert_int_equal(walk("/in/a/b", &s), E_INVALID);
    assert_int_equal(s.files + s.others, 0);
}

static void test_the_root_is_not_left(void **state)
{
    (void)state;
    struct seen s;
    assert_int_equal(walk("-beside", &s), E_INVALID);
    assert_string_equal(promote_walk_below("/data", "/data/a/b"), "a/b");
    assert_string_equal(promote_walk_below("/data/", "/data"), "");
    assert_string_equal(promote_walk_below("/", "/etc"), "etc");
    assert_null(promote_walk_below("/data", "/database"));
    assert_null(promote_walk_below("/data", "/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_below),          cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_nothing_there),        cmocka_unit_test(test_links_are_not_followed),
        cmocka_unit_test(test_the_root_is_not_left),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
