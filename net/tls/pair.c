#include "net/tls/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/auth/secret_file.h"

DEFINE_CLEANUP(SSL_CTX, SSL_CTX_free);
DEFINE_CLEANUP(EVP_PKEY, EVP_PKEY_free);
DEFINE_CLEANUP(BIO, BIO_free_all);

const char *tls_error_text(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return text != NULL ? text : "unknown error";
}

/* --- the key ---------------------------------------------------------------------------------- */

/* A key under a pass phrase is refused: OpenSSL would ask for it at the terminal. */
static int no_pass_phrase(char *out, int size, int rwflag, void *arg)
{
    (void)out;
    (void)size;
    (void)rwflag;
    (void)arg;
    return -1;
}

static int check_mode(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_errno(err, errno, "tls_key '%s'", path);
    if (secret_file_check_mode(st.st_uid, st.st_mode, geteuid(), err) != 0)
        return error_wrap(err, "tls_key '%s'", path);
    return 0;
}

static int load_key(SSL_CTX *ctx, const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "tls_key '%s'", path);
    _cleanup_(BIO_free_allp)
    BIO *bio = BIO_new_fd(fd, BIO_CLOSE);
    int rc = check_mode(fd, path, err);
    if (rc != 0)
        return rc;
    _cleanup_(EVP_PKEY_freep)
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL);
    if (key == NULL)
        return error_set(err, E_INVALID, "tls_key '%s' is no key in PEM without a pass phrase: %s",
                         path, tls_error_text());
    if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
        return error_set(err, E_INVALID, "tls_key '%s' does not fit the certificate: %s", path,
                         tls_error_text());
    return 0;
}

/* --- the certificate -------------------------------------------------------------------------- */

static int64_t unix_time(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static int check_dates(const X509 *cert, const char *path, int64_t *expires_s, struct error *err)
{
    int64_t begins_s = unix_time(X509_get0_notBefore(cert)), now_s = time(NULL);
    char text[32];
    *expires_s = unix_time(X509_get0_notAfter(cert));
    bool early = begins_s > now_s;
    if (!early && *expires_s > now_s)
        return 0;
    time_t when = early ? begins_s : *expires_s;
    struct tm tm;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&when, &tm));
    return error_set(err, E_INVALID, "tls_cert '%s' %s %s", path,
                     early ? "is valid only from" : "expired on", text);
}

static int load_cert(SSL_CTX *ctx, const char *path, int64_t *expires_s, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "tls_cert '%s'", path);
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1)
        return error_set(err, E_INVALID, "tls_cert '%s' is no certificate in PEM: %s", path,
                         tls_error_text());
    return check_dates(SSL_CTX_get0_certificate(ctx), path, expires_s, err);
}

/* --- what is spoken --------------------------------------------------------------------------- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl;
    (void)arg;
    int rc =
        SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof ours - 1, in, in_len);
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL)
        return NULL;
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);            /* a read ends with each record */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory */
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_read_buffer_len(ctx, TLS_READ_BYTES);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
        SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

int tls_pair_load(const char *cert_file, const char *key_file, SSL_CTX **out, int64_t *expires_s,
                  struct error *err)
{
    _cleanup_(SSL_CTX_freep)
    SSL_CTX *ctx = context_new();
    if (ctx == NULL)
        return error_set(err, E_INTERNAL, "TLS cannot be set up: %s", tls_error_text());
    int rc = load_cert(ctx, cert_file, expires_s, err);
    if (rc == 0)
        rc = load_key(ctx, key_file, err);
    if (rc == 0)
        *out = steal(ctx);
    return rc;
}
