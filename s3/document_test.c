/* The documents that have no decisions of their own: <Delete>, <CompleteMultipartUpload>,
 * <CreateBucketConfiguration>. */
#include "s3/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "s3/uploads/complete_body.h"
#include "s3/delete_body.h"
#include "s3/location.h"

#define DELETE(inside) \
    "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" inside "</Delete>"
#define COMPLETE(inside) "<CompleteMultipartUpload>" inside "</CompleteMultipartUpload>"
#define PART(number, etag) "<Part><PartNumber>" number "</PartNumber><ETag>" etag "</ETag></Part>"

struct row {
    const char *body;
    enum s3_error error;
};

static void keys_to_delete(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_delete d;
    static const char body[] =
        DELETE("<Quiet>true</Quiet><Object><Key>a/b&amp;c</Key></Object>\n <Object>"
               "<VersionId>null</VersionId><Key> d </Key><ETag>\"e\"</ETag></Object>");
    assert_int_equal(s3_delete_parse(body, sizeof body - 1, a, &d, NULL), S3_OK);
    assert_true(d.is_quiet);
    assert_int_equal(d.count, 2);
    assert_string_equal(d.keys[0].key, "a/b&c");
    assert_null(d.keys[0].version);
    assert_string_equal(d.keys[1].key, " d ");
    assert_string_equal(d.keys[1].version, "null");
    assert_string_equal(d.keys[1].etag, "\"e\"");
}

static void deletes_that_are_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"", S3_MALFORMED_XML},
        {"<Delete/>", S3_MALFORMED_XML},
        {"<Deletes><Object><Key>a</Key></Object></Deletes>", S3_MALFORMED_XML},
        {DELETE("<Object></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key></Key></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key>a</Key><Key>b</Key></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key>a</Key><Kay>b</Kay></Object>"), S3_MALFORMED_XML},
        {DELETE("<Key>a</Key>"), S3_MALFORMED_XML},
        {DELETE("<Object><ETag>e</ETag></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key>a</Key><ETag>e&#13;&#10;Range: x</ETag></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key>a</Key><If><ETag>e</ETag></If></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key><Key>a</Key></Key></Object>"), S3_MALFORMED_XML},
        {DELETE("<Quiet>maybe</Quiet><Object><Key>a</Key></Object>"), S3_MALFORMED_XML},
        {DELETE("<Object><Key>a</Key><Size>1</Size></Object>"), S3_NOT_IMPLEMENTED},
        {DELETE("<Object><Key>a</Key></Object>") "<x/>", S3_MALFORMED_XML},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_delete d;
        assert_int_equal(s3_delete_parse(rows[i].body, strlen(rows[i].body), a, &d, NULL),
                         rows[i].error);
    }
}

static void a_request_deletes_at_most_1000_keys(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf body = BUF_INIT;
    struct s3_delete d;
    buf_puts(&body, "<Delete>");
    for (int i = 0; i < S3_DELETE_MAX; i++)
        buf_printf(&body, "<Object><Key>%d</Key></Object>", i);
    size_t len = body.len;
    buf_puts(&body, "</Delete>");
    assert_int_equal(s3_delete_parse(body.data, body.len, a, &d, NULL), S3_OK);
    assert_int_equal(d.count, S3_DELETE_MAX);
    assert_string_equal(d.keys[999].key, "999");
    body.len = len;
    buf_puts(&body, "<Object><Key>one more</Key></Object></Delete>");
    assert_int_equal(s3_delete_parse(body.data, body.len, a, &d, NULL), S3_MALFORMED_XML);
}

static void parts_to_complete(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_complete c;
    static const char body[] = COMPLETE(
        PART("1", "&quot;e1&quot;") "<Part><ChecksumCRC32>AAAAAA==</ChecksumCRC32>"
                                    "<ETag>e2</ETag><PartNumber>10000</PartNumber></Part>");
    assert_int_equal(s3_complete_parse(body, sizeof body - 1, a, &c, NULL), S3_OK);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.parts[0].number, 1);
    assert_string_equal(c.parts[0].etag, "\"e1\"");
    assert_false(c.parts[0].has_sum);
    assert_int_equal(c.parts[1].number, 10000);
    assert_true(c.parts[1].has_sum);
    assert_int_equal(c.parts[1].sum.type, S3_SUM_CRC32);
}

static void completes_that_are_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {COMPLETE(""), S3_MALFORMED_XML},
        {COMPLETE("<Part><PartNumber>1</PartNumber></Part>"), S3_MALFORMED_XML},
        {COMPLETE("<Part><ETag>e</ETag></Part>"), S3_MALFORMED_XML},
        {COMPLETE(PART("x", "e")), S3_MALFORMED_XML},
        {COMPLETE(PART("0", "e")), S3_INVALID_PART},
        {COMPLETE(PART("10001", "e")), S3_INVALID_PART},
        {COMPLETE(PART("1", "e") PART("1", "e")), S3_INVALID_PART_ORDER},
        {COMPLETE(PART("2", "e") PART("1", "e")), S3_INVALID_PART_ORDER},
        {COMPLETE("<Part><PartNumber>1</PartNumber><ETag>e</ETag>"
                  "<ChecksumSHA1>AAAA</ChecksumSHA1></Part>"),
         S3_INVALID_REQUEST},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_complete c;
        assert_int_equal(s3_complete_parse(rows[i].body, strlen(rows[i].body), a, &c, NULL),
                         rows[i].error);
    }
}

#define LOCATION(inside) "<CreateBucketConfiguration>" inside "</CreateBucketConfiguration>"

static void what_is_not_done_is_named(void **unused)
{
    (void)unused;
    static const char body[] = LOCATION("<Location><Name>a</Name></Location>");
    struct s3_failure why;
    assert_int_equal(s3_location_check(body, sizeof body - 1, "eu-west-3", &why),
                     S3_NOT_IMPLEMENTED);
    assert_string_equal(why.message, "The element Name in Location is not supported");
}

static void locations(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"", S3_OK},
        {LOCATION(""), S3_OK},
        {LOCATION("<LocationConstraint/>"), S3_OK},
        {LOCATION("<LocationConstraint>eu-west-3</LocationConstraint>"), S3_OK},
        {LOCATION("<LocationConstraint>mars</LocationConstraint>"), S3_INVALID_LOCATION},
        {LOCATION("<Location><Name>a</Name></Location>"), S3_NOT_IMPLEMENTED},
        {LOCATION("<Where>a</Where>"), S3_MALFORMED_XML},
        {"rubbish", S3_MALFORMED_XML},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(s3_location_check(rows[i].body, strlen(rows[i].body), "eu-west-3", NULL),
                         rows[i].error);
}

static void where_a_bucket_is(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf here = BUF_INIT, there = BUF_INIT;
    s3_location_document("us-east-1", &here);
    assert_non_null(strstr(buf_str(&here), "2006-03-01/\"></LocationConstraint>"));
    s3_location_document("eu-west-3", &there);
    assert_non_null(strstr(buf_str(&there), "\">eu-west-3</LocationConstraint>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_to_delete),
        cmocka_unit_test(deletes_that_are_refused),
        cmocka_unit_test(a_request_deletes_at_most_1000_keys),
        cmocka_unit_test(parts_to_complete),
        cmocka_unit_test(completes_that_are_refused),
        cmocka_unit_test(what_is_not_done_is_named),
        cmocka_unit_test(locations),
        cmocka_unit_test(where_a_bucket_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
