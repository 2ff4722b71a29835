/* The rows of the table: requests that they make, what they read of heads; XML. */
#include "target/backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "target/backend/aws_keys.h"
#include "target/backend/s3_xml.h"
#include "target/backend/head.h"

static const struct aws_keys keys = {.access = "AKID", .secret = "secret"};
static const struct aws_keys session_keys = {
    .access = "AKID", .secret = "secret", .token = "token"};

/* --- requests --------------------------------------------------------------------------------- */

static const char *header_of(const struct backend_request *r, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; r->headers[i] != NULL; i++) {
        if (strncasecmp(r->headers[i], name, len) == 0 && r->headers[i][len] == ':')
            return r->headers[i] + len + 2;
    }
    return NULL;
}

static int make(const char *url, const char *name, struct arena *a, struct backend_request *out)
{
    struct backend_spec spec;
    const struct backend_ask ask = {.method = HTTP_GET,
                                    .name = name,
                                    .range = "bytes=0-9",
                                    .if_match = "\"tag\"",
                                    .keys = &session_keys,
                                    .wall_ms = 1369353600000};
    assert_int_equal(backend_parse(url, a, &spec, NULL), 0);
    return backend_ops_of(spec.provider)->request(&spec, &ask, a, out, NULL);
}

static void urls_of_objects(void **unused)
{
    (void)unused;
    static const struct {
        const char *backend, *name, *url, *host;
    } rows[] = {
        {"s3://b", "x/y", "https://b.s3.us-east-1.amazonaws.com/x/y",
         "b.s3.us-east-1.amazonaws.com"},
        {"s3://a.b", "x", "https://s3.us-east-1.amazonaws.com/a.b/x", "s3.us-east-1.amazonaws.com"},
        {"s3://b/p q?endpoint=http://h:80/base", "a+b%c/\xc3\xa4?",
         "http://h/base/b/p%20q/a%2Bb%25c/"
         "%C3%A4%3F",
         "h"},
        {"s3://b?endpoint=https://h:9000", "../x", "https://h:9000/b/../x", "h:9000"},
        {"s3://b?endpoint=http://h:443&style=virtual", "x", "http://b.h:443/x", "b.h:443"},
        {"http://h/base/", "a b", "http://h/base/a%20b", NULL},
        {"http://h", "x//y", "http://h/x//y", NULL},
        {"dfc://b/p?endpoint=http://h:1", "a b", "http://h:1/v1/objects/b/p/a%20b", NULL},
        {"dfc://b?endpoint=http://h:1", "../x", "http://h:1/v1/objects/b/..%2Fx", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(256);
        struct backend_request r;
        assert_int_equal(make(rows[i].backend, rows[i].name, a, &r), 0);
        assert_string_equal(r.url, rows[i].url);
        assert_string_equal(header_of(&r, "Range"), "bytes=0-9");
        assert_string_equal(header_of(&r, "If-Match"), "\"tag\"");
        if (rows[i].host != NULL) {
            assert_string_equal(header_of(&r, "Host"), rows[i].host);
            assert_string_equal(header_of(&r, "x-amz-security-token"), "token");
            assert_non_null(strstr(header_of(&r, "Authorization"),
                                   "SignedHeaders=host;x-amz-checksum-mode;x-amz-content-sha256;"
                                   "x-amz-date;x-amz-security-token, "));
        }
    }
}

static void public_buckets_are_not_signed(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(256);
    struct backend_request r;
    assert_int_equal(make("s3://b?auth=none", "x", a, &r), 0);
    assert_null(header_of(&r, "Authorization"));
    assert_null(header_of(&r, "x-amz-security-token"));
}

static void names_that_would_leave_a_base(void **unused)
{
    (void)unused;
    static const char *const names[] = {"..", "../x", "x/..", "x/../y", ".", "./x", "x/./y"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(256);
        struct backend_request r;
        assert_int_equal(make("http://h/base", names[i], a, &r), E_OBJECT_NOT_FOUND);
    }
}

/* --- heads ------------------------------------------------------------------------------------ */

struct fake_head {
    struct http_head head;
    const char *const *pairs; /* name, value, …, NULL */
};

static const char *fake_header(const struct http_head *head, const char *name)
{
    const struct fake_head *f = (const struct fake_head *)head;
    for (size_t i = 0; f->pairs[i] != NULL; i += 2) {
        if (strcasecmp(f->pairs[i], name) == 0)
            return f->pairs[i + 1];
    }
    return NULL;
}

static void fake_each(const struct http_head *head,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct fake_head *f = (const struct fake_head *)head;
    for (size_t i = 0; f->pairs[i] != NULL; i += 2)
        fn(ctx, f->pairs[i], f->pairs[i + 1]);
}

static struct backend_facts read_head(const char *provider, int status, int64_t length,
                                      const char *const *pairs)
{
    const struct fake_head f = {.head = {.status = status,
                                         .content_length = length,
                                         .header = fake_header,
                                         .each_header = fake_each},
                                .pairs = pairs};
    struct backend_facts facts;
    backend_read_head(backend_ops_of(provider), &f.head, &facts);
    return facts;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MD5_TAG "\"900150983cd24fb0d6963f7d28e17f72\""

static const struct {
    const char *provider;
    int status;
    const char *pairs[7];
    enum checksum_type type;
} heads[] = {
    {"s3", 200, {"ETag", MD5_TAG}, CHECKSUM_MD5},
    {"s3", 200, {"ETag", "\"900150983cd24fb0d6963f7d28e17f72-3\""}, CHECKSUM_NONE},
    {"s3", 200, {"ETag", "900150983cd24fb0d6963f7d28e17f72"}, CHECKSUM_NONE},
    {"s3", 200, {"ETag", "\"900150983cd24fb0d6963f7d28e17f7x\""}, CHECKSUM_NONE},
    {"s3", 200, {"ETag", MD5_TAG, "x-amz-server-side-encryption", "AES256"}, CHECKSUM_MD5},
    {"s3", 200, {"ETag", MD5_TAG, "x-amz-server-side-encryption", "aws:kms"}, CHECKSUM_NONE},
    {"s3",
     200,
     {"ETag", MD5_TAG, "x-amz-server-side-encryption-customer-algorithm", "AES256"},
     CHECKSUM_NONE},
    {"s3", 200, {"ETag", "\"x\"", "x-amz-checksum-crc32c", "Nks/tw=="}, CHECKSUM_CRC32C},
    {"s3", 200, {"ETag", MD5_TAG, "x-amz-checksum-crc32c", "Nks/tw==-2"}, CHECKSUM_MD5},
    {"s3",
     200,
     {"x-amz-checksum-sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
     CHECKSUM_SHA256},
    {"http", 200, {"ETag", MD5_TAG}, CHECKSUM_NONE},
    {"dfc",
     206,
     {"Dfc-Checksum-Type", "crc32c", "Dfc-Checksum-Value", "364b3fb7"},
     CHECKSUM_CRC32C},
    {"dfc", 200, {"Dfc-Checksum-Type", "crc32c", "Dfc-Checksum-Value", "364b3f"}, CHECKSUM_NONE},
    {"dfc", 200, {"Dfc-Checksum-Type", "none", "Dfc-Checksum-Value", ""}, CHECKSUM_NONE},
    {"http", 200, {"Content-MD5", "kAFQmDzST7DWlj99KOF/cg=="}, CHECKSUM_MD5},
    {"http", 206, {"Content-MD5", "kAFQmDzST7DWlj99KOF/cg=="}, CHECKSUM_NONE},
    {"http", 200, {"Content-MD5", "kAFQmDzST7DWlj99KOF/cg"}, CHECKSUM_NONE},
    {"gcs", 200, {"x-goog-hash", "crc32c=Nks/tw=="}, CHECKSUM_CRC32C},
    {"gcs", 206, {"x-goog-hash", "crc32c=Nks/tw==,md5=kAFQmDzST7DWlj99KOF/cg=="}, CHECKSUM_CRC32C},
    {"gcs", 200, {"x-goog-hash", "md5=kAFQmDzST7DWlj99KOF/cg=="}, CHECKSUM_MD5},
    {"gcs", 200, {"x-goog-hash", "crc32c=Nks"}, CHECKSUM_NONE},
    {"gcs",
     200,
     {"x-goog-hash", "crc32c=Nks/tw==", "x-goog-stored-content-encoding", "gzip"},
     CHECKSUM_NONE},
    {"http", 200, {"Content-MD5", "!!!!!!!!!!!!!!!!!!!!!!=="}, CHECKSUM_NONE},
};

static void checksums_of_heads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct backend_facts f = read_head(heads[i].provider, heads[i].status, 3, heads[i].pairs);
        if (f.sum.type != heads[i].type)
            fail_msg("row %zu: %s", i, checksum_name(f.sum.type));
    }
    struct checksum_value want;
    struct backend_facts f =
        read_head("http", 200, 3, PAIRS("Content-MD5", "kAFQmDzST7DWlj99KOF/cg=="));
    assert_int_equal(checksum_parse(CHECKSUM_MD5, "900150983cd24fb0d6963f7d28e17f72", &want, NULL),
                     0);
    assert_true(checksum_equal(&f.sum, &want));
}

static void sizes_of_heads(void **unused)
{
    (void)unused;
    assert_int_equal(read_head("http", 200, 17, PAIRS("ETag", "W/\"x\"")).size, 17);
    struct backend_facts f = read_head("http", 206, 10, PAIRS("Content-Range", "bytes 5-14/100"));
    assert_int_equal(f.size, 100);
    assert_int_equal(f.offset, 5);
    assert_int_equal(read_head("http", 206, 10, PAIRS("Content-Range", "bytes 5-14/*")).size, -1);
    assert_int_equal(read_head("http", 206, 10, PAIRS("Content-Range", "lines 5-14/100")).size, -1);
    assert_int_equal(
        read_head("http", 200, 1, PAIRS("Last-Modified", "Thu, 01 Jan 1970 00:00:09 GMT"))
            .modified_s,
        9);
    assert_int_equal(read_head("http", 200, 1, PAIRS("Last-Modified", "x")).modified_s, -1);
}

static void content_ranges(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "bytes 5-4/100",
        "bytes 5-100/100",
        "bytes 5-6",
        "bytes 5/10",
        "bytes -6/10",
        "bytes 5-6/10x",
        "bytes 5-6/",
        "bytes */10",
        "",
        "bytes 0-18446744073709551615/*",
        "bytes 0-1/99999999999999999999",
    };
    uint64_t offset, length;
    int64_t size;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(backend_parse_content_range(bad[i], &offset, &length, &size));
    assert_true(backend_parse_content_range("bytes 0-0/1", &offset, &length, &size));
    assert_int_equal(length, 1);
    assert_true(backend_etag_is_strong("\"x\""));
    assert_false(backend_etag_is_strong("W/\"x\""));
    assert_false(backend_etag_is_strong("\""));
    assert_false(backend_etag_is_strong(""));
}

