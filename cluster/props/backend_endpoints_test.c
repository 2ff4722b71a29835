#include "cluster/props/backend_endpoints.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int check(const char *list, const char *url, struct error *err)
{
    struct backend_endpoints *e;
    if (backend_endpoints_new(list, &e, err) != 0)
        fail_msg("%s: %s", list, err->message);
    int code = backend_endpoints_check_url(e, url, err);
    backend_endpoints_free(e);
    return code;
}

static const struct {
    const char *list, *url;
    bool allowed;
} endpoints[] = {
    /* the providers' own */
    {"", "s3://b", true},
    {"", "s3://b?region=eu-central-1", true},
    {"", "s3://b?endpoint=https://s3.eu-central-1.amazonaws.com", true},
    {"", "s3://b?endpoint=HTTPS://S3.EU-CENTRAL-1.AMAZONAWS.COM:443/", false}, /* no URL here */
    {"", "s3://b?endpoint=https://S3.EU-CENTRAL-1.AMAZONAWS.COM:443/", true},
    {"", "s3://b?endpoint=https://s3.dualstack.us-west-2.amazonaws.com", true},
    {"", "s3://b?endpoint=https://s3-fips.us-west-2.amazonaws.com", true},
    {"", "s3://b?endpoint=https://s3.cn-north-1.amazonaws.com.cn", true},
    {"", "s3://b?endpoint=https://s3.amazonaws.com", true},
    {"", "gs://b", true},
    {"", "gs://b?endpoint=https://storage.googleapis.com", true},
    /* others, and what looks like them */
    {"", "s3://b?endpoint=http://s3.eu-central-1.amazonaws.com", false},
    {"", "s3://b?endpoint=https://s3.eu-central-1.amazonaws.com:8443", false},
    {"", "s3://b?endpoint=https://s3.eu-central-1.amazonaws.com/path", false},
    {"", "s3://b?endpoint=https://s3.eu-central-1.amazonaws.com.evil.example", false},
    {"", "s3://b?endpoint=https://evils3.eu-central-1.amazonaws.com", false},
    {"", "s3://b?endpoint=https://s3.a.b.amazonaws.com", false},
    {"", "s3://b?endpoint=https://x.execute-api.us-east-1.amazonaws.com", false},
    {"", "s3://b?endpoint=https://s3.us-east-1%252eevil.example/.amazonaws.com", false},
    {"", "s3://b?endpoint=https://storage.googleapis.com", false},
    {"", "gs://b?endpoint=https://storage.googleapis.com.evil.example", false},
    {"", "gs://b?endpoint=http://storage.googleapis.com", false},
    {"", "gs://b?endpoint=https://s3.amazonaws.com", false},
    {"", "gs://b?endpoint=http://127.0.0.1:36800", false},
    /* without credentials */
    {"", "s3://b?endpoint=http://evil.example&auth=none", true},
    {"", "gs://b?endpoint=http://evil.example&auth=none", true},
    {"", "http://evil.example/data", true},
    {"", "dfc://b?endpoint=http://evil.example", true},
    /* rows */
    {"s3 http://minio:9000", "s3://b?endpoint=http://minio:9000", true},
    {" s3   http://MINIO:9000/   default ", "s3://b?endpoint=http://minio:9000/", true},
    {"s3 https://minio:443", "s3://b?endpoint=https://minio", true},
    {"s3 http://minio:80", "s3://b?endpoint=http://minio", true},
    {"s3 http://minio:9000", "s3://b?endpoint=http://minio:9001", false},
    {"s3 http://minio:9000", "s3://b?endpoint=https://minio:9000", false},
    {"s3 http://minio:9000", "s3://b?endpoint=http://minio:9000/other", false},
    {"s3 http://minio:9000/gw", "s3://b?endpoint=http://minio:9000/gw", true},
    {"s3 http://minio:9000", "gs://b?endpoint=http://minio:9000", false},
    {"gcs http://gcs:4443", "gs://b?endpoint=http://gcs:4443", true},
    {"s3 http://a,gcs http://b", "gs://b?endpoint=http://b", true},
    /* any port */
    {"s3 http://127.0.0.1:*", "s3://b?endpoint=http://127.0.0.1:36800", true},
    {"s3 http://127.0.0.1:*", "s3://b?endpoint=http://127.0.0.1", true},
    {"s3 http://127.0.0.1:*", "s3://b?endpoint=http://127.0.0.1.evil.example:80", false},
    {"s3 http://127.0.0.1:*", "s3://b?endpoint=http://127.0.0.1:80/x", false},
    {"s3 http://127.0.0.1:*", "s3://b?endpoint=http://127.0.0.10:80", false},
    {"s3 http://[::1]:*", "s3://b?endpoint=http://[::1]:9000", true},
    /* profiles */
    {"", "s3://b?profile=training", false},
    {"s3 own training", "s3://b?profile=training", true},
    {"s3 own training", "s3://b?profile=other", false},
    {"s3 own *", "s3://b?profile=other", true},
    {"s3 own training", "s3://b?profile=training&endpoint=http://minio:9000", false},
    {"s3 http://minio:9000 training", "s3://b?endpoint=http://minio:9000", false},
    {"s3 http://minio:9000 training", "s3://b?endpoint=http://minio:9000&profile=training", true},
    {"s3 http://minio:9000", "s3://b?endpoint=http://minio:9000&profile=training", false},
    {"s3 http://minio:9000 *", "s3://b?endpoint=http://minio:9000", true},
    {"s3 http://minio:9000 *", "s3://b?endpoint=http://minio:9000&profile=training", true},
    {"s3 own *", "s3://b?endpoint=http://s3.amazonaws.com", false},
};

