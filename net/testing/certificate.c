#include "net/testing/certificate.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "net/tls/tls.h"

static void add_names(X509 *cert)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *names =
        X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    assert_non_null(names);
    assert_int_equal(X509_add_ext(cert, names, -1), 1);
    X509_EXTENSION_free(names);
}

static X509 *make_certificate(EVP_PKEY *key, int64_t from_s, int64_t to_s)
{
    X509 *cert = X509_new();
    assert_int_equal(X509_set_version(cert, X509_VERSION_3), 1);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), to_s);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(cert, name);
    X509_set_pubkey(cert, key);
    add_names(cert);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    return cert;
}

static FILE *create(const char *dir, const char *name, const char *ending)
{
    _cleanup_free_ char *path = xprintf("%s/%s.%s", dir, name, ending);
    unlink(path); /* the mode is that of a new file */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fdopen(fd, "w");
}

void certificate_write(const char *dir, const char *name, int64_t from_s, int64_t to_s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = make_certificate(key, from_s, to_s);
    FILE *f = create(dir, name, "crt");
    assert_int_equal(PEM_write_X509(f, cert), 1);
    assert_int_equal(fclose(f), 0);
    f = create(dir, name, "key");
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(f), 0);
    X509_free(cert);
    EVP_PKEY_free(key);
}

struct tls *certificate_tls(void)
{
    char dir[] = "/tmp/dfc-certificate-XXXXXX";
    assert_non_null(mkdtemp(dir));
    certificate_write(dir, "a", 0, 24 * 3600);
    _cleanup_free_ char *cert = xprintf("%s/a.crt", dir), *key = xprintf("%s/a.key", dir);
    struct tls *t;
    struct error err = ERROR_INIT;
    if (tls_new(cert, key, &t, &err) != 0)
        fail_msg("%s", err.message);
    unlink(cert);
    unlink(key);
    rmdir(dir);
    return t;
}
