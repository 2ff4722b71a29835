#include "s3/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct row {
    struct s3_field header;
    enum s3_error error;
} rows[] = {
    {{"Content-Type", "text/plain"}, S3_OK},
    {{"x-amz-meta-acl", "public-read"}, S3_OK},
    {{"x-amz-request-payer", "requester"}, S3_OK},
    {{"X-Amz-Acl", "private"}, S3_OK},
    {{"x-amz-acl", "bucket-owner-full-control"}, S3_OK},
    {{"x-amz-acl", "public-read"}, S3_ACL_NOT_SUPPORTED},
    {{"x-amz-acl", "privat"}, S3_ACL_NOT_SUPPORTED},
    {{"x-amz-acl", "private|bucket-owner-full-control"}, S3_ACL_NOT_SUPPORTED},
    {{"x-amz-acl", ""}, S3_ACL_NOT_SUPPORTED},
    {{"X-Amz-Grant-Read", "id=\"x\""}, S3_ACL_NOT_SUPPORTED},
    {{"x-amz-storage-class", "STANDARD"}, S3_OK},
    {{"x-amz-storage-class", "GLACIER"}, S3_INVALID_STORAGE_CLASS},
    {{"x-amz-server-side-encryption", "AES256"}, S3_NOT_IMPLEMENTED},
    {{"x-amz-server-side-encryption-customer-key", "x"}, S3_NOT_IMPLEMENTED},
    {{"x-amz-object-lock-mode", "COMPLIANCE"}, S3_NOT_IMPLEMENTED},
    {{"x-amz-bucket-object-lock-enabled", "false"}, S3_OK},
    {{"x-amz-bucket-object-lock-enabled", "true"}, S3_NOT_IMPLEMENTED},
    {{"x-amz-expected-bucket-owner", "111122223333"}, S3_NOT_IMPLEMENTED},
    {{"x-amz-bypass-governance-retention", "true"}, S3_OK}, // no object is locked
};

static void what_is_not_done_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct s3_field headers[] = {{"host", "h"}, rows[i].header};
        const struct s3_request r = {.headers = headers, .header_count = 2};
        struct s3_failure why = {S3_OK, ""};
        assert_int_equal(s3_headers_check(&r, &why), rows[i].error);
        if (rows[i].error != S3_OK)
            assert_non_null(strstr(why.message, rows[i].header.name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_done_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
