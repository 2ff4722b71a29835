#include "net/tls/session.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sys/socket.h>

#include "common/mem.h"
#include "net/tls/pair.h"
#include "net/tls/tls.h"

/* What a peer may do to a thread that others wait for.  OpenSSL goes through all that it has been
 * given before it returns, if that has no data. */
enum {
    CALL_RECORDS = 64,  /* with data, in a call of tls_session_read() */
    KEY_UPDATES = 32,   /* without data between them */
    LEAST_PIECE = 4096, /* bytes that are read of a socket at first; twice as many each time, up to
                         * TLS_READ_BYTES, while the socket has so many */
};

struct tls_session {
    SSL *ssl;
    int fd;
    bool to_the_end; /* of this call: the peer has ended, and that is to be heard */
    bool drained;    /* the socket had less than was asked for: a read would tell nothing new */
    bool asked;      /* of this call: for more than there is */
    bool mute;       /* of this call: the last record had no data */
    size_t piece;    /* that the next read of the socket takes at most */
    unsigned key_updates; /* since there was data */
};

/* --- the socket and the buffer as OpenSSL's other ends ---------------------------------------- */

/* As OpenSSL's own, but it spares the read that would only say EAGAIN. */
static int source_read(BIO *bio, char *to, int room)
{
    struct tls_session *s = BIO_get_data(bio);
    size_t piece = (size_t)room < s->piece ? (size_t)room : s->piece;
    BIO_clear_retry_flags(bio);
    if (s->key_updates > KEY_UPDATES)
        return -1;
    ssize_t n = s->drained ? -1 : recv(s->fd, to, piece, 0);
    if (n < 0 && (s->drained || errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(bio);
        s->asked = s->drained || errno == EAGAIN;
    }
    bool all = n < 0 || (size_t)n < piece;
    s->drained = all && n != 0 && !s->to_the_end;
    s->piece = all ? LEAST_PIECE : s->piece < TLS_READ_BYTES ? 2 * s->piece : TLS_READ_BYTES;
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

static void heard(int is_ours, int version, int type, const void *data, size_t len, SSL *ssl,
                  void *arg)
{
    struct tls_session *s = arg;
    (void)version;
    (void)ssl;
    if (!is_ours && type == SSL3_RT_HANDSHAKE && len > 0 &&
        *(const unsigned char *)data == SSL3_MT_KEY_UPDATE)
        s->key_updates++;
}

struct tls_session *tls_session_new(struct tls *t, int fd, struct buf *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_methods);
    struct tls_session *s = xcalloc(1, sizeof *s);
    *s = (struct tls_session){.ssl = tls_accept(t), .fd = fd, .piece = LEAST_PIECE};
    BIO *source = end_new(source_method, s), *sink = end_new(sink_method, out);
    if (s->ssl == NULL || source == NULL || sink == NULL) {
        BIO_free(source);
        BIO_free(sink);
        tls_session_free(s);
        return NULL;
    }
    SSL_set_bio(s->ssl, source, sink);
    SSL_set_msg_callback(s->ssl, heard);
    SSL_set_msg_callback_arg(s->ssl, s);
    return s;
}

void tls_session_free(struct tls_session *s)
{
    if (s == NULL)
        return;
    SSL_free(s->ssl);
    free(s);
}

static void begin(struct tls_session *s, bool to_the_end)
{
    ERR_clear_error();
    s->to_the_end = to_the_end;
    s->drained = s->asked = s->mute = false;
}

enum tls_shake tls_session_shake(struct tls_session *s, bool to_the_end, struct error *err)
{
    begin(s, to_the_end);
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

enum step { READ_DATA, READ_MUTE, READ_NO_MORE, READ_ENDED, READ_FAILED };

static enum step why_none(struct tls_session *s, int rc)
{
    int why = SSL_get_error(s->ssl, rc);
    ERR_clear_error();
    s->mute = true;
    if (why == SSL_ERROR_WANT_READ)
        return s->asked ? READ_NO_MORE : READ_MUTE;
    s->drained = s->asked = false; /* if there is data, the next call tells the rest */
    return why == SSL_ERROR_ZERO_RETURN ? READ_ENDED : READ_FAILED;
}

/* One record, or what the one before has left. */
static enum step read_record(struct tls_session *s, char *to, size_t room, size_t *got)
{
    int n = SSL_read(s->ssl, to, room < TLS_READ_BYTES ? (int)room : TLS_READ_BYTES);
    enum step step = n > 0 ? READ_DATA : why_none(s, n);
    if (step == READ_DATA) {
        *got += (size_t)n;
        s->key_updates = 0;
        s->mute = false;
    }
    return step;
}

/* As many records as are there, so that the caller gets large pieces. */
ssize_t tls_session_read(struct tls_session *s, char *to, size_t room, bool to_the_end)
{
    enum step step = READ_DATA;
    size_t got = 0;
    begin(s, to_the_end);
    for (unsigned i = 0; i < CALL_RECORDS && step <= READ_MUTE; i++) {
        if (got == room || got >= TLS_READ_BYTES || tls_session_is_drained(s))
            break;
        step = read_record(s, to + got, room - got, &got);
    }
    if (got > 0)
        return (ssize_t)got;
    errno = step == READ_FAILED ? EPROTO : EAGAIN;
    return step == READ_ENDED ? 0 : -1;
}

/* From OpenSSL 3.2 on SSL_has_pending() does not know of the bytes that came with new keys. */
bool tls_session_is_drained(const struct tls_session *s)
{
    return s->asked || (s->drained && !s->mute && SSL_has_pending(s->ssl) == 0);
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
