/* Documents of replies, compared with those of replies.json, which botocore has parsed
 * (tests/reference/s3_replies.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "s3/acl.h"
#include "s3/attributes.h"
#include "s3/copy_reply.h"
#include "s3/delete_reply.h"
#include "s3/location.h"
#include "s3/none.h"
#include "s3/testing/vectors.h"
#include "s3/uploads/upload_list.h"
#include "s3/uploads/upload_reply.h"

static const int64_t time_ms = 1369353600007; /* 2013-05-24 */
static const struct s3_owner alice = {"id-1", "alice & co"}, bob = {"id-2", "bob"};
static const struct s3_sum_value crc32 = {S3_SUM_CRC32, {0xcb, 0xf4, 0x39, 0x26}};
static const struct s3_object_sum whole = {{S3_SUM_CRC64NVME, {0xae, 0x8b, 0x14, 0x86}}, 0};
static const struct s3_object_sum of_parts = {{S3_SUM_CRC32, {0xcb, 0xf4, 0x39, 0x26}}, 3};
static const char *const prefixes[] = {"logs/"};

static void deleted(bool is_quiet, struct buf *out)
{
    struct s3_delete_outcome outcomes[] = {
        {.key = "a<b>", .version = NULL}, {.key = "b", .version = "null"}, {.key = "c"}};
    s3_fail(&outcomes[2].failure, S3_ACCESS_DENIED, NULL);
    s3_delete_document(outcomes, 3, is_quiet, out);
}

static void put_deleted(struct buf *out)
{
    deleted(false, out);
}

static void put_deleted_quietly(struct buf *out)
{
    deleted(true, out);
}

static void put_begun(struct buf *out)
{
    s3_upload_begun_document("bucket", "k&y", "id_-1", out);
}

static void put_completed(struct buf *out)
{
    s3_upload_completed_document(
        &(struct s3_completed){"http://h/bucket/k", "bucket", "k", "etag-3", &of_parts}, out);
}

static void put_parts(struct buf *out)
{
    const struct s3_listed_part parts[] = {{2, time_ms, "e2", 5242880, &crc32},
                                           {7, time_ms, "e7", 1, NULL}};
    const struct s3_parts list = {"bucket", "k y", alice, bob,
                                  parts,    2,     true,  {true, S3_SUM_CRC32, true}};
    s3_parts_document(&(struct s3_parts_asked){"id", 1, 2, true}, &list, out);
}

static void put_no_parts(struct buf *out)
{
    const struct s3_parts list = {.bucket = "bucket", .key = "k", .initiator = bob, .owner = bob};
    s3_parts_document(&(struct s3_parts_asked){"id", 0, 1000, false}, &list, out);
}

static void put_uploads(struct buf *out)
{
    const struct s3_listed_upload uploads[] = {{"k\x01y", "id-1", alice, bob, time_ms}};
    const struct s3_uploads list = {"bucket", uploads, 1, prefixes, 1, "k y", "id-1"};
    const struct s3_uploads_asked asked = {"p/", "/", "a b", "id-0", 2, true};
    s3_uploads_document(&asked, &list, out);
}

static void put_no_uploads(struct buf *out)
{
    s3_uploads_document(&(struct s3_uploads_asked){"", "", "", "", 1000, false},
                        &(struct s3_uploads){.bucket = "bucket"}, out);
}

static void put_copied(struct buf *out)
{
    s3_copied_document(&(struct s3_copied){time_ms, "e", &whole}, out);
}

static void put_copied_part(struct buf *out)
{
    s3_copied_part_document(&(struct s3_copied){time_ms, "e", &whole}, out);
}

static void put_attributes(struct buf *out)
{
    const struct s3_object_part rows[] = {{2, 5242880, &crc32}, {3, 1, NULL}};
    const struct s3_object_parts parts = {4, true, {1, 2}, rows, 2};
    s3_attributes_document(~0U, &(struct s3_attributes){"e-3", &of_parts, &parts, 12}, out);
}

static void put_count(struct buf *out)
{
    const struct s3_object_parts parts = {.count = 3};
    const struct s3_attributes a = {.etag = "e-3", .parts = &parts};
    s3_attributes_document(S3_ATTRIBUTE_PARTS, &a, out);
}

static void put_size(struct buf *out)
{
    s3_attributes_document(S3_ATTRIBUTE_SIZE | S3_ATTRIBUTE_CHECKSUM | S3_ATTRIBUTE_PARTS,
                           &(struct s3_attributes){.etag = "e", .size = 12}, out);
}

static void put_acl(struct buf *out)
{
    s3_acl_document(&alice, out);
}

static const struct {
    const char *name;
    void (*put)(struct buf *out);
} replies[] = {
    {"deleted", put_deleted},       {"deleted quietly", put_deleted_quietly},
    {"upload begun", put_begun},    {"upload completed", put_completed},
    {"parts", put_parts},           {"no parts", put_no_parts},
    {"uploads", put_uploads},       {"no uploads", put_no_uploads},
    {"copied", put_copied},         {"part copied", put_copied_part},
    {"attributes", put_attributes}, {"a count of parts", put_count},
    {"some attributes", put_size},  {"acl", put_acl},
};
enum { REPLIES = sizeof replies / sizeof replies[0] };

/* The row of the operation whose configuration does not exist. */
static bool put_none(const char *name, struct buf *out)
{
    for (enum s3_op_id op = 0; op < S3_OPS; op++) {
        if (strcmp(s3_op(op)->name, name) == 0)
            return s3_none_document(op, out);
    }
    return false;
}

