#include "net/tls/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "net/testing/certificate.h"
#include "net/tls/pair.h"

enum { DAY_S = 24 * 3600 };

static char dir[64], cert[80], key[80];

static void name_files(const char *cert_name, const char *key_name)
{
    snprintf(cert, sizeof cert, "%s/%s", dir, cert_name);
    snprintf(key, sizeof key, "%s/%s", dir, key_name);
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/dfc-tls-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    certificate_write(dir, "a", 0, DAY_S);
    name_files("a.crt", "a.key");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    _cleanup_free_ char *command = xprintf("rm -r '%s'", dir);
    return system(command);
}

static void refused(const char *why)
{
    SSL_CTX *ctx;
    int64_t expires_s;
    struct error err = ERROR_INIT;
    assert_int_not_equal(tls_pair_load(cert, key, &ctx, &expires_s, &err), 0);
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' says nothing of '%s'", err.message, why);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* --- a pair is taken whole or not at all ------------------------------------------------------ */

static void test_good(void **state)
{
    (void)state;
    SSL_CTX *ctx;
    int64_t expires_s;
    struct error err = ERROR_INIT;
    assert_int_equal(tls_pair_load(cert, key, &ctx, &expires_s, &err), 0);
    SSL_CTX_free(ctx);
    assert_true(expires_s > time(NULL) + DAY_S - 60 && expires_s <= time(NULL) + DAY_S);
}

static void test_dates(void **state)
{
    (void)state;
    certificate_write(dir, "a", -2 * DAY_S, -DAY_S);
    refused("expired on 20");
    certificate_write(dir, "a", DAY_S, 2 * DAY_S);
    refused("is valid only from 20");
}

static void test_mismatch(void **state)
{
    (void)state;
    certificate_write(dir, "b", 0, DAY_S);
    name_files("a.crt", "b.key");
    refused("does not fit the certificate");
}

static void test_unreadable(void **state)
{
    (void)state;
    assert_int_equal(chmod(key, 0644), 0);
    refused("chmod 600");
    assert_int_equal(unlink(key), 0);
    refused("a.key': No such file");
    assert_int_equal(unlink(cert), 0);
    refused("a.crt': No such file");
}

static void test_no_pem(void **state)
{
    (void)state;
    write_text(key, "nonsense\n");
    refused("is no key in PEM");
    write_text(cert, "nonsense\n");
    refused("is no certificate in PEM");
}

/* Nobody is asked for it. */
static void test_pass_phrase(void **state)
{
    (void)state;
    _cleanup_free_ char *command =
        xprintf("cd '%s' && openssl pkey -aes256 -passout pass:secret -in a.key -out b.key "
                "2>/dev/null && chmod 600 b.key",
                dir);
    assert_int_equal(system(command), 0);
    name_files("a.crt", "b.key");
    refused("without a pass phrase");
}

/* --- renewal ---------------------------------------------------------------------------------- */

static struct tls *start(void)
{
    struct tls *t;
    struct error err = ERROR_INIT;
    if (tls_new(cert, key, &t, &err) != 0)
        fail_msg("%s", err.message);
    return t;
}

static void test_renewal(void **state)
{
    (void)state;
    struct tls *t = start();
    int64_t first_s = tls_expires_s(t);
    tls_renew(t, false); /* the same files */
    assert_int_equal(tls_expires_s(t), first_s);
    certificate_write(dir, "a", 0, 30 * DAY_S);
    tls_renew(t, false);
    assert_true(tls_expires_s(t) > first_s);
    tls_free(t);
}

static void test_bad_renewal(void **state)
{
    (void)state;
    struct tls *t = start();
    int64_t first_s = tls_expires_s(t);
    write_text(cert, "nonsense\n");
    tls_renew(t, false);
    tls_renew(t, true);
    assert_int_equal(tls_expires_s(t), first_s);
    SSL *ssl = tls_accept(t);
    assert_non_null(ssl);
    SSL_free(ssl);
    certificate_write(dir, "a", 0, 30 * DAY_S);
    tls_renew(t, false);
    assert_true(tls_expires_s(t) > first_s);
    tls_free(t);
}

static void test_warning(void **state)
{
    (void)state;
    certificate_write(dir, "a", 0, 2 * 3600 + 1800);
    struct tls *t = start();
    _cleanup_free_ char *soon = tls_warning(t);
    assert_non_null(strstr(soon, "expires in 2 h: renew it"));
    certificate_write(dir, "a", 0, 15 * DAY_S);
    tls_renew(t, false);
    assert_null(tls_warning(t));
    tls_free(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_good),       TEST(test_dates),       TEST(test_mismatch),
        TEST(test_unreadable), TEST(test_no_pem),      TEST(test_pass_phrase),
        TEST(test_renewal),    TEST(test_bad_renewal), TEST(test_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
