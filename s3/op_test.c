#include "s3/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "s3/testing/request_text.h"

static const char *const domains[] = {"s3.example.com", "s3"};
static const struct s3_place place = {.prefix = "", .domains = domains, .domain_count = 2};
static const struct s3_place below = {.prefix = "/s3"};

static enum s3_error find(struct arena *a, const struct s3_place *at, const char *text,
                          struct s3_call *out, struct s3_failure *why)
{
    const struct s3_request r = request_text(a, text, strlen(text));
    return s3_op_find(&r, at, a, out, why);
}

static const struct row {
    const char *text, *op, *bucket, *key;
} rows[] = {
    {"GET\n/\n\n", "ListBuckets", "", ""},
    {"GET\n/b\n\n", "ListObjects", "b", ""},
    {"GET\n/b/\nlist-type=2&prefix=a", "ListObjectsV2", "b", ""},
    {"GET\n/b\nlist-type=3", "ListObjects", "b", ""},
    {"GET\n/b\nx-id=ListThings", "ListObjects", "b", ""},
    {"HEAD\n/b\n", "HeadBucket", "b", ""},
    {"PUT\n/b\n", "CreateBucket", "b", ""},
    {"PUT\n/b\ncors", "PutBucketCors", "b", ""},
    {"GET\n/b\nversioning=", "GetBucketVersioning", "b", ""},
    {"DELETE\n/b\n", "DeleteBucket", "b", ""},
    {"POST\n/b\ndelete", "DeleteObjects", "b", ""},
    {"GET\n/b/k\n", "GetObject", "b", "k"},
    {"GET\n/b/k\npartNumber=2&versionId=null", "GetObject", "b", "k"},
    {"GET\n/b/k\nversions", "GetObject", "b", "k"},
    {"HEAD\n/b/a/b//../c/\n", "HeadObject", "b", "a/b//../c/"},
    {"PUT\n/b/k\n", "PutObject", "b", "k"},
    {"PUT\n/b/k\n\nX-Amz-Copy-Source:/b/o", "CopyObject", "b", "k"},
    {"PUT\n/b/k\npartNumber=1&uploadId=u", "UploadPart", "b", "k"},
    {"PUT\n/b/k\npartNumber=1&uploadId=u\nx-amz-copy-source:/b/o", "UploadPartCopy", "b", "k"},
    {"POST\n/b/k\nuploads=", "CreateMultipartUpload", "b", "k"},
    {"POST\n/b/k\nuploadId=u", "CompleteMultipartUpload", "b", "k"},
    {"DELETE\n/b/k\nuploadId=u", "AbortMultipartUpload", "b", "k"},
    {"GET\n/b/k\nuploadId=u", "ListParts", "b", "k"},
    {"DELETE\n/b/k\n", "DeleteObject", "b", "k"},
    {"GET\n/b/a%20b%2Bc+d%2fe\n", "GetObject", "b", "a b+c+d/e"},
    {"GET\n/b/%E2%98%83\n", "GetObject", "b", "\xe2\x98\x83"},
    {"OPTIONS\n/b/k\nacl", "PreflightObject", "b", "k"},
    {"GET\n/k\n\nHost:b.s3.example.com", "GetObject", "b", "k"},
    {"GET\n/k\n\nHost:B.C.S3.Example.com:9000", "GetObject", "b.c", "k"},
    {"GET\n/\n\nHost:b.s3.example.com", "ListObjects", "b", ""},
    {"GET\n/k/x\n\nHost:abs3.example.com", "GetObject", "k", "x"},
    {"GET\n/k/x\n\nHost:s3.example.com", "GetObject", "k", "x"},
    {"GET\n/k/x\n\nHost:.s3.example.com", "GetObject", "k", "x"},
    {"GET\n/k/x\n\nHost:[::1]:9000", "GetObject", "k", "x"},
};

static void requests_have_operations(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_call call;
        assert_int_equal(find(a, &place, rows[i].text, &call, NULL), S3_OK);
        assert_string_equal(s3_op(call.op)->name, rows[i].op);
        assert_string_equal(call.bucket, rows[i].bucket);
        assert_string_equal(call.key, rows[i].key);
    }
}

static void paths_below_a_prefix(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct s3_call call;
    assert_int_equal(find(a, &below, "GET\n/s3/b/k\n", &call, NULL), S3_OK);
    assert_string_equal(call.bucket, "b");
    assert_string_equal(call.key, "k");
    assert_int_equal(find(a, &below, "GET\n/s3\n", &call, NULL), S3_OK);
    assert_int_equal(call.op, S3_OP_ListBuckets);
    assert_int_equal(find(a, &below, "GET\n/s3b/k\n", &call, NULL), S3_INVALID_URI);
    assert_int_equal(find(a, &below, "GET\n/b/k\n", &call, NULL), S3_INVALID_URI);
}

