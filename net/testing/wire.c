#include "net/testing/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/parse.h"

enum { PATIENCE_MS = 20000 }; /* a hang is a failure, not a hang */

bool wire_speaks_tls;

/* From libuv 1.45 on the end of a loop, which has a ring of io_uring, interrupts a call of the
 * thread that has begun the loop.  A socket with a time limit gives EINTR then, and is asked again
 * here. */
static bool was_interrupted(SSL *tls, int rc)
{
    if (rc > 0 || errno != EINTR)
        return false;
    int why = SSL_get_error(tls, rc);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

static void forget_errors(void)
{
    ERR_clear_error();
    errno = 0;
}

/* --- the connection --------------------------------------------------------------------------- */

static void set_patience(int fd, unsigned ms)
{
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)ms % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static struct wire connect_from(uint16_t port, uint32_t address)
{
    struct wire w = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(w.fd >= 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    assert_int_equal(bind(w.fd, (const struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(w.fd, (struct sockaddr *)&to, sizeof to), 0);
    set_patience(w.fd, PATIENCE_MS);
    return w;
}

static SSL *shake_hands(int fd)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *tls = SSL_new(ctx);
    SSL_CTX_free(ctx);
    assert_int_equal(SSL_set_fd(tls, fd), 1);
    int rc;
    do {
        forget_errors();
        rc = SSL_connect(tls); /* or it is as a plain connection that is closed at once */
    } while (was_interrupted(tls, rc));
    ERR_clear_error();
    return tls;
}

struct wire wire_open(uint16_t port)
{
    return wire_open_from(port, INADDR_LOOPBACK);
}

struct wire wire_open_from(uint16_t port, uint32_t address)
{
    struct wire w = connect_from(port, address);
    if (wire_speaks_tls)
        w.tls = shake_hands(w.fd);
    return w;
}

struct wire wire_open_plain(uint16_t port)
{
    return connect_from(port, INADDR_LOOPBACK);
}

void wire_close(struct wire *w)
{
    SSL_free(w->tls);
    close(w->fd);
    buf_done(&w->in);
}

static bool send_plain(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(send(fd, at, len, MSG_NOSIGNAL));
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* --- two threads on one session of TLS: each seals and opens in turn, and waits alone --------- */

static pthread_mutex_t duplex_lock = PTHREAD_MUTEX_INITIALIZER; /* any session of a duplex wire */

void wire_make_duplex(struct wire *w)
{
    w->duplex = w->tls != NULL;
    if (w->duplex)
        SSL_set_bio(w->tls, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
}

static bool send_sealed(struct wire *w, const char *at, size_t len)
{
    struct buf sealed = BUF_INIT;
    pthread_mutex_lock(&duplex_lock);
    bool ok = SSL_write(w->tls, at, (int)len) == (int)len;
    char *data;
    long n = BIO_get_mem_data(SSL_get_wbio(w->tls), &data);
    buf_append(&sealed, data, (size_t)n);
    (void)BIO_reset(SSL_get_wbio(w->tls));
    pthread_mutex_unlock(&duplex_lock);
    ok = ok && send_plain(w->fd, sealed.data, sealed.len);
    buf_done(&sealed);
    return ok;
}

static int open_sealed(struct wire *w, const char *sealed, size_t len, char *to, int room)
{
    pthread_mutex_lock(&duplex_lock);
    if (len > 0)
        BIO_write(SSL_get_rbio(w->tls), sealed, (int)len);
    int n = SSL_read(w->tls, to, room);
    int why = SSL_get_error(w->tls, n);
    w->ended = w->ended || why == SSL_ERROR_ZERO_RETURN;
    pthread_mutex_unlock(&duplex_lock);
    return n > 0 ? n : why == SSL_ERROR_WANT_READ ? -1 : 0;
}

static ssize_t receive_sealed(struct wire *w, char *to, int room)
{
    char sealed[16 * 1024];
    int n = open_sealed(w, NULL, 0, to, room);
    while (n < 0) {
        ssize_t got = wire_recv_plain(w, sealed, sizeof sealed);
        if (got < 0)
            assert_int_equal(errno, ECONNRESET);
        if (got <= 0)
            return 0;
        n = open_sealed(w, sealed, (size_t)got, to, room);
    }
    return n;
}

/* --- sending and receiving -------------------------------------------------------------------- */

static bool send_record(struct wire *w, const char *at, int len)
{
    int n;
    do {
        forget_errors();
        n = SSL_write(w->tls, at, len);
    } while (was_interrupted(w->tls, n));
    return n == len;
}

static bool send_tls(struct wire *w, const char *at, size_t len)
{
    enum { RECORD = 16 * 1024 };
    for (size_t n; len > 0; at += n, len -= n) {
        n = len < RECORD ? len : RECORD;
        if (w->duplex ? !send_sealed(w, at, n) : !send_record(w, at, (int)n))
            return false;
    }
    return true;
}

bool wire_try_send(struct wire *w, const void *data, size_t len)
{
    return w->tls != NULL ? send_tls(w, data, len) : send_plain(w->fd, data, len);
}

void wire_send(struct wire *w, const void *data, size_t len)
{
    assert_true(wire_try_send(w, data, len));
}

void wire_print(struct wire *w, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    wire_send(w, text.data, text.len);
    buf_done(&text);
}

static ssize_t receive_tls(struct wire *w, char *to, int room)
{
    int n;
    do {
        forget_errors();
        n = SSL_read(w->tls, to, room);
    } while (was_interrupted(w->tls, n));
    int why = SSL_get_error(w->tls, n);
    assert_int_not_equal(why, SSL_ERROR_WANT_READ); /* nothing came in time */
    w->ended = w->ended || why == SSL_ERROR_ZERO_RETURN;
    return n > 0 ? n : 0;
}

ssize_t wire_recv_plain(struct wire *w, void *to, size_t room)
{
    return TEMP_FAILURE_RETRY(recv(w->fd, to, room, 0));
}

static ssize_t receive(struct wire *w, char *to, int room)
{
    if (w->duplex)
        return receive_sealed(w, to, room);
    if (w->tls != NULL)
        return receive_tls(w, to, room);
    ssize_t n = wire_recv_plain(w, to, (size_t)room);
    if (n < 0)
        assert_int_equal(errno, ECONNRESET);
    return n;
}

/* False: closed or reset. */
static bool wire_fill(struct wire *w)
{
    buf_reserve(&w->in, 64 * 1024);
    ssize_t n = receive(w, w->in.data + w->in.len, 64 * 1024);
    if (n <= 0)
        return false;
    w->in.len += (size_t)n;
    w->in.data[w->in.len] = '\0';
    return true;
}

static void wire_consume(struct wire *w, size_t len, struct buf *out)
{
    buf_append(out, w->in.data, len);
    memmove(w->in.data, w->in.data + len, w->in.len - len + 1);
    w->in.len -= len;
}

/* Up to `len` bytes of a body; false when the connection ends before. */
static bool wire_take(struct wire *w, size_t len, struct buf *out)
{
    while (len > 0) {
        if (w->in.len == 0 && !wire_fill(w))
            return false;
        size_t n = w->in.len < len ? w->in.len : len;
        wire_consume(w, n, out);
        len -= n;
    }
    return true;
}

static bool wire_line(struct wire *w, struct buf *out)
{
    char *end;
    while (w->in.len == 0 || (end = strstr(w->in.data, "\r\n")) == NULL) {
        if (!wire_fill(w))
            return false;
    }
    wire_consume(w, (size_t)(end - w->in.data) + 2, out);
    return true;
}

static bool wire_take_chunks(struct wire *w, struct buf *out)
{
    for (;;) {
        struct buf line = BUF_INIT;
        bool ok = wire_line(w, &line);
        unsigned long size = ok ? strtoul(line.data, NULL, 16) : 0;
        buf_done(&line);
        struct buf end = BUF_INIT;
        ok = ok && wire_take(w, size, out) && wire_line(w, &end);
        buf_done(&end);
        if (!ok || size == 0)
            return ok;
    }
}

const char *wire_header(struct wire_reply *r, const char *name)
{
    static _Thread_local char value[4096];
    size_t len = strlen(name);
    for (char *line = r->head.data; line != NULL; line = strstr(line, "\r\n")) {
        line += line[0] == '\r' ? 2 : 0;
        if (strncasecmp(line, name, len) != 0 || line[len] != ':')
            continue;
        const char *text = line + len + 1;
        text += strspn(text, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(text, "\r"), text);
        return value;
    }
    return NULL;
}

static void wire_read_body(struct wire *w, struct wire_reply *r)
{
    const char *coding = wire_header(r, "Transfer-Encoding");
    if (coding != NULL) {
        assert_string_equal(coding, "chunked");
        r->complete = wire_take_chunks(w, &r->body);
        return;
    }
    const char *length = wire_header(r, "Content-Length");
    uint64_t n = 0;
    if (length != NULL)
        assert_int_equal(parse_u64(length, &n, NULL), 0);
    r->complete = wire_take(w, n, &r->body);
}

void wire_read(struct wire *w, bool head_only, struct wire_reply *r)
{
    *r = (struct wire_reply){0};
    size_t before;
    do {
        before = r->head.len;
        if (!wire_line(w, &r->head))
            fail_msg("no reply, only '%s'", buf_str(&r->head));
    } while (r->head.len - before > 2);
    assert_true(strncmp(r->head.data, "HTTP/1.1 ", 9) == 0);
    r->status = (int)strtol(r->head.data + 9, NULL, 10);
    r->complete = true;
    if (!head_only && r->status >= 200 && r->status != 204 && r->status != 304)
        wire_read_body(w, r);
    buf_str(&r->body);
}

bool wire_is_open(struct wire *w)
{
    return w->in.len > 0 || wire_fill(w);
}

static int peek_tls(struct wire *w)
{
    char byte;
    int n;
    do {
        forget_errors();
        n = SSL_peek(w->tls, &byte, 1);
    } while (was_interrupted(w->tls, n));
    if (n > 0)
        return 1;
    return SSL_get_error(w->tls, n) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static int peek_socket(struct wire *w)
{
    char byte;
    ssize_t n = TEMP_FAILURE_RETRY(recv(w->fd, &byte, 1, MSG_PEEK));
    return n < 0 && errno == ECONNRESET ? 0 : (int)n;
}

int wire_peek(struct wire *w, unsigned ms)
{
    if (w->in.len > 0)
        return 1;
    set_patience(w->fd, ms);
    int came = w->tls != NULL ? peek_tls(w) : -1;
    if (came < 0 && (w->tls == NULL || w->duplex))
        came = peek_socket(w);
    set_patience(w->fd, PATIENCE_MS);
    return came;
}

void wire_assert_refused(uint16_t port, uint32_t address)
{
    enum { ALERT = 21 };
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct wire w = connect_from(port, address);
    if (wire_speaks_tls) {
        assert_true(wire_is_open(&w));
        assert_int_equal(w.in.data[0], ALERT);
        buf_clear(&w.in);
    } else {
        wire_try_send(&w, text, sizeof text - 1);
        wire_read_error(&w, 503, "overloaded");
    }
    assert_false(wire_is_open(&w));
    wire_close(&w);
}

void wire_reply_done(struct wire_reply *r)
{
    buf_done(&r->head);
    buf_done(&r->body);
}

void wire_assert_code(struct wire_reply *r, const char *code)
{
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(r->body.data, r->body.len, &doc, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(doc, "code")), code);
}

void wire_read_error(struct wire *w, int status, const char *code)
{
    struct wire_reply r;
    wire_read(w, false, &r);
    assert_int_equal(r.status, status);
    wire_assert_code(&r, code);
    if (status == 503)
        assert_string_equal(wire_header(&r, "Retry-After"), "1");
    assert_non_null(wire_header(&r, "X-Request-Id"));
    assert_string_equal(wire_header(&r, "Dfc-Node"), "n1");
    wire_reply_done(&r);
}

void wire_get(struct wire *w, const char *method, const char *target, struct wire_reply *r)
{
    wire_print(w, "%s %s HTTP/1.1\r\nHost: test\r\n\r\n", method, target);
    wire_read(w, strcmp(method, "HEAD") == 0, r);
}