static void test_which_are_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        struct error err = ERROR_INIT;
        int code = check(endpoints[i].list, endpoints[i].url, &err);
        /* what is no backend at all is refused by whom reads it */
        bool unread = strstr(endpoints[i].url, "HTTPS://") != NULL;
        if ((code == 0) != (endpoints[i].allowed || unread))
            fail_msg("'%s' and %s: %s", endpoints[i].list, endpoints[i].url, err.message);
    }
}

static void says(const char *url, const char *row)
{
    struct error err = ERROR_INIT;
    assert_int_equal(check("", url, &err), E_BACKEND_DENIED);
    if (strstr(err.message, row) == NULL)
        fail_msg("%s: %s", url, err.message);
    _cleanup_free_ char *list = xstrndup(row + 1, strlen(row) - 2); /* without the quotes */
    assert_int_equal(check(list, url, &err), 0);
}

static void test_the_sentence_gives_the_row(void **state)
{
    (void)state;
    says("s3://b?endpoint=http://minio:9000/", "'s3 http://minio:9000'");
    says("s3://b?endpoint=http://minio:9000&profile=training", "'s3 http://minio:9000 training'");
    says("s3://b?profile=training&region=eu-west-1", "'s3 own training'");
    says("gs://b?endpoint=http://127.0.0.1:80", "'gcs http://127.0.0.1'");
}

static void test_rows_that_are_none(void **state)
{
    (void)state;
    static const char *const rows[] = {
        ",",
        "s3",
        "s3 minio:9000",
        "s3 http://",
        "s3 http://:9000",
        "s3 http://a b c",
        "http http://a",
        "dfc http://a",
        "gs http://a",
        "gcs http://a profile",
        "s3 ftp://a",
        "s3 http://u:p@a",
        "s3 http://a?x",
        "s3 http://a,",
        ",s3 http://a",
        "s3 http://a,,s3 http://b",
        "s3 OWN",
        "s3 http:///a",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct backend_endpoints *e = NULL;
        struct error err = ERROR_INIT;
        if (backend_endpoints_new(rows[i], &e, &err) != E_INVALID)
            fail_msg("'%s' was taken", rows[i]);
        assert_null(e);
    }
    _cleanup_(buf_done)
    struct buf many = BUF_INIT;
    for (int i = 0; i < 257; i++)
        buf_printf(&many, "%ss3 http://a", i > 0 ? "," : "");
    struct backend_endpoints *e = NULL;
    assert_int_equal(backend_endpoints_new(buf_str(&many), &e, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_are_allowed),
        cmocka_unit_test(test_the_sentence_gives_the_row),
        cmocka_unit_test(test_rows_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
