#include "net/tls/session.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>

#include "common/mem.h"
#include "net/tls/pair.h"
#include "net/tls/tls.h"

struct tls_session {
    SSL *ssl;
};

/* --- the buffer as OpenSSL's other end -------------------------------------------------------- */

static int sink_write(BIO *bio, const char *data, int len)
{
    buf_append(BIO_get_data(bio), data, (size_t)len);
    return len;
}

static long sink_ctrl(BIO *bio, int what, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return what == BIO_CTRL_FLUSH; /* of all other wishes none is granted */
}

static BIO_METHOD *sink_method;

static void sink_make_method(void)
{
    sink_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sink");
    assert(sink_method != NULL && BIO_meth_set_write(sink_method, sink_write) == 1 &&
           BIO_meth_set_ctrl(sink_method, sink_ctrl) == 1);
}

static BIO *sink_new(struct buf *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, sink_make_method);
    BIO *bio = BIO_new(sink_method);
    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, out);
    BIO_set_init(bio, 1);
    return bio;
}

/* --- the session ------------------------------------------------------------------------------ */

struct tls_session *tls_session_new(struct tls *t, int fd, struct buf *out)
{
    SSL *ssl = tls_accept(t);
    BIO *in = BIO_new_socket(fd, BIO_NOCLOSE), *sink = sink_new(out);
    if (ssl == NULL || in == NULL || sink == NULL) {
        SSL_free(ssl);
        BIO_free(in);
        BIO_free(sink);
        return NULL;
    }
    SSL_set_bio(ssl, in, sink);
    struct tls_session *s = xcalloc(1, sizeof *s);
    s->ssl = ssl;
    return s;
}

void tls_session_free(struct tls_session *s)
{
    if (s == NULL)
        return;
    SSL_free(s->ssl);
    free(s);
}

enum tls_shake tls_session_shake(struct tls_session *s, struct error *err)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(s->ssl);
    if (rc == 1)
        return TLS_SHAKEN;
    if (SSL_get_error(s->ssl, rc) == SSL_ERROR_WANT_READ)
        return TLS_SHAKES;
    if (ERR_peek_error() == 0)
        error_set(err, E_IO, "the client left in the handshake");
    else
        error_set(err, E_IO, "handshake: %s", tls_error_text());
    return TLS_FAILED;
}

/* Why nothing was read. */
static ssize_t no_bytes(struct tls_session *s, int rc)
{
    int why = SSL_get_error(s->ssl, rc);
    ERR_clear_error();
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = why == SSL_ERROR_WANT_READ ? EAGAIN : EPROTO;
    return -1;
}

/* A record at a time: as many as are there, so that the caller gets large pieces. */
ssize_t tls_session_read(struct tls_session *s, char *to, size_t room)
{
    size_t got = 0;
    while (got < room && got < TLS_READ_BYTES) {
        size_t left = room - got;
        ERR_clear_error();
        int n = SSL_read(s->ssl, to + got, left < TLS_READ_BYTES ? (int)left : TLS_READ_BYTES);
        if (n <= 0)
            return got > 0 ? (ssize_t)got : no_bytes(s, n);
        got += (size_t)n;
    }
    return (ssize_t)got;
}

bool tls_session_write(struct tls_session *s, const void *data, size_t len)
{
    size_t written = 0;
    ERR_clear_error();
    return len == 0 || (SSL_write_ex(s->ssl, data, len, &written) == 1 && written == len);
}

void tls_session_end(struct tls_session *s)
{
    ERR_clear_error();
    if (SSL_is_init_finished(s->ssl))
        SSL_shutdown(s->ssl);
    ERR_clear_error();
}
