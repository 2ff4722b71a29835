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
    assert_int_equal(o.directory_mode, 0555);
    assert_false(o.writable);
    assert_int_equal(o.buffer_bytes, 300 << 20);
    assert_int_equal(o.attr_ttl_ms, 1000);
    assert_int_equal(o.entry_ttl_ms, 1000);
    assert_int_equal(o.dump_every_ms, 3600000);
    assert_int_equal(o.dump_keep, 48);
    assert_int_equal(parse(&o, &err, WORDS("umount", "/mnt")), 0);
    assert_string_equal(o.verb, "umount");
    assert_int_equal(parse(&o, &err, WORDS("info", "/mnt/a")), 0);
    assert_string_equal(o.directory, "/mnt/a");
    assert_int_equal(parse(&o, &err, WORDS("warmup", "/a", "--check", "/b")), 0);
    assert_int_equal(o.path_count, 2);
    assert_string_equal(o.paths[0], "/a");
    assert_string_equal(o.paths[1], "/b");
    assert_null(o.paths[2]);
    assert_true(o.check);
}

static void dumps_may_be_never_and_not_none(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_equal(parse(&o, &err, WORDS("mount", "memory://", "/mnt", "--dump-every=0")), 0);
    assert_int_equal(o.dump_every_ms, 0);
    assert_int_equal(parse(&o, &err, WORDS("mount", "memory://", "/mnt", "--dump-keep=0")),
                     E_INVALID);
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
    assert_int_equal(o.attr_ttl_ms, 0);
    assert_string_equal(o.endpoint, "http://h:1");
}

static void a_writable_mount_has_other_modes(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_equal(parse(&o, &err, WORDS("mount", "dfc://a", "/mnt", "--writable")), 0);
    assert_true(o.writable);
    assert_int_equal(o.file_mode, 0644);
    assert_int_equal(o.directory_mode, 0755);
    assert_int_equal(
        parse(&o, &err, WORDS("mount", "dfc://a", "/mnt", "--writable", "--file-mode=0600")), 0);
    assert_int_equal(o.file_mode, 0600);
}

static void a_volume_refuses_what_it_does_not_do(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_equal(
        parse(&o, &err, WORDS("mount", "sqlite3:///v.db", "/mnt", "--writable", "--uploads=2")), 0);
    assert_int_equal(parse(&o, &err, WORDS("mount", "redis://h/0", "/mnt", "--cache-dir=/c")), 0);
    assert_int_equal(
        parse(&o, &err, WORDS("mount", "dfc://a", "/mnt", "--writable", "--part-size=8MiB")), 0);
    assert_int_not_equal(parse(&o, &err, WORDS("mount", "redis://h/0", "/mnt", "--part-size=8MiB")),
                         0);
    assert_string_equal(err.message, "--part-size is not for volumes: omit it");
    assert_int_not_equal(parse(&o, &err, WORDS("mount", "redis://h/0", "/mnt", "--uid", "1")), 0);
    assert_int_equal(parse(&o, &err, WORDS("mount", "redis://h/0", "/mnt", "--read-only")), 0);
    assert_true(o.read_only);
}

static void expect_error(const char *const *words, const char *said)
{
    struct options o;
    struct error err = ERROR_INIT;
    assert_int_not_equal(parse(&o, &err, words), 0);
    if (strstr(err.message, said) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
}

static void an_image_has_modes(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    const char *image = "dfc://a/b.vdsc";
    assert_int_equal(parse(&o, &err, WORDS("mount-image", image, "/m")), 0);
    assert_false(options_by_tcmu(&o));
    assert_int_equal(parse(&o, &err, WORDS("mount-image", image, "/m", "--mode=fuse")), 0);
    assert_false(options_by_tcmu(&o));
    assert_int_equal(parse(&o, &err, WORDS("mount-image", image, "/m", "--mode=tcmu")), 0);
    assert_true(options_by_tcmu(&o));
    assert_int_not_equal(parse(&o, &err, WORDS("mount-image", image, "/m", "--mode=ublk")), 0);
    assert_non_null(strstr(err.message, "expected fuse or tcmu"));
    assert_int_not_equal(parse(&o, &err, WORDS("mount", "dfc://a", "/m", "--mode=tcmu")), 0);
    assert_non_null(strstr(err.message, "for images alone"));
}

static void a_flag_that_does_nothing_is_refused(void **state)
{
    (void)state;
    struct options o;
    struct error err = ERROR_INIT;
    const char *const writing[] = {"--part-size=8MiB", "--write-buffer=1GiB", "--write-wait=1s"};
    const char *const caching[] = {"--cache-size=1GiB", "--cache-free=5", "--cache-idle=1h"};
    for (size_t i = 0; i < 3; i++) {
        expect_error(WORDS("mount", "dfc://a", "/m", writing[i]), " needs --writable");
        assert_int_equal(parse(&o, &err, WORDS("mount-plogs", "dfc://a", "/m", writing[i])), 0);
        expect_error(WORDS("mount", "dfc://a", "/m", caching[i]), " needs --cache-dir");
        expect_error(WORDS("mount", "redis://h/0", "/m", caching[i]), " needs --cache-dir");
        expect_error(WORDS("mount-image", "dfc://a/b", "/m", caching[i]), " needs --cache-dir");
        assert_int_equal(
            parse(&o, &err, WORDS("mount", "dfc://a", "/m", "--cache-dir=/c", caching[i])), 0);
    }
    assert_int_equal(parse(&o, &err, WORDS("mount", "redis://h/0", "/m", "--write-buffer=1GiB")),
                     0);
    expect_error(WORDS("mount", "dfc://a", "/m", "--group-key-file=/k"), "needs --cache-group");
    expect_error(WORDS("mount", "dfc://a", "/m", "--dump-every=0"), "needs a volume");
    expect_error(WORDS("mount-image", "dfc://a/b", "/m", "--dump-keep=2"), "needs a volume");
    expect_error(WORDS("mount-plogs", "dfc://a", "/m", "--dump-keep=2"), "needs a volume");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_error(WORDS("mount", "dfc://a"), "expected 'mount");
    expect_error(WORDS("umount"), "expected 'umount DIR'");
    expect_error(WORDS("remount", "/mnt"), "no command 'remount': expected 'mount");
    expect_error(WORDS(NULL), "a command is missing");
    expect_error(WORDS("warmup"), "expected 'warmup PATH…' or --list FILE");
    expect_error(WORDS("stats", "/a", "/b"), "'/b' is one word too many");
    expect_error(WORDS("gc"), "expected 'gc META-URL'");
    expect_error(WORDS("info", "/mnt", "/more"), "'/more' is one word too many");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "/more"), "'/more' is one word too many");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--no-such"), "no flag --no-such");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--uid"), "--uid needs a value");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--foreground=1"), "takes no value");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--buffer-size=1MiB"), "out of range");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--part-size=1MiB"), "out of range");
    expect_error(WORDS("mount", "dfc://a", "/m", "--writable", "--write-buffer=8MiB"), "raise");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--buffer-size=x"), "--buffer-size");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--file-mode=0888"), "not a mode");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--file-mode=4755"), "out of range");
    expect_error(WORDS("mount", "dfc://a", "/mnt", "--writable", "--read-only"), "exclude");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(dumps_may_be_never_and_not_none),
        cmocka_unit_test(flags_may_be_anywhere),
        cmocka_unit_test(a_writable_mount_has_other_modes),
        cmocka_unit_test(a_volume_refuses_what_it_does_not_do),
        cmocka_unit_test(an_image_has_modes),
        cmocka_unit_test(a_flag_that_does_nothing_is_refused),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
