#include "common/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"

static const int codes[] = {
#define ERROR(id, http, code, sentence) id,
#include "common/error.def"
#undef ERROR
};

enum { CODES = sizeof codes / sizeof codes[0] };

static void every_row_is_found_by_code_and_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        assert_int_equal(error_from_name(error_name(codes[i])), codes[i]);
        assert_in_range(error_status(codes[i]), 300, 599);
        assert_string_not_equal(error_text(codes[i]), "");
    }
    assert_int_equal(error_status(E_NO_SPACE), 507);
    assert_string_equal(error_name(E_BUCKET_NOT_FOUND), "bucket_not_found");
}

static void names_are_words_that_stand_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        const char *name = error_name(codes[i]);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(name, error_name(codes[k]));
    }
}

static void codes_are_negative_and_never_an_errno(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++)
        assert_true(codes[i] < -4095);
}

static void strange_codes_are_internal(void **state)
{
    (void)state;
    static const int strange[] = {-1, 1, -EIO, E_FIRST_, E_END_, E_END_ + 7, -20000};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        assert_string_equal(error_name(strange[i]), "internal");
        assert_string_equal(error_text(strange[i]), "");
        assert_int_equal(error_status(strange[i]), 500);
    }
    assert_int_equal(error_from_name("no_such_name"), 0);
    assert_int_equal(error_from_name(""), 0);
}

static void what_is_forgiven_leaves_nothing(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_int_equal(error_forgive(&err, error_set(&err, E_NET, "x"), E_TIMEOUT), E_NET);
    assert_int_equal(err.code, E_NET);
    assert_int_equal(error_forgive(&err, E_NET, E_NET), 0);
    assert_int_equal(err.code, 0);
    assert_int_equal(error_forgive(NULL, E_NET, E_NET), 0);
    assert_int_equal(error_forgive(&err, 0, E_NET), 0);
}

static void zero_is_ok(void **state)
{
    (void)state;
    assert_string_equal(error_name(0), "ok");
    assert_int_equal(error_status(0), 200);
}

static void context_grows_outward(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_int_equal(error_errno(&err, ENOSPC, "write '%s'", "/d2/x"), E_NO_SPACE);
    assert_int_equal(error_wrap(&err, "put '%s/%s'", "b", "o"), E_NO_SPACE);
    assert_int_equal(err.code, E_NO_SPACE);
    assert_string_equal(err.message, "put 'b/o': write '/d2/x': No space left on device");
}

static void errnos_have_codes(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_errno(&err, EDQUOT, "x"), E_NO_SPACE);
    assert_int_equal(error_errno(&err, EMFILE, "x"), E_OVERLOAD);
    assert_int_equal(error_errno(&err, ENOMEM, "x"), E_NOMEM);
    assert_int_equal(error_errno(&err, EIO, "x"), E_IO);
    assert_int_equal(error_errno(&err, ENOENT, "x"), E_IO);
    assert_int_equal(error_errno(NULL, ENOSPC, "x"), E_NO_SPACE);
}

static void set_replaces_and_recode_changes_the_code(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    error_set(&err, E_IO, "old");
    assert_int_equal(error_set(&err, E_NET, "cut after %d bytes", 7), E_NET);
    assert_string_equal(err.message, "cut after 7 bytes");
    assert_int_equal(error_recode(&err, E_TIMEOUT, "node '%s'", "t1"), E_TIMEOUT);
    assert_int_equal(err.code, E_TIMEOUT);
    assert_string_equal(err.message, "node 't1': cut after 7 bytes");
}

static void nobody_need_care_for_the_words(void **state)
{
    (void)state;
    struct error empty = ERROR_INIT;
    assert_int_equal(error_set(NULL, E_IO, "x"), E_IO);
    assert_int_equal(error_recode(NULL, E_NET, "x"), E_NET);
    assert_int_equal(error_wrap(NULL, "x"), E_INTERNAL);
    assert_int_equal(error_wrap(&empty, "x"), E_INTERNAL);
}

static void the_table_has_every_row_in_the_order_of_the_status(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf table = BUF_INIT;
    errors_markdown(&table);
    int last = 0, rows = 0;
    for (const char *at = strstr(buf_str(&table), "\n| 3"); at != NULL;
         at = strstr(at + 1, "\n| ")) {
        int status = (int)strtol(at + 3, NULL, 10);
        assert_true(status >= last);
        last = status;
        rows++;
    }
    assert_int_equal(rows, E_END_ - E_FIRST_ - 1);
    assert_non_null(strstr(buf_str(&table), "\n| 404 | `bucket_not_found` | the bucket does not "
                                            "exist |\n"));
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error_set(&err, E_IO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_errno(&err, EIO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_set(&err, E_IO, "inner");
    error_wrap(&err, "outer");
    assert_string_equal(err.message, "outer: inner");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found_by_code_and_by_name),
        cmocka_unit_test(names_are_words_that_stand_once),
        cmocka_unit_test(codes_are_negative_and_never_an_errno),
        cmocka_unit_test(strange_codes_are_internal),
        cmocka_unit_test(what_is_forgiven_leaves_nothing),
        cmocka_unit_test(zero_is_ok),
        cmocka_unit_test(context_grows_outward),
        cmocka_unit_test(errnos_have_codes),
        cmocka_unit_test(set_replaces_and_recode_changes_the_code),
        cmocka_unit_test(nobody_need_care_for_the_words),
        cmocka_unit_test(the_table_has_every_row_in_the_order_of_the_status),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
