/* The bytes of one call: curl's callbacks move them between curl and buffers or pipes.  A full or
 * empty pipe pauses that direction; the pipe's wake-up posts a message that unpauses it. */
#include "net/client/call.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "net/client/silence.h"

#define CALL_MAGIC 0x63616c6cu

enum {
    REPLY_MAX_DEFAULT = 1 << 20,
    ERROR_BODY_MAX = 64 << 10, /* of a reply that is not 2xx, kept for its error document */
    STREAM_BUFFER = 512 << 10,
    NAME_AGE_S = 1, /* a name is asked for again: a pod that moves keeps its name alone */
};

/* --- memory ----------------------------------------------------------------------------------- */

void call_unref(struct call *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    c->magic = 0;
    call_unsign(c);
    curl_slist_free_all(c->headers);
    bpipe_unref(c->upload);
    bpipe_unref(c->download);
    http_result_done(&c->result);
    free(c->body_copy);
    free(c->url);
    free(c->node);
    free(c);
}

static void call_add_header(struct call *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);
    if (longer != NULL)
        c->headers = longer;
}

/* A line "name: value", or "name;" for an empty value. */
static bool is_header(const char *line, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(line, name, len) == 0 && (line[len] == ':' || line[len] == ';');
}

static void call_copy_headers(struct call *c, const struct http_call *spec)
{
    bool expect = false, type = false;
    for (size_t i = 0; spec->headers != NULL && spec->headers[i] != NULL; i++) {
        call_add_header(c, spec->headers[i]);
        expect = expect || is_header(spec->headers[i], "Expect");
        type = type || is_header(spec->headers[i], "Content-Type");
    }
    if (!type)
        call_add_header(c, "Content-Type:"); /* else curl says that a body is a form's */
    if (!expect)
        call_add_header(c, "Expect:"); /* a round trip that small and trusted bodies do not need */
    if (spec->request_id != NULL) {
        _cleanup_free_ char *line = xprintf("X-Request-Id: %s", spec->request_id);
        call_add_header(c, line);
    }
}

struct call *call_new(const struct http_call *spec)
{
    struct call *c = xcalloc(1, sizeof *c);
    c->magic = CALL_MAGIC;
    c->socket = CURL_SOCKET_BAD;
    atomic_init(&c->refs, 1);
    c->method = spec->method;
    c->url = xstrdup(spec->url);
    call_copy_headers(c, spec);
    if (spec->body != NULL) {
        if (!spec->body_stays) {
            c->body_copy = xmalloc(spec->body_len + 1);
            memcpy(c->body_copy, spec->body, spec->body_len);
        }
        c->body = spec->body_stays ? spec->body : c->body_copy;
        c->body_len = spec->body_len;
    }
    c->upload = spec->upload != NULL ? bpipe_ref(spec->upload) : NULL;
    c->upload_length = spec->upload_length;
    c->download = spec->download != NULL ? bpipe_ref(spec->download) : NULL;
    c->reply_max = spec->reply_max > 0 ? spec->reply_max : REPLY_MAX_DEFAULT;
    c->total_timeout_ms = spec->total_timeout_ms;
    c->stall_timeout_ms = spec->stall_timeout_ms;
    c->any_status_streams = spec->any_status_streams;
    c->to_public = spec->to_public;
    c->node = spec->node != NULL ? xstrdup(spec->node) : NULL;
    c->fresh = spec->once;
    c->on_head = spec->on_head;
    return c;
}

static struct call *call_of(void *arg)
{
    struct call *c = arg;
    assert(c->magic == CALL_MAGIC);
    return c;
}

void call_fail(struct call *c, int code, const char *why)
{
    if (c->result.code == 0)
        c->result.code =
            error_set(&c->result.err, code, "%s %s: %s", http_method_name(c->method), c->url, why);
}

/* --- its signature, and the list that it is in ------------------------------------------------ */

void call_add_signature(struct call *c, const char *line)
{
    struct curl_slist *one = curl_slist_append(NULL, line);
    if (one == NULL)
        return;
    one->next = c->signature != NULL ? c->signature : c->headers;
    c->signature = one;
}

void call_unsign(struct call *c)
{
    while (c->signature != NULL && c->signature != c->headers) {
        struct curl_slist *one = c->signature;
        c->signature = one->next;
        one->next = NULL;
        curl_slist_free_all(one);
    }
    c->signature = NULL;
}

