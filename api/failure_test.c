#include "api/failure.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void replies_of_the_contract(void **state)
{
    (void)state;
    struct dfc_error err;
    const char *body =
        "{\"status\": 404, \"code\": \"bucket_not_found\", \"message\": \"bucket 'x' "
        "does not exist\", \"node\": \"t3\", \"request_id\": \"r-1\"}";
    assert_int_equal(failure_reply(&err, 404, body, strlen(body)), DFC_NOT_FOUND);
    assert_int_equal(err.status, 404);
    assert_string_equal(err.code, "bucket_not_found");
    assert_string_equal(err.message, "bucket 'x' does not exist");
    assert_string_equal(err.node, "t3");
    assert_string_equal(err.request_id, "r-1");
}

static void replies_of_others(void **state)
{
    (void)state;
    struct dfc_error err;
    const char *page = "<h1>Bad\tGateway</h1>\r\n<p>";
    assert_int_equal(failure_reply(&err, 502, page, strlen(page)), DFC_UNREACHABLE);
    assert_string_equal(err.code, "http_502");
    assert_string_equal(err.message, "HTTP status 502: <h1>BadGateway</h1>");
    const char *s3 = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>";
    assert_int_equal(failure_reply(&err, 404, s3, strlen(s3)), DFC_NOT_FOUND);
    assert_non_null(strstr(err.message, "404: the reply is XML, as that of an S3 port"));
    assert_int_equal(failure_reply(&err, 418, NULL, 0), DFC_FAILED);
    assert_string_equal(err.message, "HTTP status 418");
    assert_int_equal(failure_reply(&err, 404, "{\"code\": 7}", 11), DFC_NOT_FOUND);
    assert_string_equal(err.code, "http_404");
    assert_int_equal(failure_reply(&err, 500, "[1]", 3), DFC_FAILED);
    char longer[5000];
    memset(longer, 'y', sizeof longer);
    failure_reply(&err, 500, longer, sizeof longer);
    assert_in_range(strlen(err.message), 200, 300);
    assert_int_equal(failure_reply(NULL, 401, page, strlen(page)), DFC_DENIED);
}

static void local_failures(void **state)
{
    (void)state;
    struct dfc_error err;
    assert_int_equal(failure_errno(&err, ENOSPC, "write '%s'", "f"), DFC_LOCAL);
    assert_string_equal(err.code, "no_space");
    assert_string_equal(err.message, "write 'f': No space left on device");
    assert_int_equal(failure_errno(NULL, EIO, "x"), DFC_LOCAL);
    assert_int_equal(failure_set(NULL, DFC_CORRUPT, E_CHECKSUM, "x"), DFC_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_of_the_contract),
        cmocka_unit_test(replies_of_others),
        cmocka_unit_test(local_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
