#include "s3/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define HEAD(root)                                       \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" root \
    " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"

static enum s3_error ask(struct arena *a, const char *query, enum s3_list_form form,
                         struct s3_list_asked *out)
{
    struct s3_query q;
    assert_int_equal(s3_query_parse(query, a, &q, NULL), S3_OK);
    return s3_list_ask(&q, form, out, NULL);
}

static void what_requests_ask(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_list_asked asked;
    assert_int_equal(ask(a, "", S3_LIST_V1, &asked), S3_OK);
    assert_int_equal(asked.max_keys, 1000);
    assert_true(asked.with_owner && !asked.is_url_encoded && asked.token == NULL);
    assert_int_equal(ask(a, "max-keys=2000&marker=m&prefix=a%20b&delimiter=/", S3_LIST_V1, &asked),
                     S3_OK);
    assert_int_equal(asked.max_keys, 1000);
    assert_string_equal(asked.after, "m");
    assert_string_equal(asked.prefix, "a b");
    assert_string_equal(asked.delimiter, "/");
    assert_int_equal(ask(a, "max-keys=0&start-after=s&continuation-token=t&encoding-type=url",
                         S3_LIST_V2, &asked),
                     S3_OK);
    assert_int_equal(asked.max_keys, 0);
    assert_string_equal(asked.after, "s");
    assert_string_equal(asked.token, "t");
    assert_true(asked.is_url_encoded && !asked.with_owner);
    assert_int_equal(ask(a, "fetch-owner=true", S3_LIST_V2, &asked), S3_OK);
    assert_true(asked.with_owner);
    static const char *const bad[] = {
        "max-keys=-1",         "max-keys=x",           "max-keys=",
        "max-keys=2147483648", "encoding-type=base64", "continuation-token="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ask(a, bad[i], S3_LIST_V2, &asked), S3_INVALID_ARGUMENT);
}

static const struct s3_list_entry entries[] = {
    {.key = "a b&\x01", .modified_ms = 1369353600007, .etag = "e-1", .size = 5}};
static const char *const prefixes[] = {"p/"};
static const struct s3_list page = {.bucket = "b",
                                    .owner_id = "id",
                                    .owner_name = "name",
                                    .entries = entries,
                                    .entry_count = 1,
                                    .prefixes = prefixes,
                                    .prefix_count = 1,
                                    .next = "n/ext"};

static void a_page_of_version_1(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_list_asked asked;
    assert_int_equal(ask(a, "max-keys=2&delimiter=/", S3_LIST_V1, &asked), S3_OK);
    s3_list_document(&asked, &page, &out);
    assert_string_equal(
        buf_str(&out),
        HEAD("ListBucketResult") "<Name>b</Name><Prefix></Prefix><Delimiter>/</Delimiter>"
                                 "<MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>"
                                 "<Marker></Marker><NextMarker>n/ext</NextMarker>"
                                 "<Contents><Key>a b&amp;&#x1;</Key>"
                                 "<LastModified>2013-05-24T00:00:00.007Z</LastModified>"
                                 "<ETag>&quot;e-1&quot;</ETag><Size>5</Size>"
                                 "<Owner><ID>id</ID><DisplayName>name</DisplayName></Owner>"
                                 "<StorageClass>STANDARD</StorageClass></Contents>"
                                 "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
                                 "</ListBucketResult>");
}

static void a_page_of_version_2(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_list_asked asked;
    assert_int_equal(ask(a, "prefix=%C3%A9/&encoding-type=url&continuation-token=t&start-after=s",
                         S3_LIST_V2, &asked),
                     S3_OK);
    s3_list_document(&asked, &page, &out);
    assert_string_equal(
        buf_str(&out),
        HEAD("ListBucketResult") "<Name>b</Name><Prefix>%C3%A9/</Prefix>"
                                 "<EncodingType>url</EncodingType><MaxKeys>1000</MaxKeys>"
                                 "<IsTruncated>true</IsTruncated><KeyCount>2</KeyCount>"
                                 "<StartAfter>s</StartAfter>"
                                 "<ContinuationToken>t</ContinuationToken>"
                                 "<NextContinuationToken>n/ext</NextContinuationToken>"
                                 "<Contents><Key>a%20b%26%01</Key>"
                                 "<LastModified>2013-05-24T00:00:00.007Z</LastModified>"
                                 "<ETag>&quot;e-1&quot;</ETag><Size>5</Size>"
                                 "<StorageClass>STANDARD</StorageClass></Contents>"
                                 "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
                                 "</ListBucketResult>");
}

static void a_page_of_versions(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct s3_list_asked asked;
    struct s3_list behind_key = page;
    behind_key.next = entries[0].key;
    assert_int_equal(ask(a, "key-marker=k&version-id-marker=null", S3_LIST_VERSIONS, &asked),
                     S3_OK);
    s3_list_document(&asked, &behind_key, &out);
    assert_string_equal(
        buf_str(&out),
        HEAD("ListVersionsResult") "<Name>b</Name><Prefix></Prefix><MaxKeys>1000</MaxKeys>"
                                   "<IsTruncated>true</IsTruncated><KeyMarker>k</KeyMarker>"
                                   "<VersionIdMarker>null</VersionIdMarker>"
                                   "<NextKeyMarker>a b&amp;&#x1;</NextKeyMarker>"
                                   "<NextVersionIdMarker>null</NextVersionIdMarker>"
                                   "<Version><Key>a b&amp;&#x1;</Key><VersionId>null</VersionId>"
                                   "<IsLatest>true</IsLatest>"
                                   "<LastModified>2013-05-24T00:00:00.007Z</LastModified>"
                                   "<ETag>&quot;e-1&quot;</ETag><Size>5</Size>"
                                   "<Owner><ID>id</ID><DisplayName>name</DisplayName></Owner>"
                                   "<StorageClass>STANDARD</StorageClass></Version>"
                                   "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
                                   "</ListVersionsResult>");
    buf_clear(&out);
    s3_list_document(&asked, &page, &out); /* it ends with a prefix */
    assert_null(strstr(buf_str(&out), "NextVersionIdMarker"));
    static const char *const bad[] = {"version-id-marker=null", "key-marker=k&version-id-marker=1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ask(a, bad[i], S3_LIST_VERSIONS, &asked), S3_INVALID_ARGUMENT);
}

static void buckets(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf out = BUF_INIT;
    const struct s3_list_bucket all[] = {{.name = "a", .created_ms = 1369353600000}};
    s3_list_buckets_document(all, 1, "id", "name", &out);
    assert_string_equal(
        buf_str(&out),
        HEAD("ListAllMyBucketsResult") "<Owner><ID>id</ID><DisplayName>name</DisplayName></Owner>"
                                       "<Buckets><Bucket><Name>a</Name><CreationDate>"
                                       "2013-05-24T00:00:00.000Z</CreationDate></Bucket></Buckets>"
                                       "</ListAllMyBucketsResult>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_requests_ask),
        cmocka_unit_test(a_page_of_version_1),
        cmocka_unit_test(a_page_of_version_2),
        cmocka_unit_test(a_page_of_versions),
        cmocka_unit_test(buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