void call_unlink(struct call *c)
{
    if (c->prev == NULL)
        return;
    *c->prev = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->next = NULL;
    c->prev = NULL;
}

/* --- pausing ---------------------------------------------------------------------------------- */

/* curl 8 reads a reply that waits on, into memory, as long as it may send. */
static bool reads_on(void)
{
    enum { CURL_8 = 0x080000 };
    return curl_version_info(CURLVERSION_NOW)->version_num >= CURL_8;
}

/* The reply waits: with curl 8 nothing is sent either. */
static void call_pause(struct call *c)
{
    c->download_waits = true;
    if (reads_on())
        curl_easy_pause(c->easy, CURLPAUSE_ALL);
}

static CURLcode unpause(struct call *c)
{
    if (!reads_on())
        return curl_easy_pause(c->easy, (c->upload_waits ? CURLPAUSE_SEND : 0) |
                                            (c->download_waits ? CURLPAUSE_RECV : 0));
    if (c->download_waits)
        return CURLE_OK;
    /* The reply goes on first, which may have to wait again at once, and then the body. */
    CURLcode result = curl_easy_pause(c->easy, CURLPAUSE_SEND);
    if (result == CURLE_OK && !c->download_waits && !c->upload_waits)
        result = curl_easy_pause(c->easy, CURLPAUSE_CONT);
    return result;
}

/* curl may run the callbacks meanwhile, and keeps the error of one that fails to itself. */
static void call_unpause(struct call *c)
{
    CURLcode result = unpause(c);
    if (result == CURLE_OK)
        return;
    call_fail(c, E_NET, curl_easy_strerror(result));
    c->life->cut(c);
}

static void upload_resume(void *arg)
{
    struct call *c = call_of(arg);
    if (c->easy != NULL && c->upload_waits) {
        c->upload_waits = false;
        c->moved_ms = clock_ms();
        call_unpause(c);
    }
    call_unref(c);
}

static void download_resume(void *arg)
{
    struct call *c = call_of(arg);
    if (c->easy != NULL && c->download_waits) {
        c->download_waits = false;
        c->moved_ms = clock_ms();
        call_unpause(c);
    }
    call_unref(c);
}

static void call_post(struct call *c, void (*fn)(void *arg))
{
    atomic_fetch_add(&c->refs, 1);
    loop_post(c->loop, fn, c);
}

static void upload_has_data(void *arg)
{
    call_post(arg, upload_resume);
}

static void download_has_space(void *arg)
{
    call_post(arg, download_resume);
}

/* --- bytes out -------------------------------------------------------------------------------- */

/* The end of the pipe: also the end of what was promised? */
static size_t upload_ended(struct call *c)
{
    if (c->upload_length < 0 || c->sent == (uint64_t)c->upload_length)
        return 0;
    call_fail(c, E_LENGTH, "the body ended before its announced length");
    return CURL_READFUNC_ABORT;
}

static size_t upload_room(const struct call *c, size_t max)
{
    uint64_t left = c->upload_length < 0 ? UINT64_MAX : (uint64_t)c->upload_length - c->sent;
    return left < max ? (size_t)left : max;
}

static size_t read_upload(char *out, size_t size, size_t count, void *arg)
{
    struct call *c = call_of(arg);
    if (c->sent >= fault_cut_bytes("net.send")) {
        call_fail(c, E_NET, "injected: the connection is cut");
        return CURL_READFUNC_ABORT;
    }
    size_t room = upload_room(c, size * count);
    if (room == 0 || c->upload_over)
        return 0;
    struct error err = ERROR_INIT;
    ssize_t got = bpipe_try_read(c->upload, out, room, &err);
    if (got == BPIPE_AGAIN) {
        c->upload_waits = true;
        return CURL_READFUNC_PAUSE;
    }
    if (got == BPIPE_END)
        return upload_ended(c);
    if (got < 0) {
        call_fail(c, (int)got, err.message);
        return CURL_READFUNC_ABORT;
    }
    c->sent += (uint64_t)got;
    return (size_t)got;
}

/* curl rewinds when a kept connection turns out to be dead: fine while nothing was read. */
static int seek_upload(void *arg, curl_off_t offset, int origin)
{
    const struct call *c = call_of(arg);
    return offset == 0 && origin == SEEK_SET && c->sent == 0 ? CURL_SEEKFUNC_OK
                                                             : CURL_SEEKFUNC_FAIL;
}

