#include "mount/program/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int parse(struct options *o, struct error *err, const char *const *words)
{
    char *argv[16] = {(char *)"dfc-mount"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)words[argc - 1];
    return options_parse(o, argc, argv, 7, 8, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_is_not_said_has_a_default(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_equal(parse(&o, &err, WORDS("mount", "dfc://a/b", "/mnt")), 0);
    assert_string_equal(o.verb, "mount");
    assert_string_equal(o.url, "dfc://a/b");
    assert_string_equal(o.directory, "/mnt");
    assert_int_equal(o.uid, 7);
    assert_int_equal(o.gid, 8);
    assert_int_equal(o.file_mode, 0444);
    assert_int_equal(o.buffer_bytes, 300 << 20);
    assert_int_equal(o.ttl_ms, 1000);
    assert_int_equal(parse(&o, &err, WORDS("umount", "/mnt")), 0);
    assert_string_equal(o.verb, "umount");
}

static void flags_may_be_anywhere(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_equal(
        parse(&o, &err,
              WORDS("--buffer-size=64MiB", "mount", "--uid", "5", "dfc://a", "--file-mode=0640",
                    "/mnt", "--allow-other", "--attr-ttl", "0", "--endpoint=http://h:1")),
        0);
    assert_int_equal(o.buffer_bytes, 64 << 20);
    assert_int_equal(o.uid, 5);
    assert_int_equal(o.file_mode, 0640);
    assert_true(o.allow_other);
    assert_int_equal(o.ttl_ms, 0);
    assert_string_equal(o.endpoint, "http://h:1");
}

static void expect_error(const char *const *words, const char *said)
{
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_not_equal(parse(&o, &err, words), 0);
    if (strstr(err.message, said) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_error(WORDS("mount", "dfc://a"), "expected 'mount");
    expect_error(WORDS("umount"), "expected 'mount");
    expect_error(WORDS("remount", "/mnt"), "expected 'mount");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "/more"), "'/more' is one word too many");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--no-such"), "no flag --no-such");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--uid"), "--uid needs a value");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--foreground=1"), "takes no value");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--buffer-size=1MiB"), "out of range");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--buffer-size=x"), "--buffer-size");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--file-mode=0888"), "not a mode");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--file-mode=4755"), "out of range");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(flags_may_be_anywhere),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
