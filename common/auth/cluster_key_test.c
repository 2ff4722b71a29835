/* What a key file may hold, and who may own it. */
#include "common/auth/cluster_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/secret_file.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char *key_file(const char *text, mode_t mode)
{
    char *path = xstrdup("/tmp/dfc-key-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static void assert_no_key(const char *text, const char *words)
{
    struct cluster_keys keys;
    struct error err = ERROR_INIT;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, &err), E_INVALID);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
}

static void test_key_texts(void **state)
{
    (void)state;
    struct cluster_keys keys, same;
    static const char text[] = "# ours\n\n  " KEY_A "\r\n" KEY_B;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, NULL), 0);
    assert_int_equal(keys.count, 2);
    assert_int_equal(cluster_keys_parse(KEY_A, strlen(KEY_A), &same, NULL), 0);
    assert_string_equal(keys.keys[0].id, same.keys[0].id);
    assert_ptr_equal(cluster_keys_find(&keys, same.keys[0].id), &keys.keys[0]);
    assert_null(cluster_keys_find(&keys, ""));
    assert_no_key("", "no key");
    assert_no_key("# nothing\n\n", "no key");
    assert_no_key("short\n", "line 1: a key has 32");
    assert_no_key(KEY_A "\n" KEY_A " " KEY_A, "line 2: a blank");
    assert_no_key(KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A, "line 5: more than 4");
}

static void assert_file_refused(const char *path, const char *words)
{
    struct cluster_keys keys;
    struct error err = ERROR_INIT;
    assert_int_equal(cluster_keys_load(path, &keys, &err), E_INVALID);
    if (strstr(err.message, words) == NULL || strstr(err.message, path) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
}

static void test_key_files(void **state)
{
    (void)state;
    struct cluster_keys keys;
    _cleanup_free_ char *good = key_file(KEY_A "\n", 0400);
    _cleanup_free_ char *wide = key_file(KEY_A "\n", 0640);
    _cleanup_free_ char *empty = key_file("", 0600);
    assert_int_equal(cluster_keys_load(good, &keys, NULL), 0);
    assert_file_refused(wide, "mode is 640");
    assert_file_refused(empty, "no key");
    assert_file_refused("/tmp", "not a file");
    unlink(good);
    assert_file_refused(good, "No such file");
    unlink(wide);
    unlink(empty);
}

static void test_owners_and_modes(void **state)
{
    (void)state;
    static const struct {
        uid_t owner, self;
        mode_t mode;
        bool good;
    } rows[] = {
        {1000, 1000, 0600, true},  {1000, 1000, 0400, true},  {1000, 1000, 0640, false},
        {1000, 1000, 0604, false}, {1001, 1000, 0600, false}, {0, 0, 0600, true},
        {0, 0, 0440, false},       {0, 1000, 0440, true},     {0, 1000, 0640, true},
        {0, 1000, 0460, false},    {0, 1000, 0444, false},    {1001, 0, 0600, true},
        {1001, 0, 0640, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code =
            secret_file_check_mode(rows[i].owner, S_IFREG | rows[i].mode, rows[i].self, NULL);
        assert_int_equal(code, rows[i].good ? 0 : E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_texts),
        cmocka_unit_test(test_key_files),
        cmocka_unit_test(test_owners_and_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
