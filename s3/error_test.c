#include "s3/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

static void codes_are_given_once(void **unused)
{
    (void)unused;
    for (int i = S3_OK + 1; i < S3_ERRORS; i++) {
        assert_true(s3_error_status((enum s3_error)i) >= 400);
        assert_true(s3_error_message((enum s3_error)i)[0] != '\0');
        for (int j = i + 1; j < S3_ERRORS; j++)
            assert_string_not_equal(s3_error_code((enum s3_error)i),
                                    s3_error_code((enum s3_error)j));
    }
}

static void errors_of_the_program_have_one_of_s3(void **unused)
{
    (void)unused;
    assert_int_equal(s3_error_of(0), S3_OK);
    assert_int_equal(s3_error_of(E_BUCKET_NOT_FOUND), S3_NO_BUCKET);
    assert_int_equal(s3_error_of(E_OBJECT_NOT_FOUND), S3_NO_KEY);
    assert_int_equal(s3_error_of(E_NODE_UNREACHABLE), S3_SLOW_DOWN);
    assert_int_equal(s3_error_of(E_RATE_LIMITED), S3_SLOW_DOWN);
    assert_int_equal(s3_error_of(E_QUOTA_EXCEEDED), S3_QUOTA_EXCEEDED);
    assert_int_equal(s3_error_of(E_ACCESS_DENIED), S3_ACCESS_DENIED);
    assert_int_equal(s3_error_of(E_OVERLOAD), S3_SLOW_DOWN);
    assert_int_equal(s3_error_of(E_CORRUPT), S3_INTERNAL);
    assert_int_equal(s3_error_of(E_HOST), S3_INVALID_REQUEST);
}

/* A client must never be told that a failure of the server is its own, or that all is well. */
static void the_kind_of_the_status_stays(void **unused)
{
    (void)unused;
    for (int code = E_FIRST_ + 1; code < E_END_; code++) {
        int ours = error_status(code), theirs = s3_error_status(s3_error_of(code));
        if (ours >= 500)
            assert_true(theirs >= 500);
        else
            assert_true(theirs >= 400);
    }
}

static void a_failure_has_the_message_of_its_row_or_of_its_place(void **unused)
{
    (void)unused;
    struct s3_failure why;
    assert_int_equal(s3_fail(&why, S3_NO_KEY, NULL), S3_NO_KEY);
    assert_string_equal(why.message, s3_error_message(S3_NO_KEY));
    assert_int_equal(s3_fail(&why, S3_NO_KEY, "no '%s'", "k"), S3_NO_KEY);
    assert_string_equal(why.message, "no 'k'");
    assert_int_equal(s3_fail(NULL, S3_NO_KEY, "x"), S3_NO_KEY);
}

static void documents(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf out = BUF_INIT;
    const struct s3_failure why = {S3_NO_BUCKET, "no <b>"};
    s3_error_document(&why, "/a&b", "id", &out);
    assert_string_equal(buf_str(&out),
                        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<Error><Code>NoSuchBucket</Code><Message>no &lt;b&gt;</Message>"
                        "<Resource>/a&amp;b</Resource><RequestId>id</RequestId></Error>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_given_once),
        cmocka_unit_test(errors_of_the_program_have_one_of_s3),
        cmocka_unit_test(the_kind_of_the_status_stays),
        cmocka_unit_test(a_failure_has_the_message_of_its_row_or_of_its_place),
        cmocka_unit_test(documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