/* An error is the server's last word, but curl, which would stop sending by itself, does not end a
 * transfer whose upload is paused. */
static void upload_is_refused(struct call *c)
{
    c->upload_over = true;
    call_post(c, upload_resume);
}

/* --- the reply's head ------------------------------------------------------------------------- */

static size_t read_header(char *line, size_t size, size_t count, void *arg)
{
    struct call *c = call_of(arg);
    size_t len = size * count;
    bool blank = len <= 2 && (line[0] == '\r' || line[0] == '\n');
    long status = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!blank || status < 200 || c->head_seen)
        return len;
    call_take_head(c);
    if (c->upload != NULL && status >= 300)
        upload_is_refused(c);
    return len;
}

/* --- the reply's body ------------------------------------------------------------------------- */

/* curl delivers a paused piece again, whole: what the pipe took of it already is passed over. */
static size_t stream_reply(struct call *c, const char *data, size_t len)
{
    size_t skip = c->redelivered < len ? c->redelivered : len;
    size_t at = skip;
    while (at < len) {
        struct error err = ERROR_INIT;
        ssize_t took = bpipe_try_write(c->download, data + at, len - at, &err);
        if (took == BPIPE_AGAIN) {
            c->redelivered = at;
            call_pause(c);
            return CURL_WRITEFUNC_PAUSE;
        }
        if (took < 0) {
            call_fail(c, (int)took, err.message);
            return 0;
        }
        at += (size_t)took;
        c->received += (uint64_t)took;
    }
    c->redelivered -= skip;
    return len;
}

static size_t collect_reply(struct call *c, const char *data, size_t len)
{
    const bool is_error = c->result.status >= 300;
    size_t max = c->download != NULL ? ERROR_BODY_MAX : c->reply_max;
    if (is_error && max < ERROR_BODY_MAX)
        max = ERROR_BODY_MAX; /* few bytes of a reply may be wanted, and its error is read whole */
    size_t room = max - c->result.body.len;
    if (len <= room) {
        buf_append(&c->result.body, data, len);
        return len;
    }
    if (c->download != NULL || is_error) {
        buf_append(&c->result.body, data, room);
        return len;
    }
    call_fail(c, E_TOO_LARGE, "the reply is larger than this call takes");
    return 0;
}

static size_t read_reply(char *data, size_t size, size_t count, void *arg)
{
    struct call *c = call_of(arg);
    if (!c->opens_session && c->received >= fault_cut_bytes("net.recv")) {
        call_fail(c, E_NET, "injected: the connection is cut");
        return 0;
    }
    return c->streams ? stream_reply(c, data, size * count) : collect_reply(c, data, size * count);
}

/* --- the start -------------------------------------------------------------------------------- */

static void set_upload(struct call *c)
{
    CURL *e = c->easy;
    curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->upload_length);
    curl_easy_setopt(e, CURLOPT_READFUNCTION, read_upload);
    curl_easy_setopt(e, CURLOPT_READDATA, c);
    curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, seek_upload);
    curl_easy_setopt(e, CURLOPT_SEEKDATA, c);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)STREAM_BUFFER);
    bpipe_on_data(c->upload, upload_has_data, c);
}

static void set_body(struct call *c)
{
    CURL *e = c->easy;
    if (c->upload != NULL) {
        set_upload(c);
    } else if (c->body != NULL || c->method == HTTP_PUT || c->method == HTTP_POST) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_len);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, c->body != NULL ? c->body : "");
    } else if (c->method == HTTP_HEAD) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, http_method_name(c->method));
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->signature != NULL ? c->signature : c->headers);
}

static int watch_silence(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    const struct http_client_config *config = arg;
    if (purpose == CURLSOCKTYPE_IPCXN)
        silence_watch(fd, config->silence_ms);
    return CURL_SOCKOPT_OK;
}

static void set_silence(CURL *e, const struct http_client_config *config)
{
    if (config->silence_ms > 0) {
        curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, watch_silence);
        curl_easy_setopt(e, CURLOPT_SOCKOPTDATA, (void *)config);
        return;
    }
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, 10L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, 5L);
}

static void set_connection(CURL *e, uint64_t connect_timeout_ms)
{
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAME_AGE_S);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_timeout_ms);
}

