#include "s3/acl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define OWNER "<Owner><ID>olga</ID></Owner>"
#define GRANT(grantee, permission)                                                 \
    "<Grant><Grantee>" grantee "</Grantee><Permission>" permission "</Permission>" \
    "</Grant>"
#define ACL(grants)                                                                   \
    "<AccessControlPolicy>" OWNER "<AccessControlList>" grants "</AccessControlList>" \
    "</AccessControlPolicy>"

static void what_is_written_changes_nothing(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf out = BUF_INIT;
    const struct s3_owner olga = {"olga", "Olga & Co"};
    s3_acl_document(&olga, &out);
    assert_int_equal(s3_acl_check(out.data, out.len, "olga", NULL), S3_OK);
    assert_int_equal(s3_acl_check(out.data, out.len, "anna", NULL), S3_ACL_NOT_SUPPORTED);
}

static void bodies(void **unused)
{
    (void)unused;
    static const struct {
        const char *body;
        enum s3_error error;
    } rows[] = {
        {ACL(GRANT("<ID>olga</ID>", "FULL_CONTROL")), S3_OK},
        {ACL(GRANT("<ID>anna</ID>", "FULL_CONTROL")), S3_ACL_NOT_SUPPORTED},
        {ACL(GRANT("<ID>olga</ID>", "READ")), S3_ACL_NOT_SUPPORTED},
        {ACL(GRANT("<ID>olga</ID>", "FULL_CONTROL") GRANT("<ID>anna</ID>", "READ")),
         S3_ACL_NOT_SUPPORTED},
        {ACL(GRANT("<URI>http://acs.amazonaws.com/groups/global/AllUsers</URI>", "READ")),
         S3_ACL_NOT_SUPPORTED},
        {ACL(GRANT("<EmailAddress>a@b</EmailAddress>", "READ")), S3_ACL_NOT_SUPPORTED},
        {ACL(""), S3_ACL_NOT_SUPPORTED},
        {"<AccessControlPolicy/>", S3_ACL_NOT_SUPPORTED},
        {ACL(GRANT("<Name>olga</Name>", "FULL_CONTROL")), S3_MALFORMED_XML},
        {"<Tagging/>", S3_MALFORMED_XML},
        {"", S3_MALFORMED_XML},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(s3_acl_check(rows[i].body, strlen(rows[i].body), "olga", NULL),
                         rows[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_changes_nothing),
        cmocka_unit_test(bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