static void words_of_xml(void **unused)
{
    (void)unused;
    static const struct {
        const char *xml, *words;
    } rows[] = {
        {"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>It is &lt;not&gt; "
         "there</Message><Key>x</Key></Error>",
         "NoSuchKey: It is <not> there"},
        {"<Error><StringToSign>AWS4 secret</StringToSign><Code>A</Code></Error>", "A"},
        {"<Error><Code>A\n\xc3\xa4</Code><Message>b</Message>", "A: b"},
        {"<Error><Other><Code>A</Code></Other></Error>", ""},
        {"<Result><Code>A</Code></Result>", ""},
        {"<!DOCTYPE x [<!ENTITY e \"eeee\">]><Error><Code>&e;</Code></Error>", ""},
        {"no xml", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        s3_xml_error(rows[i].xml, strlen(rows[i].xml), &out);
        assert_string_equal(buf_str(&out), rows[i].words);
    }
}

/* --- what is written, and lists --------------------------------------------------------------- */

static void requests_that_write(void **unused)
{
    (void)unused;
    static const struct backend_part parts[2] = {{.etag = "\"t1\""}, {.etag = "\"t2\""}};
    const struct backend_write write = {
        .content_type = "a/b", .upload_id = "u+/=", .part = 2, .parts = parts, .part_count = 2};
    static const struct {
        enum backend_verb verb;
        enum http_method method;
        const char *url, *body;
    } rows[] = {
        {BACKEND_PUT, HTTP_PUT, "http://h/b/p/n%20a", NULL},
        {BACKEND_DELETE, HTTP_DELETE, "http://h/b/p/n%20a", NULL},
        {BACKEND_PARTS_BEGIN, HTTP_POST, "http://h/b/p/n%20a?uploads=", NULL},
        {BACKEND_PART, HTTP_PUT, "http://h/b/p/n%20a?partNumber=2&uploadId=u%2B%2F%3D", NULL},
        {BACKEND_PARTS_ABORT, HTTP_DELETE, "http://h/b/p/n%20a?uploadId=u%2B%2F%3D", NULL},
        {BACKEND_PARTS_END, HTTP_POST, "http://h/b/p/n%20a?uploadId=u%2B%2F%3D",
         "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
         "<Part><PartNumber>1</PartNumber><ETag>&quot;t1&quot;</ETag></Part>"
         "<Part><PartNumber>2</PartNumber><ETag>&quot;t2&quot;</ETag></Part>"
         "</CompleteMultipartUpload>"},
    };
    struct backend_spec spec;
    struct backend_request r;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    assert_int_equal(backend_parse("s3://b/p?endpoint=http://h&auth=none", a, &spec, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct backend_ask ask = {.verb = rows[i].verb, .name = "n a", .write = &write};
        assert_int_equal(backend_s3.request(&spec, &ask, a, &r, NULL), 0);
        assert_string_equal(r.url, rows[i].url);
        assert_int_equal(backend_method(&ask), rows[i].method);
        if (rows[i].body != NULL)
            assert_string_equal(r.body, rows[i].body);
    }
}

/* Names are as in URLs, and what is copied is part of the signature. */
static void requests_that_copy(void **unused)
{
    (void)unused;
    const struct backend_write write = {.upload_id = "u",
                                        .part = 3,
                                        .from = "a+b/\xc3\xa4?%",
                                        .from_etag = "\"t\"",
                                        .from_range = "bytes=5-9"};
    struct backend_request r;
    for (int part = 0; part < 2; part++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct backend_spec spec;
        const struct backend_ask ask = {.verb = part ? BACKEND_PART_COPY : BACKEND_COPY,
                                        .name = "new",
                                        .write = &write,
                                        .keys = &keys};
        assert_int_equal(
            backend_parse("s3://b/p q?endpoint=http://h&style=virtual", a, &spec, NULL), 0);
        assert_int_equal(backend_s3.request(&spec, &ask, a, &r, NULL), 0);
        assert_int_equal(backend_method(&ask), HTTP_PUT);
        assert_string_equal(r.url, part ? "http://b.h/p%20q/new?partNumber=3&uploadId=u"
                                        : "http://b.h/p%20q/new");
        assert_string_equal(header_of(&r, "x-amz-copy-source"), "/b/p%20q/a%2Bb/%C3%A4%3F%25");
        assert_string_equal(header_of(&r, "x-amz-copy-source-if-match"), "\"t\"");
        assert_non_null(
            strstr(header_of(&r, "Authorization"),
                   part ? "SignedHeaders=host;x-amz-content-sha256;x-amz-copy-source;"
                          "x-amz-copy-source-if-match;x-amz-copy-source-range;x-amz-date, "
                        : "SignedHeaders=host;x-amz-content-sha256;x-amz-copy-source;"
                          "x-amz-copy-source-if-match;x-amz-date, "));
    }
}

static void answers_to_copies(void **unused)
{
    (void)unused;
    static const struct {
        const char *body, *etag;
        int code;
    } rows[] = {
        {"<CopyObjectResult><ETag>&quot;t&quot;</ETag></CopyObjectResult>", "\"t\"", 0},
        {"  \n<CopyPartResult xmlns=\"x\"><ETag>t</ETag></CopyPartResult>", "t", 0},
        {"<CopyObjectResult></CopyObjectResult>", "", 0},
        {"<?xml version=\"1.0\"?> <Error><Code>InternalError</Code></Error>", "", E_BACKEND},
        {"<CopyObjectResult><ETag>t</ETag>", "", E_BACKEND},
        {"", "", E_BACKEND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(backend_s3.copied(rows[i].body, strlen(rows[i].body), &out, &err),
                         rows[i].code);
        if (rows[i].code == 0)
            assert_string_equal(buf_str(&out), rows[i].etag);
        else if (i == 3)
            assert_non_null(strstr(err.message, "InternalError"));
    }
}

static void requests_that_list(void **unused)
{
    (void)unused;
    struct backend_list_ask list = {
        .prefix = "a/", .delimiter = "/", .start_after = "a/b c", .limit = 50};
    const struct backend_ask ask = {.verb = BACKEND_LIST, .name = "", .list = &list};
    struct backend_spec spec;
    struct backend_request r;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    assert_int_equal(backend_parse("s3://b/p?endpoint=http://h&auth=none", a, &spec, NULL), 0);
    assert_int_equal(backend_s3.request(&spec, &ask, a, &r, NULL), 0);
    assert_string_equal(r.url, "http://h/b/?delimiter=%2F&encoding-type=url&list-type=2&max-keys=50"
                               "&prefix=p%2Fa%2F&start-after=p%2Fa%2Fb%20c");
    list = (struct backend_list_ask){
        .prefix = "", .delimiter = "", .start_after = "", .token = "t=", .limit = 5000};
    assert_int_equal(backend_s3.request(&spec, &ask, a, &r, NULL), 0);
    assert_string_equal(r.url, "http://h/b/?continuation-token=t%3D&encoding-type=url&list-type=2"
                               "&max-keys=1000&prefix=p%2F");
}

static int read_page(const char *text, struct arena *a, struct backend_page *page)
{
    struct backend_spec spec;
    *page = (struct backend_page){.arena = a};
    assert_int_equal(backend_parse("s3://b/p?endpoint=http://h&auth=none", a, &spec, NULL), 0);
    return backend_s3.page(&spec, text, strlen(text), page, NULL);
}

static void pages_of_names(void **unused)
{
    (void)unused;
    struct backend_page page;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    static const char *const text =
        "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Prefix>p/</Prefix>"
        "<Contents><Key>p/a%2Bb+c%20d</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
        "<ETag>&quot;e&quot;</ETag><Size>12</Size><Owner><ID>7</ID></Owner></Contents>"
        "<Contents><Key>p/</Key><Size>0</Size></Contents>"
        "<Contents><Key>other</Key><Size>0</Size></Contents>"
        "<Contents><Key>p/%FF</Key><Size>0</Size></Contents>"
        "<CommonPrefixes><Prefix>p/x/</Prefix></CommonPrefixes>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        "</ListBucketResult>";
    assert_int_equal(read_page(text, a, &page), 0);
    assert_int_equal(page.entry_count, 1);
    assert_string_equal(page.entries[0].name, "a+b c d");
    assert_string_equal(page.entries[0].etag, "\"e\"");
    assert_int_equal(page.entries[0].size, 12);
    assert_int_equal(page.entries[0].modified_ms, 1255369830000);
    assert_int_equal(page.prefix_count, 1);
    assert_string_equal(page.prefixes[0], "x/");
    assert_string_equal(page.token, "t");
    /* Cut anywhere, it is no page. */
    for (size_t len = 0; len < strlen(text); len++) {
        _cleanup_free_ char *cut = strndup(text, len);
        assert_int_equal(read_page(cut, a, &page), E_BACKEND);
    }
    assert_int_equal(read_page("<ListBucketResult><IsTruncated>true</IsTruncated>"
                               "</ListBucketResult>",
                               a, &page),
                     E_BACKEND);
    assert_int_equal(read_page("<ListBucketResult><Contents><Key>p/a</Key><Size>x</Size>"
                               "</Contents></ListBucketResult>",
                               a, &page),
                     E_BACKEND);
}

/* What the cluster lets a bucket's properties promise is what the rows can do. */
static void who_can_what(void **unused)
{
    (void)unused;
    static const char *const urls[] = {"s3://b", "gs://b", "dfc://b?endpoint=http://h", "http://h",
                                       "https://h"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct backend_spec spec;
        _cleanup_arena_ struct arena *a = arena_new(1024);
        assert_int_equal(backend_parse(urls[i], a, &spec, NULL), 0);
        const struct backend_ops *ops = backend_ops_of(spec.provider);
        assert_int_equal(backend_is_written(urls[i]),
                         backend_can(ops, BACKEND_PUT) || backend_can(ops, BACKEND_SESSION_BEGIN));
        assert_int_equal(backend_is_written(urls[i]), backend_can(ops, BACKEND_DELETE));
        assert_int_equal(backend_is_written(urls[i]),
                         backend_can(ops, BACKEND_COPY) || backend_can(ops, BACKEND_REWRITE));
        assert_int_equal(backend_can(ops, BACKEND_PART_COPY), backend_can(ops, BACKEND_COPY));
        assert_int_equal(backend_is_listed(urls[i]), backend_can(ops, BACKEND_LIST));
        assert_true(ops->page != NULL || !backend_can(ops, BACKEND_LIST));
        assert_true(ops->end_etag != NULL || !backend_can(ops, BACKEND_SESSION_BEGIN));
        assert_true(ops->upload_id != NULL || !backend_can(ops, BACKEND_PARTS_BEGIN));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_write),
        cmocka_unit_test(requests_that_copy),
        cmocka_unit_test(answers_to_copies),
        cmocka_unit_test(requests_that_list),
        cmocka_unit_test(pages_of_names),
        cmocka_unit_test(who_can_what),
        cmocka_unit_test(urls_of_objects),
        cmocka_unit_test(public_buckets_are_not_signed),
        cmocka_unit_test(names_that_would_leave_a_base),
        cmocka_unit_test(checksums_of_heads),
        cmocka_unit_test(sizes_of_heads),
        cmocka_unit_test(content_ranges),
        cmocka_unit_test(words_of_xml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