static void set_tls(CURL *e, const struct http_client_config *config)
{
    if (config->ca_file != NULL) {
        curl_easy_setopt(e, CURLOPT_CAINFO, config->ca_file);
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    }
    if (config->cert_file != NULL) {
        curl_easy_setopt(e, CURLOPT_SSLCERT, config->cert_file);
        curl_easy_setopt(e, CURLOPT_SSLKEY, config->key_file);
    }
}

/* Each address that the host has, just before it is connected to: a name may have another one by
 * now. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct call *c = arg;
    (void)purpose;
    if (!c->config->may_connect(c->config->may_connect_ctx, &a->addr)) {
        c->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static void set_guard(struct call *c)
{
    if (c->config->may_connect == NULL)
        return;
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, c);
}

/* A connection is there, and the request goes out on it; also where curl repeats it by itself. */
static int begin_sending(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    struct call *c = arg;
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    c->repeated = c->repeated || c->in_flight;
    c->in_flight = true;
    return CURL_PREREQFUNC_OK;
}

void call_set_options(struct call *c, const struct http_client_config *config)
{
    CURL *e = c->easy;
    c->config = config;
    set_connection(e, config->connect_timeout_ms);
    set_silence(e, config);
    set_guard(c);
    set_tls(e, config);
    curl_easy_setopt(e, CURLOPT_PRIVATE, c);
    curl_easy_setopt(e, CURLOPT_URL, c->url);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)c->total_timeout_ms);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, c->fresh ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_MAXLIFETIME_CONN, c->kept_s);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, begin_sending);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, c);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, read_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, read_reply);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    if (c->download != NULL) {
        curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)STREAM_BUFFER);
        bpipe_on_space(c->download, download_has_space, c);
    }
    set_body(c);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The last transfer may not have reached the server, and one before it may have. */
void call_sum_up(struct call *c)
{
    c->result.repeated = c->repeated;
    c->result.not_sent = c->result.not_sent && !c->repeated && !c->in_flight;
}

void call_reset(struct call *c)
{
    http_result_done(&c->result);
    c->result = (struct http_result){0};
    c->socket = CURL_SOCKET_BAD;
    c->again = c->head_seen = c->framed = c->streams = c->refused = false;
    c->upload_waits = c->upload_over = c->download_waits = false;
    c->moved_bytes = 0;
}

/* To curl a connection that ends in the middle of the head, or before a body without a length is
 * complete, is a reply that ends there. */
void call_check_whole(struct call *c)
{
    if (!c->head_seen)
        call_fail(c, E_NET, "the connection ended in the middle of the reply's head");
    else if (!c->framed)
        call_fail(c, E_NET, "the reply does not say where it ends");
}

void call_end_pipes(struct call *c)
{
    struct error err = ERROR_INIT;
    int code = c->any_status_streams && c->result.code == 0
                   ? 0
                   : http_result_error(&c->result, c->url, &err);
    if (c->upload != NULL) {
        struct error gone;
        bpipe_on_data(c->upload, NULL, NULL);
        if (code == 0)
            error_set(&gone, E_CANCELLED, "%s has replied and takes no more", c->url);
        bpipe_cancel(c->upload, code != 0 ? &err : &gone);
    }
    if (c->download != NULL) {
        bpipe_on_space(c->download, NULL, NULL);
        bpipe_finish(c->download, code != 0 ? &err : NULL);
    }
}

static bool server_has_left(const struct call *c)
{
    char byte;
    if (c->socket == CURL_SOCKET_BAD) /* curl met the end of a kept one at once: it reads no more */
        return c->in_flight && !c->download_waits;
    ssize_t n = recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* One that has refused the body may leave: curl has its reply, and hears of the end next. */
bool call_server_left(const struct call *c)
{
    return c->upload_waits && !c->upload_over && server_has_left(c);
}

bool call_is_abandoned(struct call *c)
{
    struct error err = ERROR_INIT;
    if ((c->upload != NULL && bpipe_check(c->upload, &err) != 0) ||
        (c->download != NULL && bpipe_check(c->download, &err) != 0))
        call_fail(c, err.code, err.message);
    else if (call_server_left(c))
        call_fail(c, E_NET, "the server closed the connection before it had the whole body");
    return c->result.code != 0;
}