static bool put_reply(const char *name, struct buf *out)
{
    for (size_t i = 0; i < REPLIES; i++) {
        if (strcmp(replies[i].name, name) == 0) {
            replies[i].put(out);
            return true;
        }
    }
    return put_none(name, out);
}

static void documents_are_those_that_botocore_parsed(void **state)
{
    size_t i, nones = 0;
    json_t *row, *rows = vectors_section(state, "replies");
    json_array_foreach(rows, i, row)
    {
        _cleanup_buf_ struct buf out = BUF_INIT;
        if (!put_reply(vectors_text(row, "name"), &out))
            fail_msg("no function writes '%s'", vectors_text(row, "name"));
        assert_string_equal(buf_str(&out), vectors_text(row, "document"));
    }
    for (enum s3_op_id op = 0; op < S3_OPS; op++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        nones += s3_none_document(op, &out);
    }
    assert_int_equal(i, REPLIES + nones);
}

static void the_first_region_has_no_name(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf first = BUF_INIT, other = BUF_INIT;
    s3_location_document("us-east-1", &first);
    s3_location_document("eu-west-1", &other);
    assert_non_null(strstr(buf_str(&first), "/\"></LocationConstraint>"));
    assert_non_null(strstr(buf_str(&other), "/\">eu-west-1</LocationConstraint>"));
}

static enum s3_error query(struct arena *a, const char *text, struct s3_query *q)
{
    return s3_query_parse(text, a, q, NULL);
}

static void what_lists_ask(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_query q;
    struct s3_parts_asked parts;
    struct s3_uploads_asked uploads;
    assert_int_equal(query(a, "uploadId=u&max-parts=2000&part-number-marker=4", &q), S3_OK);
    assert_int_equal(s3_parts_ask(&q, &parts, NULL), S3_OK);
    assert_string_equal(parts.upload_id, "u");
    assert_int_equal(parts.max, S3_UPLOAD_LIST_MAX);
    assert_int_equal(parts.after, 4);
    assert_false(parts.is_url_encoded);
    assert_int_equal(query(a, "uploads&max-uploads=0&key-marker=k&encoding-type=url", &q), S3_OK);
    assert_int_equal(s3_uploads_ask(&q, &uploads, NULL), S3_OK);
    assert_int_equal(uploads.max, 0);
    assert_string_equal(uploads.after_key, "k");
    assert_string_equal(uploads.after_upload_id, "");
    assert_true(uploads.is_url_encoded);
    static const char *const bad[] = {"max-parts=x&max-uploads=x", "max-parts=-1&max-uploads=-1",
                                      "encoding-type=xml", "max-parts=&max-uploads="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(query(a, bad[i], &q), S3_OK);
        assert_int_equal(s3_parts_ask(&q, &parts, NULL), S3_INVALID_ARGUMENT);
        assert_int_equal(s3_uploads_ask(&q, &uploads, NULL), S3_INVALID_ARGUMENT);
    }
    assert_int_equal(query(a, "part-number-marker=x", &q), S3_OK);
    assert_int_equal(s3_parts_ask(&q, &parts, NULL), S3_INVALID_ARGUMENT);
}

static enum s3_error asked(const char *first, const char *second, unsigned *out)
{
    const struct s3_field headers[] = {{"X-Amz-Object-Attributes", first},
                                       {"x-amz-object-attributes", second}};
    const struct s3_request r = {.headers = headers, .header_count = second != NULL ? 2 : 1};
    return s3_attributes_asked(&r, out, NULL);
}

static void which_attributes_are_asked(void **unused)
{
    (void)unused;
    unsigned got;
    const unsigned two = S3_ATTRIBUTE_ETAG | S3_ATTRIBUTE_SIZE;
    assert_int_equal(asked("ETag,ObjectSize", NULL, &got), S3_OK);
    assert_int_equal(got, two);
    assert_int_equal(asked(" ETag ,\tETag", "ObjectSize", &got), S3_OK);
    assert_int_equal(got, two);
    static const char *const bad[] = {"", "ETag,", "etag", "ETagObjectSize", "Size"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(asked(bad[i], NULL, &got), S3_INVALID_ARGUMENT);
    assert_int_equal(s3_attributes_asked(&(struct s3_request){.header_count = 0}, &got, NULL),
                     S3_INVALID_ARGUMENT);
}

static void pages_of_parts(void **unused)
{
    (void)unused;
    struct s3_parts_page page;
    struct s3_field fields[] = {{"x-amz-max-parts", "5000"}, {"X-Amz-Part-Number-Marker", "7"}};
    assert_int_equal(s3_attributes_page(&(struct s3_request){.header_count = 0}, &page, NULL),
                     S3_OK);
    assert_true(page.after == 0 && page.max == S3_ATTRIBUTE_PARTS_MAX);
    const struct s3_request r = {.headers = fields, .header_count = 2};
    assert_int_equal(s3_attributes_page(&r, &page, NULL), S3_OK);
    assert_true(page.after == 7 && page.max == S3_ATTRIBUTE_PARTS_MAX);
    static const char *const bad[] = {"", "x", "-1", "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fields[0].value = bad[i];
        assert_int_equal(s3_attributes_page(&r, &page, NULL), S3_INVALID_ARGUMENT);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_those_that_botocore_parsed),
        cmocka_unit_test(the_first_region_has_no_name),
        cmocka_unit_test(what_lists_ask),
        cmocka_unit_test(which_attributes_are_asked),
        cmocka_unit_test(pages_of_parts),
    };
    if (argc != 2)
        return 2;
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, vectors_load, vectors_drop);
}
