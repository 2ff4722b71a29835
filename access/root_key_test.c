#include "access/root_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define ACCESS "DFC4AAAAAAAAAAAAAAA1"
#define SECRET "abcdefghijklmnopqrstuvwxyzABCDEF0123+/-_"

static void keys_have_their_lengths_and_letters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says; /* NULL: taken */
    } rows[] = {
        {ACCESS "\n" SECRET "\n", NULL},
        {"{\"access_key\": \"" ACCESS "\", \"secret_key\": \"" SECRET "\"}", NULL},
        {ACCESS "X\n" SECRET "\n", "21 characters"},
        {"dfc4AAAAAAAAAAAAAAA1\n" SECRET "\n", "capital letters"},
        {ACCESS "\n" SECRET "x\n", "41 characters"},
        {ACCESS "\nshort\n", "5 characters"},
        {ACCESS "\nabcdefghijklmnopqrstuvwxyzABCDEF0123+/-=\n", "or others"},
        {ACCESS "\n", "secret key"},
        {"", "no keys"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct root_key key;
        struct error err = ERROR_INIT;
        int r = root_key_parse(rows[i].text, strlen(rows[i].text), &key, &err);
        assert_int_equal(r == 0, rows[i].says == NULL);
        if (r != 0) {
            assert_non_null(strstr(err.message, rows[i].says));
            continue;
        }
        assert_string_equal(key.access, ACCESS);
        assert_string_equal(key.secret, SECRET);
    }
}

static void others_cannot_read_the_file(void **state)
{
    (void)state;
    char path[] = "/tmp/dfc-root-key-XXXXXX";
    struct root_key key;
    struct error err = ERROR_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, ACCESS "\n" SECRET, sizeof(ACCESS "\n" SECRET) - 1),
                     sizeof(ACCESS "\n" SECRET) - 1);
    assert_int_equal(root_key_load(path, &key, &err), 0);
    assert_string_equal(key.secret, SECRET);
    root_key_wipe(&key);
    assert_int_equal(key.secret[0], 0);
    assert_int_equal(fchmod(fd, 0644), 0);
    assert_int_equal(root_key_load(path, &key, &err), E_INVALID);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "chmod"));
    close(fd);
    unlink(path);
    assert_int_equal(root_key_load(path, &key, &err), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_their_lengths_and_letters),
        cmocka_unit_test(others_cannot_read_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
