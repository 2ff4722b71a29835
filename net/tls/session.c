#include "net/tls/session.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sys/socket.h>

#include "common/mem.h"
#include "net/tls/pair.h"
#include "net/tls/tls.h"

struct tls_session {
    SSL *ssl;
    int fd;
    bool drained; /* the socket had less than was asked for: a read would tell nothing new */
};

/* --- the socket and the buffer as OpenSSL's other ends ---------------------------------------- */

/* As OpenSSL's own, but it spares the read that would only say EAGAIN. */
static int source_read(BIO *bio, char *to, int room)
{
    struct tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = s->drained ? -1 : recv(s->fd, to, (size_t)room, 0);
    if (n < 0 && (s->drained || errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    s->drained = n != 0 && n < room;
    return (int)n;
}

static int sink_write(BIO *bio, const char *data, int len)
{
    buf_append(BIO_get_data(bio), data, (size_t)len);
    return len;
}

static long no_ctrl(BIO *bio, int what, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return what == BIO_CTRL_FLUSH; /* of all other wishes none is granted */
}

static BIO_METHOD *source_method, *sink_method;

static void make_methods(void)
{
    source_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "source");
    sink_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sink");
    assert(source_method != NULL && BIO_meth_set_read(source_method, source_read) == 1 &&
           BIO_meth_set_ctrl(source_method, no_ctrl) == 1);
    assert(sink_method != NULL && BIO_meth_set_write(sink_method, sink_write) == 1 &&
           BIO_meth_set_ctrl(sink_method, no_ctrl) == 1);
}

static BIO *end_new(BIO_METHOD *method, void *data)
{
    BIO *bio = BIO_new(method);
    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, data);
    BIO_set_init(bio, 1);
    return bio;
}

/* --- the session ------------------------------------------------------------------------------ */

struct tls_session *tls_session_new(struct tls *t, int fd, struct buf *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_methods);
    struct tls_session *s = xcalloc(1, sizeof *s);
    *s = (struct tls_session){.ssl = tls_accept(t), .fd = fd};
    BIO *source = end_new(source_method, s), *sink = end_new(sink_method, out);
    if (s->ssl == NULL || source == NULL || sink == NULL) {
        BIO_free(source);
        BIO_free(sink);
        tls_session_free(s);
        return NULL;
    }
    SSL_set_bio(s->ssl, source, sink);
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
    s->drained = false;
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

/* Why no more was read.  An end, or an error, is for the next read to tell, if this one has bytes:
 * then the session must not look drained. */
static ssize_t no_bytes(struct tls_session *s, int rc)
{
    int why = SSL_get_error(s->ssl, rc);
    ERR_clear_error();
    if (why != SSL_ERROR_WANT_READ)
        s->drained = false;
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = why == SSL_ERROR_WANT_READ ? EAGAIN : EPROTO;
    return -1;
}

/* A record at a time: as many as are there, so that the caller gets large pieces. */
ssize_t tls_session_read(struct tls_session *s, char *to, size_t room)
{
    size_t got = 0;
    ERR_clear_error();
    s->drained = false;
    while (got < room && got < TLS_READ_BYTES && !tls_session_is_drained(s)) {
        size_t left = room - got;
        int n = SSL_read(s->ssl, to + got, left < TLS_READ_BYTES ? (int)left : TLS_READ_BYTES);
        if (n <= 0) {
            ssize_t none = no_bytes(s, n);
            return got > 0 ? (ssize_t)got : none;
        }
        got += (size_t)n;
    }
    return (ssize_t)got;
}

bool tls_session_is_drained(const struct tls_session *s)
{
    return s->drained && SSL_has_pending(s->ssl) == 0;
}

bool tls_session_write(struct tls_session *s, const void *data, size_t len)
{
    size_t written = 0;
    return len == 0 || (SSL_write_ex(s->ssl, data, len, &written) == 1 && written == len);
}

void tls_session_end(struct tls_session *s)
{
    ERR_clear_error();
    if (SSL_is_init_finished(s->ssl))
        SSL_shutdown(s->ssl);
    ERR_clear_error();
}