static const struct refused {
    const char *text;
    enum s3_error error;
} refused[] = {
    {"POST\n/b/k\n", S3_METHOD_NOT_ALLOWED},
    {"PATCH\n/b/k\n", S3_METHOD_NOT_ALLOWED},
    {"PUT\n/\n", S3_METHOD_NOT_ALLOWED},
    {"DELETE\n/b\nacl", S3_METHOD_NOT_ALLOWED},
    {"DELETE\n/b\nversioning", S3_METHOD_NOT_ALLOWED},
    {"GET\n/b\ndelete", S3_METHOD_NOT_ALLOWED},
    {"HEAD\n/b/k\nacl", S3_METHOD_NOT_ALLOWED},
    {"GET\n/b\nacl&cors", S3_INVALID_ARGUMENT},
    {"GET\n//k\n", S3_INVALID_BUCKET_NAME},
    {"GET\n/%k/b\n", S3_INVALID_URI},
    {"GET\n/%ff/b\n", S3_INVALID_BUCKET_NAME},
    {"GET\n/b/%\n", S3_INVALID_URI},
    {"GET\n/b/%00\n", S3_INVALID_URI},
    {"GET\n/b/%ff\n", S3_INVALID_URI},
    {"GET\n/b/k\na=%zz", S3_INVALID_URI},
};

static void what_is_no_request_of_s3_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_call call;
        struct s3_failure why = {S3_OK, ""};
        assert_int_equal(find(a, &place, refused[i].text, &call, &why), refused[i].error);
        assert_int_equal(why.error, refused[i].error);
        assert_true(why.message[0] != '\0');
    }
}

static void keys_have_at_most_1024_bytes(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct s3_call call;
    buf_puts(&text, "GET\n/b/");
    for (int i = 0; i < S3_KEY_MAX; i++)
        buf_puts(&text, "%6b");
    assert_int_equal(find(a, &place, buf_str(&text), &call, NULL), S3_OK);
    assert_int_equal(strlen(call.key), S3_KEY_MAX);
    buf_puts(&text, "k");
    assert_int_equal(find(a, &place, buf_str(&text), &call, NULL), S3_KEY_TOO_LONG);
}

static void a_query_has_at_most_256_parameters(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct s3_call call;
    buf_puts(&text, "GET\n/b\na");
    for (int i = 1; i < S3_QUERY_MAX; i++)
        buf_puts(&text, "&a");
    assert_int_equal(find(a, &place, buf_str(&text), &call, NULL), S3_OK);
    assert_int_equal(call.query.count, S3_QUERY_MAX);
    buf_puts(&text, "&a");
    assert_int_equal(find(a, &place, buf_str(&text), &call, NULL), S3_INVALID_URI);
}

/* Each row is found by the request that it describes, so that no row hides another one. */
static void every_row_is_reached(void **unused)
{
    (void)unused;
    static const char *const paths[] = {"/", "/b", "/b/k"};
    for (int id = 0; id < S3_OPS; id++) {
        const struct s3_op *op = s3_op((enum s3_op_id)id);
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct s3_call call;
        const char *text = arena_printf(a, "%s\n%s\n%s\n%s%s", op->method, paths[op->level],
                                        op->query, op->header, *op->header != '\0' ? ":x" : "");
        assert_int_equal(find(a, &place, text, &call, NULL), S3_OK);
        assert_string_equal(s3_op(call.op)->name, op->name);
        assert_true(op->right != RIGHT_UNSET);
    }
}

static void names_of_new_buckets(void **unused)
{
    (void)unused;
    static const char *const good[] = {"abc", "a-b.c", "1bucket", "192.168.5", "x.1.2.3.4"};
    static const char *const bad[] = {
        "",         "ab",      "Abc",     "a_b",         "-abc",  "abc-",         ".abc",
        "a..b",     "1.2.3.4", "xn--abc", "abc-s3alias", "a b c", "\xc3\xa9tude", "abc--ol-s3",
        "foo.-bar", "foo-.bar"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(s3_bucket_name_check(good[i], NULL), S3_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(s3_bucket_name_check(bad[i], NULL), S3_INVALID_BUCKET_NAME);
    char name[65] = "";
    memset(name, 'a', 63);
    assert_int_equal(s3_bucket_name_check(name, NULL), S3_OK);
    name[63] = 'a';
    assert_int_equal(s3_bucket_name_check(name, NULL), S3_INVALID_BUCKET_NAME);
}

static void queries_in_canonical_form(void **unused)
{
    (void)unused;
    static const struct {
        const char *raw, *canonical;
    } queries[] = {
        {"", ""},
        {"acl", "acl="},
        {"b=2&a=1", "a=1&b=2"},
        {"a=2&a=1&a", "a=&a=1&a=2"},
        {"a=x+y&b=%2B", "a=x%20y&b=%2B"},
        {"k=a/b%2Fc~d", "k=a%2Fb%2Fc~d"},
        {"&&x==&", "x=%3D"},
        {"sig=drop&a=1", "a=1"},
        {"a.b=1&a=2", "a=2&a.b=1"},
    };
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct s3_query q;
        assert_int_equal(s3_query_parse(queries[i].raw, a, &q, NULL), S3_OK);
        s3_query_canonical(&q, "sig", a, &out);
        assert_string_equal(buf_str(&out), queries[i].canonical);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_operations),
        cmocka_unit_test(paths_below_a_prefix),
        cmocka_unit_test(what_is_no_request_of_s3_is_refused),
        cmocka_unit_test(keys_have_at_most_1024_bytes),
        cmocka_unit_test(a_query_has_at_most_256_parameters),
        cmocka_unit_test(every_row_is_reached),
        cmocka_unit_test(names_of_new_buckets),
        cmocka_unit_test(queries_in_canonical_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
