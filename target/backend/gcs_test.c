/* GCS's API: requests, heads, answers; the key of a service account, and what is signed with it. */
#include "target/backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/jsonx.h"
#include "target/backend/google_key.h"
#include "target/backend/google_source.h"
#include "target/backend/head.h"

static const char *line_of(const struct backend_request *r, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; r->headers[i] != NULL; i++) {
        if (strncasecmp(r->headers[i], name, len) == 0 && r->headers[i][len] == ':')
            return r->headers[i] + len + 2;
    }
    return NULL;
}

static int ask_for(const char *url, const struct backend_ask *ask, struct arena *a,
                   struct backend_request *out)
{
    struct backend_spec spec;
    assert_int_equal(backend_parse(url, a, &spec, NULL), 0);
    return backend_gcs.request(&spec, ask, a, out, NULL);
}

static void requests_that_read(void **unused)
{
    (void)unused;
    static const struct {
        const char *backend;
        struct backend_ask ask;
        const char *url;
        int code;
    } rows[] = {
        {"gs://b",
         {.name = "a/b c"},
         "https://storage.googleapis.com/storage/v1/b/b/o/a%2Fb%20c?alt=media",
         0},
        {"gs://b/p?endpoint=http://h",
         {.name = ".."},
         "http://h/storage/v1/b/b/o/p%2F..?alt=media",
         0},
        {"gs://b?endpoint=http://h", {.name = ".."}, NULL, E_OBJECT_NOT_FOUND},
        {"gs://b?endpoint=http://h",
         {.name = "x", .if_match = "\"12\""},
         "http://h/storage/v1/b/b/o/x?alt=media&ifGenerationMatch=12",
         0},
        {"gs://b?endpoint=http://h", {.name = "x", .if_match = "\"md5\""}, NULL, E_PRECONDITION},
        {"gs://b?endpoint=http://h",
         {.name = "x", .if_match = "\"123456789012345678901\""},
         NULL,
         E_PRECONDITION},
        {"gs://b?endpoint=http://h",
         {.name = "x", .if_none_match = "\"12\""},
         "http://h/storage/v1/b/b/o/x?alt=media&ifGenerationNotMatch=12",
         0},
        {"gs://b?endpoint=http://h",
         {.name = "x", .if_none_match = "\"md5\""},
         "http://h/storage/v1/b/b/o/x?alt=media",
         0},
        {"gs://b?endpoint=http://h",
         {.verb = BACKEND_DELETE, .name = "a/b"},
         "http://h/storage/v1/b/b/o/a%2Fb",
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct backend_request r;
        struct backend_ask ask = rows[i].ask;
        ask.token = "tok";
        ask.range = "bytes=1-2";
        assert_int_equal(ask_for(rows[i].backend, &ask, a, &r), rows[i].code);
        if (rows[i].code != 0)
            continue;
        assert_string_equal(r.url, rows[i].url);
        assert_string_equal(line_of(&r, "authorization"), "Bearer tok");
        assert_string_equal(line_of(&r, "range"), "bytes=1-2");
    }
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct backend_request r;
    const struct backend_ask ask = {.name = "x"};
    assert_int_equal(ask_for("gs://b?auth=none", &ask, a, &r), 0);
    assert_null(line_of(&r, "authorization"));
}

static void requests_that_write_and_list(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct backend_request r;
    struct backend_write write = {
        .content_type = "t/\"x", .size = 7, .content_range = "bytes 0-6/7"};
    write.md5.type = CHECKSUM_MD5;
    struct backend_ask ask = {
        .verb = BACKEND_SESSION_BEGIN, .name = "n", .write = &write, .token = "tok"};
    assert_int_equal(ask_for("gs://b/p?endpoint=http://h", &ask, a, &r), 0);
    assert_string_equal(r.url, "http://h/upload/storage/v1/b/b/o?uploadType=resumable");
    assert_string_equal(
        r.body,
        "{\"name\":\"p/n\",\"md5Hash\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"contentType\":\"t/\\\"x\"}");
    assert_string_equal(line_of(&r, "x-upload-content-length"), "7");
    static const char pairs[] = "a\0b \"c\0backend-etag\0x\0backend-encoding\0gzip\0d.e\0f";
    write.meta = pairs;
    write.meta_len = sizeof pairs;
    assert_int_equal(ask_for("gs://b/p?endpoint=http://h", &ask, a, &r), 0);
    assert_non_null(strstr(
        r.body, ",\"contentEncoding\":\"gzip\",\"metadata\":{\"a\":\"b \\\"c\",\"d.e\":\"f\"}}"));
    ask.verb = BACKEND_SESSION_SEND;
    ask.url = "http://h/session?id=1";
    assert_int_equal(ask_for("gs://b/p?endpoint=http://h", &ask, a, &r), 0);
    assert_string_equal(r.url, ask.url);
    assert_string_equal(line_of(&r, "content-range"), "bytes 0-6/7");
    assert_null(line_of(&r, "authorization")); /* the URL is a key already */
    const struct backend_list_ask list = {
        .prefix = "a/", .delimiter = "/", .start_after = "a/b", .token = "t=", .limit = 5000};
    ask = (struct backend_ask){.verb = BACKEND_LIST, .name = "", .list = &list};
    assert_int_equal(ask_for("gs://b/p?endpoint=http://h", &ask, a, &r), 0);
    assert_string_equal(
        r.url, "http://h/storage/v1/b/b/o?maxResults=1000"
               "&fields=items%28name%2Csize%2Cgeneration%2Cupdated%29%2Cprefixes%2CnextPageToken"
               "&prefix=p%2Fa%2F&delimiter=%2F&startOffset=p%2Fa%2Fb&pageToken=t%3D");
}

static void requests_that_copy(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct backend_request r;
    struct backend_write write = {.from = "a/b c", .from_etag = "\"12\""};
    const struct backend_ask ask = {
        .verb = BACKEND_REWRITE, .name = "n", .write = &write, .token = "tok"};
    assert_int_equal(ask_for("gs://b/p?endpoint=http://h", &ask, a, &r), 0);
    assert_int_equal(backend_method(&ask), HTTP_POST);
    assert_string_equal(r.url, "http://h/storage/v1/b/b/o/p%2Fa%2Fb%20c/rewriteTo/b/b/o/p%2Fn"
                               "?ifSourceGenerationMatch=12");
    assert_string_equal(line_of(&r, "authorization"), "Bearer tok");
    write.token = "t=/";
    assert_int_equal(ask_for("gs://b?endpoint=http://h", &ask, a, &r), 0);
    assert_string_equal(r.url, "http://h/storage/v1/b/b/o/a%2Fb%20c/rewriteTo/b/b/o/n"
                               "?ifSourceGenerationMatch=12&rewriteToken=t%3D%2F");
    write.from_etag = "\"md5\"";
    assert_int_equal(ask_for("gs://b?endpoint=http://h", &ask, a, &r), E_PRECONDITION);
}

static void answers_to_copies(void **unused)
{
    (void)unused;
    static const struct {
        const char *body, *token;
        int code;
    } rows[] = {
        {"{\"done\":true,\"rewriteToken\":\"t\",\"resource\":{}}", "", 0},
        {"{\"done\":false,\"rewriteToken\":\"t\"}", "t", 0},
        {"{\"done\":false}", NULL, E_BACKEND},
        {"{}", NULL, E_BACKEND},
        {"[true]", NULL, E_BACKEND},
        {"", NULL, E_BACKEND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        assert_int_equal(backend_gcs.copied(rows[i].body, strlen(rows[i].body), &out, NULL),
                         rows[i].code);
        if (rows[i].code == 0)
            assert_string_equal(buf_str(&out), rows[i].token);
    }
}

/* --- heads, answers --------------------------------------------------------------------------- */

struct fake_head {
    struct http_head head;
    const char *generation, *range;
};

static const char *fake_header(const struct http_head *head, const char *name)
{
    const struct fake_head *f = (const struct fake_head *)head;
    if (strcasecmp(name, "x-goog-generation") == 0)
        return f->generation;
    return strcasecmp(name, "Range") == 0 ? f->range : NULL;
}

static void fake_each(const struct http_head *head,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    (void)head;
    fn(ctx, "X-Goog-Meta-Colour", "Dark Blue");
    fn(ctx, "x-goog-hash", "md5=x");
}

static struct backend_facts facts_of(int status, const char *generation, const char *range)
{
    const struct fake_head f = {.head = {.status = status,
                                         .content_length = 0,
                                         .header = fake_header,
                                         .each_header = fake_each},
                                .generation = generation,
                                .range = range};
    struct backend_facts facts;
    backend_read_head(&backend_gcs, &f.head, &facts);
    return facts;
}

static void facts_of_heads(void **unused)
{
    (void)unused;
    assert_string_equal(facts_of(200, "1700000000000001", NULL).etag, "\"1700000000000001\"");
    assert_string_equal(facts_of(200, "17x", NULL).etag, "");
    struct backend_facts facts = facts_of(200, "1", NULL);
    assert_int_equal(facts.meta_len, sizeof "colour\0Dark Blue");
    assert_memory_equal(facts.meta, "colour\0Dark Blue", facts.meta_len);
    assert_string_equal(facts_of(200, NULL, NULL).etag, "");
    assert_int_equal(facts_of(308, NULL, "bytes=0-99").offset, 100);
    assert_int_equal(facts_of(308, NULL, "bytes=5-99").offset, 0);
    assert_int_equal(facts_of(308, NULL, NULL).offset, 0);
}

static void words(void **unused)
{
    (void)unused;
    static const struct {
        const char *body, *words;
    } rows[] = {
        {"{\"error\":{\"code\":404,\"message\":\"No such object: b/x\"}}", "No such object: b/x"},
        {"{\"error\":{\"message\":\"The specified bucket does not exist.\"}}",
         "NoSuchBucket: The specified bucket does not exist."},
        {"No such object: b/x\n", "No such object: b/x"},
        {"{\"error\":\"x\"}", ""},
        {"[1]", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        backend_gcs.words(rows[i].body, strlen(rows[i].body), &out);
        assert_string_equal(buf_str(&out), rows[i].words);
    }
}

static int read_page(const char *text, struct arena *a, struct backend_page *page)
{
    struct backend_spec spec;
    *page = (struct backend_page){.arena = a};
    assert_int_equal(backend_parse("gs://b/p", a, &spec, NULL), 0);
    return backend_gcs.page(&spec, text, strlen(text), page, NULL);
}

static void pages_of_names(void **unused)
{
    (void)unused;
    static const char text[] =
        "{\"items\":[{\"name\":\"p/a "
        "b\",\"size\":\"12\",\"generation\":\"7\",\"updated\":\"2009-10-12T17:50:30.123Z\"},"
        "{\"name\":\"other\",\"size\":\"1\"},{\"name\":\"p/\",\"size\":\"0\"}],"
        "\"prefixes\":[\"p/x/\"],\"nextPageToken\":\"t\"}";
    struct backend_page page;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    assert_int_equal(read_page(text, a, &page), 0);
    assert_int_equal(page.entry_count, 1);
    assert_string_equal(page.entries[0].name, "a b");
    assert_string_equal(page.entries[0].etag, "\"7\"");
    assert_int_equal(page.entries[0].size, 12);
    assert_int_equal(page.entries[0].modified_ms, 1255369830000);
    assert_string_equal(page.prefixes[0], "x/");
    assert_string_equal(page.token, "t");
    for (size_t len = 0; len < sizeof text - 1; len++) {
        _cleanup_free_ char *cut = strndup(text, len);
        assert_int_equal(read_page(cut, a, &page), E_BACKEND);
    }
    assert_int_equal(read_page("{}", a, &page), 0);
    assert_null(page.token);
    assert_int_equal(read_page("[]", a, &page), E_BACKEND);
    assert_int_equal(read_page("{\"items\":[{\"name\":\"p/a\",\"size\":\"x\"}]}", a, &page),
                     E_BACKEND);
    assert_int_equal(read_page("{\"prefixes\":[1]}", a, &page), E_BACKEND);
}

/* --- the key ---------------------------------------------------------------------------------- */

static void key_files_that_are_none(void **unused)
{
    (void)unused;
    static const char *const rows[] = {
        "",
        "{}",
        "{\"type\":\"authorized_user\"}",
        "{\"type\":\"service_account\",\"client_email\":\"e\"}",
        "{\"type\":\"service_account\",\"client_email\":7,\"private_key\":\"topsecret\"}",
        ("{\"type\":\"service_account\",\"client_email\":\"e\",\"private_key\":\"topsecret\","
         "\"token_uri\":\"ftp://x\"}"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(1024);
        struct google_key key;
        struct error err = ERROR_INIT;
        assert_int_equal(google_key_parse(rows[i], strlen(rows[i]), a, &key, &err),
                         E_BACKEND_DENIED);
        assert_null(strstr(err.message, "topsecret"));
    }
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    const struct google_key key = {
        .email = "e", .key_id = "", .private_key = "topsecret", .token_uri = "http://t"};
    assert_int_equal(google_key_sign(&key, 1, &out, &err), E_BACKEND_DENIED);
    assert_null(strstr(err.message, "topsecret"));
}

static char *pem_of(EVP_PKEY *key)
{
    char *data;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    long len = BIO_get_mem_data(bio, &data);
    char *text = strndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

/* Without what fills it up, and with the two other letters. */
static size_t from_base64url(const char *text, size_t len, unsigned char *out)
{
    char padded[4096];
    assert_true(len + 4 < sizeof padded);
    for (size_t i = 0; i < len; i++)
        padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    size_t full = len;
    while (full % 4 != 0)
        padded[full++] = '=';
    int got = EVP_DecodeBlock(out, (unsigned char *)padded, (int)full);
    assert_true(got >= 0);
    return (size_t)got - (full - len);
}

static void a_statement_is_signed(void **unused)
{
    (void)unused;
    _cleanup_buf_ struct buf out = BUF_INIT;
    EVP_PKEY *key = EVP_RSA_gen(2048);
    assert_non_null(key);
    _cleanup_free_ char *pem = pem_of(key);
    const struct google_key k = {
        .email = "me@x", .key_id = "id1", .private_key = pem, .token_uri = "http://t/token"};
    buf_puts(&out, "before=");
    assert_int_equal(google_key_sign(&k, 1000, &out, NULL), 0);
    const char *text = buf_str(&out) + strlen("before="), *dot = strchr(text, '.'),
               *last = strrchr(text, '.');
    unsigned char claims[2048], signature[1024];
    size_t len = from_base64url(dot + 1, (size_t)(last - dot - 1), claims);
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse((char *)claims, len, &doc, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(doc, "iss")), "me@x");
    assert_string_equal(json_string_value(json_object_get(doc, "aud")), "http://t/token");
    assert_int_equal(json_integer_value(json_object_get(doc, "exp")), 4600);
    size_t signature_len = from_base64url(last + 1, strlen(last + 1), signature);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(ctx, signature, signature_len, (const unsigned char *)text,
                                      (size_t)(last - text)),
                     1);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
}

static void logins_of_users(void **unused)
{
    (void)unused;
    static const char login[] = "{\"type\":\"authorized_user\",\"client_id\":\"a+b\","
                                "\"client_secret\":\"s/1\",\"refresh_token\":\"1//r&x\"}";
    static const char *const bad[] = {
        "[]",
        "{\"type\":\"external_account\"}",
        "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"refresh_token\":\"topsecret\"}",
        "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"client_secret\":\"topsecret\","
        "\"refresh_token\":\"\"}",
        "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"client_secret\":\"topsecret\","
        "\"refresh_token\":\"r\",\"token_uri\":\"file:///x\"}",
    };
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    struct error err = ERROR_INIT;
    assert_int_equal(google_question_of_file(login, strlen(login), 1, a, &q, &err), 0);
    assert_string_equal(q.body, "grant_type=refresh_token&client_id=a%2Bb&client_secret=s%2F1"
                                "&refresh_token=1%2F%2Fr%26x");
    assert_string_equal(q.url, "https://oauth2.googleapis.com/token");
    assert_false(q.is_metadata);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(google_question_of_file(bad[i], strlen(bad[i]), 1, a, &q, &err),
                         E_BACKEND_DENIED);
        assert_null(strstr(err.message, "topsecret"));
    }
}

/* The file that is named, else the machine; a file that is named and is not there is an error. */
static void sources_in_their_order(void **unused)
{
    (void)unused;
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct question q;
    struct error err = ERROR_INIT;
    setenv("CLOUDSDK_CONFIG", "/nowhere", 1);
    setenv("GCE_METADATA_HOST", "", 1);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    assert_int_equal(google_question_make(a, 1, &q, &err), 0);
    assert_true(q.is_metadata && q.method == HTTP_GET);
    assert_string_equal(q.url, "http://metadata.google.internal/computeMetadata/v1/instance/"
                               "service-accounts/default/token");
    assert_string_equal(q.headers[0], "metadata-flavor: Google");
    setenv("GCE_METADATA_HOST", "127.0.0.1:988", 1);
    assert_int_equal(google_question_make(a, 1, &q, &err), 0);
    assert_non_null(strstr(q.url, "http://127.0.0.1:988/computeMetadata/"));
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json", 1);
    assert_int_equal(google_question_make(a, 1, &q, &err), E_BACKEND_DENIED);
    assert_non_null(strstr(err.message, "'/nowhere/key.json' cannot be read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_read),     cmocka_unit_test(requests_that_write_and_list),
        cmocka_unit_test(requests_that_copy),     cmocka_unit_test(answers_to_copies),
        cmocka_unit_test(facts_of_heads),         cmocka_unit_test(words),
        cmocka_unit_test(pages_of_names),         cmocka_unit_test(key_files_that_are_none),
        cmocka_unit_test(a_statement_is_signed),  cmocka_unit_test(logins_of_users),
        cmocka_unit_test(sources_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
