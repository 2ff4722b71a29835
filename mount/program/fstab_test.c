#include "mount/program/fstab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define WORDS(...) ((const char *const[]){"mount.dfc", __VA_ARGS__, NULL})

static int count(const char *const *words)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    return n;
}

static void expect(const char *const *words, bool fake, const char *const *wanted)
{
    struct fstab_words w;
    struct error err = ERROR_INIT;
    assert_int_equal(fstab_parse(count(words), (char *const *)words, &w, &err), 0);
    assert_int_equal(w.fake, fake);
    assert_int_equal(w.argc, count(wanted));
    for (int i = 0; i < w.argc; i++)
        assert_string_equal(w.argv[i], wanted[i]);
    assert_null(w.argv[w.argc]);
    fstab_done(&w);
}

#define BECOMES(...) ((const char *const[]){"dfc-mount", "mount", __VA_ARGS__, NULL})

static void a_line_becomes_a_command(void **state)
{
    (void)state;
    expect(WORDS("dfc://b", "/mnt"), false, BECOMES("dfc://b", "/mnt"));
    expect(WORDS("dfc://b", "/mnt", "-o", "rw"), false, BECOMES("dfc://b", "/mnt", "--writable"));
    expect(WORDS("dfc://b", "/mnt", "-sv", "-t", "dfc", "-o",
                 "ro,_netdev,x-systemd.automount,allow_other,endpoint=http://a_b:1,attr_ttl=1h"),
           false,
           BECOMES("dfc://b", "/mnt", "--read-only", "--allow-other", "--endpoint=http://a_b:1",
                   "--attr-ttl=1h"));
    expect(WORDS("-fn", "dfc://b", "/mnt", "-N", "/ns"), true, BECOMES("dfc://b", "/mnt"));
    expect(WORDS("dfc://b", "/mnt", "-o", ",,"), false, BECOMES("dfc://b", "/mnt"));
}

static void a_remount_changes_who_may_write(void **state)
{
    (void)state;
    struct fstab_words w;
    struct error err = ERROR_INIT;
    const char *const words[] = {"mount.dfc", "-o", "rw,nosuid,user_id=0,ro,remount",
                                 "dfc://b",   "/m", NULL};
    assert_int_equal(fstab_parse(5, (char *const *)words, &w, &err), 0);
    assert_true(w.remount && w.read_only);
    assert_string_equal(w.directory, "/m");
    fstab_done(&w);
    assert_int_not_equal(fstab_parse(4, (char *const *)words, &w, &err), 0);
    assert_non_null(strstr(err.message, "needs the directory"));
    fstab_done(&w);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct fstab_words w;
    struct error err = ERROR_INIT;
    const char *const no_value[] = {"mount.dfc", "dfc://b", "/mnt", "-o", NULL};
    assert_int_not_equal(fstab_parse(4, (char *const *)no_value, &w, &err), 0);
    assert_non_null(strstr(err.message, "-o needs a value"));
    fstab_done(&w);
    const char *const unknown[] = {"mount.dfc", "-x", NULL};
    assert_int_not_equal(fstab_parse(2, (char *const *)unknown, &w, &err), 0);
    assert_non_null(strstr(err.message, "'-x' is none of"));
    fstab_done(&w);
}

static void the_name_tells_the_helper(void **state)
{
    (void)state;
    assert_true(fstab_is_helper("/sbin/mount.dfc"));
    assert_true(fstab_is_helper("mount.fuse.dfc"));
    assert_false(fstab_is_helper("/usr/bin/dfc-mount"));
    assert_false(fstab_is_helper("/mount.dfc/dfc-mount"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_becomes_a_command),
        cmocka_unit_test(a_remount_changes_who_may_write),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_name_tells_the_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
