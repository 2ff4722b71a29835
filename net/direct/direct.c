/* One read is a small machine in its HTTP thread:
 *
 *   CONNECT ──▶ SEND ──▶ HEAD ──┬─ small, or no 2xx ─▶ COLLECT ──▶ done()
 *      ▲          kept one died │
 *      └──────────(once)────────┴─ large ─▶ done() ──▶ STREAM, which the reply reads
 *
 * Whoever calls done() frees the read after it, unless a reply has taken it. */
#include "net/direct/direct.h"

#include <assert.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "net/client/client.h"
#include "net/client/silence.h"
#include "net/direct/body.h"
#include "net/direct/lines.h"
#include "net/direct/names.h"
#include "net/http/guest.h"
#include "net/syntax/head.h"

#define DIRECT_MAGIC 0x64697265u

enum { FIRST_READ_BYTES = 16 << 10 }; /* a head, and a small body with it */

struct direct_reader {
    struct direct_config config;
    const struct http_client_config *client;
    struct lines *lines;
    struct names *names;
};

enum direct_state { DIRECT_CONNECT, DIRECT_SEND, DIRECT_HEAD, DIRECT_COLLECT, DIRECT_STREAM };

struct direct {
    struct reactor_job job; /* first: what brings it into its thread */
    unsigned magic;
    struct direct_reader *reader;
    struct http_request *req;
    struct direct_call call; /* its texts are in `request` */
    char *authority;
    struct buf request;
    size_t sent;

    enum direct_state state;
    struct line *line;
    bool watches_room; /* in the line */
    bool was_kept;     /* the line: it may have died */
    bool waits;        /* for the node; since … */
    uint64_t moved_ms; /* … then */

    size_t scanned; /* of the head, which is in line->in */
    size_t interim; /* bytes of heads before it (1xx) */
    int64_t length; /* that the head says; -1: none */
    bool keeps;     /* the connection outlives the reply */
    struct direct_body body;
    struct http_result result; /* whose body is collected */
    bool failed;
    bool is_taken; /* by the reply */
};

static struct direct *direct_of(void *arg)
{
    struct direct *d = arg;
    assert(d->magic == DIRECT_MAGIC);
    return d;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* What is in the socket already will be no event of a line that is kept. */
static bool is_silent(const struct line *l)
{
    return l->piped == 0 && (l->drained || line_is_clean(l));
}

/* The line goes back if nothing of this reply can be on it. */
static void leave_line(struct direct *d)
{
    bool keeps = d->keeps && !d->failed && d->line != NULL && direct_body_is_over(&d->body) &&
                 is_silent(d->line);
    if (keeps)
        lines_give(d->reader->lines, d->line);
    else
        line_close(d->line);
    d->line = NULL;
}

static void direct_free(struct direct *d)
{
    leave_line(d);
    http_result_done(&d->result);
    buf_done(&d->request);
    free(d->authority);
    d->magic = 0;
    free(d);
}

static void end(struct direct *d, bool has_body)
{
    d->call.done(d->call.arg, &d->result, has_body ? d : NULL);
    if (!d->is_taken)
        direct_free(d);
}

static void fail(struct direct *d, int code, const char *why)
{
    d->failed = true;
    leave_line(d);
    d->result.code = error_set(&d->result.err, code, "%s: %s", d->authority, why);
    end(d, false);
}

/* --- the body --------------------------------------------------------------------------------- */

static void moves(struct direct *d)
{
    d->moved_ms = clock_ms();
    d->waits = true;
}

static bool is_2xx(const struct direct *d)
{
    return d->result.status >= 200 && d->result.status <= 299;
}

/* An error's document is cut where it is too large: the line then ends with it. */
static void collect(struct direct *d)
{
    struct buf *to = &d->result.body;
    for (;;) {
        if (to->len == DIRECT_SMALL_BYTES && !is_2xx(d))
            break;
        size_t room = DIRECT_SMALL_BYTES - to->len;
        buf_reserve(to, d->body.chunked || d->body.left > room ? room : d->body.left + 1);
        ssize_t n = direct_body_read(&d->body, to->data + to->len, room);
        if (n == DIRECT_BODY_END)
            break;
        if (n == LINE_EMPTY) {
            moves(d);
            return;
        }
        if (n < 0) {
            fail(d, E_NET, "the connection ended in the middle of the reply");
            return;
        }
        to->len += (size_t)n;
    }
    leave_line(d);
    end(d, is_2xx(d));
}

static ssize_t stream_value(struct direct *d, ssize_t n)
{
    switch (n) {
    case LINE_EMPTY:
        line_await(d->line, d->body.chunked ? 1 : d->body.left);
        moves(d);
        return 0;
    case LINE_FULL:
        return HTTP_STREAM_FULL;
    case LINE_CUT:
        d->failed = true;
        return HTTP_STREAM_CUT;
    case DIRECT_BODY_END:
        return HTTP_STREAM_END;
    case DIRECT_BODY_COPY:
        return HTTP_STREAM_COPY;
    default:
        return n;
    }
}

static ssize_t stream_read(void *ctx, char *out, size_t max)
{
    struct direct *d = direct_of(ctx);
    return d->failed ? HTTP_STREAM_CUT : stream_value(d, direct_body_read(&d->body, out, max));
}

static ssize_t stream_splice(void *ctx, int to, size_t max)
{
    struct direct *d = direct_of(ctx);
    return d->failed ? HTTP_STREAM_CUT : stream_value(d, direct_body_splice(&d->body, to, max));
}

static void stream_free(void *ctx)
{
    direct_free(direct_of(ctx));
}

/* To a HEAD: its length is that of a body which does not come. */
static ssize_t no_bytes(void *ctx, char *out, size_t max)
{
    (void)ctx, (void)out, (void)max;
    return HTTP_STREAM_CUT;
}

void direct_reply(struct direct *d, int status)
{
    static const struct http_stream_ops stream = {
        .read = stream_read, .free = stream_free, .splice = stream_splice};
    static const struct http_stream_ops none = {.read = no_bytes};
    size_t len = d->result.body.len;
    if (d->state == DIRECT_STREAM) {
        d->is_taken = true;
        http_reply_stream(d->req, status, d->length, &stream, d);
    } else if (d->call.method == HTTP_HEAD) {
        http_reply_stream(d->req, status, d->length, &none, NULL);
    } else {
        http_reply_taken(d->req, status, buf_steal(&d->result.body), len);
    }
}

/* --- the head --------------------------------------------------------------------------------- */

struct direct_head {
    struct http_head head; /* first */
    const struct head *fields;
};

static const char *find_header(const struct http_head *head, const char *name)
{
    return head_find(((const struct direct_head *)head)->fields, name);
}

static void each_header(const struct http_head *head,
                        void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct head *fields = ((const struct direct_head *)head)->fields;
    for (size_t i = 0; i < fields->count; i++)
        fn(ctx, fields->fields[i].name, fields->fields[i].value);
}

static bool has_body(const struct direct *d)
{
    return d->call.method != HTTP_HEAD && d->result.status != 204 && d->result.status != 304;
}

/* Where the body ends must be certain. */
static int take_length(struct direct *d, const struct head *head, struct error *err)
{
    const char *options = head_find(head, "Connection");
    bool chunked = false;
    int code = head_length(head, &d->length, &chunked, err);
    if (code != 0)
        return code;
    d->keeps = head->minor == 1 && (options == NULL || !http_list_has(options, "close"));
    d->body.chunked = chunked && has_body(d);
    d->body.left = has_body(d) && d->length > 0 ? (uint64_t)d->length : 0;
    return has_body(d) && !chunked && d->length < 0
               ? error_set(err, E_NET, "the reply does not say where it ends")
               : 0;
}

static bool is_small(const struct direct *d)
{
    return !d->body.chunked && d->body.left <= DIRECT_SMALL_BYTES;
}

static void go_on_with_body(struct direct *d)
{
    d->state = !is_2xx(d) || is_small(d) ? DIRECT_COLLECT : DIRECT_STREAM;
    if (d->state == DIRECT_COLLECT)
        collect(d);
    else
        end(d, true);
}

/* The head is the first `len` bytes.  False: it was one before the reply's (1xx). */
static bool take_head(struct direct *d, size_t len)
{
    struct head head;
    struct error err = ERROR_INIT;
    d->scanned = 0;
    d->body.at = len;
    int code = head_parse_reply(d->line->in.data, len, &head, &err);
    if (code == 0 && head.status < 200) {
        d->line->in.len -= len;
        memmove(d->line->in.data, d->line->in.data + len, d->line->in.len);
        d->body.at = 0;
        d->interim += len;
        return false;
    }
    d->result.status = head.status;
    if (code != 0 || take_length(d, &head, &err) != 0) {
        fail(d, E_NET, err.message);
        return true;
    }
    const struct direct_head h = {.head = {.status = head.status,
                                           .content_length = d->length,
                                           .header = find_header,
                                           .each_header = each_header},
                                  .fields = &head};
    d->call.head(d->call.arg, &h.head);
    go_on_with_body(d);
    return true;
}

static void start_over(struct direct *d);

static void head_cut(struct direct *d)
{
    if (d->was_kept && d->line->in.len + d->interim == 0)
        start_over(d);
    else
        fail(d, E_NET, "the connection ended before the reply's head");
}

static void read_head(struct direct *d)
{
    struct buf *in = &d->line->in;
    for (;;) {
        size_t len = in->len > 0 ? head_end(in->data, in->len, &d->scanned) : 0;
        if (len > 0 && take_head(d, len))
            return;
        if (in->len + d->interim >= DIRECT_HEAD_BYTES) {
            fail(d, E_NET, "the reply's head is too large");
            return;
        }
        if (len > 0)
            continue;
        buf_reserve(in, FIRST_READ_BYTES);
        ssize_t n = line_recv(d->line, in->data + in->len, FIRST_READ_BYTES);
        if (n == LINE_EMPTY) {
            moves(d);
            return;
        }
        if (n < 0) {
            head_cut(d);
            return;
        }
        in->len += (size_t)n;
    }
}

/* --- the request ------------------------------------------------------------------------------ */

/* There is room in the socket as a rule: else events for nothing come. */
static void watch(struct direct *d, uint32_t more)
{
    if (!http_guest_want(d->line->guest, EPOLLIN | EPOLLRDHUP | more))
        fail(d, E_NET, "its connection cannot be watched");
}

static void send_request(struct direct *d)
{
    ssize_t n = line_send(d->line, d->request.data + d->sent, d->request.len - d->sent);
    moves(d);
    if (n == LINE_CUT) {
        head_cut(d);
        return;
    }
    if (n > 0)
        d->sent += (size_t)n;
    bool is_out = d->sent == d->request.len;
    bool was_watched = d->watches_room;
    d->watches_room = !is_out;
    if (is_out)
        d->state = DIRECT_HEAD;
    if (was_watched != d->watches_room)
        watch(d, is_out ? 0 : EPOLLOUT);
}

static void check_connected(struct direct *d)
{
    struct error err = ERROR_INIT;
    if (line_check_connected(d->line, &err) != 0) {
        fail(d, E_NET, err.message);
        return;
    }
    d->state = DIRECT_SEND;
    send_request(d);
}

static void resume(struct direct *d)
{
    if (!d->waits)
        return;
    d->waits = false;
    http_wake(d->req);
}

static void on_event(void *ctx, uint32_t events)
{
    struct direct *d = direct_of(ctx);
    switch (d->state) {
    case DIRECT_CONNECT:
        if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
            check_connected(d);
        break;
    case DIRECT_SEND:
        send_request(d);
        break;
    case DIRECT_HEAD:
        read_head(d);
        break;
    case DIRECT_COLLECT:
        collect(d);
        break;
    case DIRECT_STREAM:
        resume(d);
        break;
    }
}

/* --- time ------------------------------------------------------------------------------------- */

static void give_up(struct direct *d, int code, const char *why)
{
    if (d->state == DIRECT_STREAM) {
        d->failed = true;
        resume(d);
    } else {
        fail(d, code, why);
    }
}

/* A reader of a large body is not woken for each piece: a slow node's are looked at here. */
static void on_tick(void *ctx, uint64_t now_ms)
{
    struct direct *d = direct_of(ctx);
    const struct http_client_config *client = d->reader->client;
    uint64_t limit_ms = d->state == DIRECT_CONNECT
                            ? client->connect_timeout_ms
                            : http_client_patience_ms(d->reader->config.client);
    if (!d->waits)
        return;
    if (d->state == DIRECT_STREAM && line_has_bytes(d->line))
        resume(d);
    else if (now_ms > d->moved_ms && now_ms - d->moved_ms > limit_ms)
        give_up(d, E_TIMEOUT, "no byte moved within the stall timeout");
    else if (client->silence_ms > 0 && d->state != DIRECT_CONNECT &&
             silence_found(d->line->fd, client->silence_ms))
        give_up(d, E_NET, "the other machine acknowledges nothing");
}

/* --- the start -------------------------------------------------------------------------------- */

static bool find_address(struct direct *d, char address[NAMES_ADDRESS_MAX])
{
    if (!line_is_numeric(d->authority))
        return names_find(d->reader->names, d->authority, clock_ms(), address);
    return snprintf(address, NAMES_ADDRESS_MAX, "%s", d->authority) < NAMES_ADDRESS_MAX;
}

static bool open_line(struct direct *d, const char *address, struct error *err)
{
    if (fault_errno("net.connect") != 0) {
        error_set(err, E_NET, "injected: no connection");
        return false;
    }
    return line_open(d->authority, address, d->reader->client->silence_ms, &d->line, err) == 0;
}

static const struct http_guest_ops guest_ops = {.event = on_event, .tick = on_tick};

static void begin_anew(struct direct *d)
{
    struct error err = ERROR_INIT;
    char address[NAMES_ADDRESS_MAX];
    if (!find_address(d, address)) {
        d->call.elsewhere(d->call.arg);
        direct_free(d);
        return;
    }
    if (!open_line(d, address, &err)) {
        fail(d, E_NET, err.message);
        return;
    }
    d->was_kept = false;
    d->watches_room = true;
    d->body.line = d->line;
    d->state = DIRECT_CONNECT;
    moves(d);
    d->line->guest =
        http_guest_new(d->req, d->line->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, &guest_ops, d);
    if (d->line->guest == NULL)
        fail(d, E_NET, "its connection cannot be watched");
}

static void begin_again(struct direct *d, struct line *kept)
{
    http_guest_pass(kept->guest, &guest_ops, d);
    d->was_kept = true;
    d->line = d->body.line = kept;
    d->state = DIRECT_SEND;
    send_request(d);
}

static void start_over(struct direct *d)
{
    leave_line(d);
    d->sent = 0;
    begin_anew(d);
}

static void begin(struct reactor *r, struct reactor_job *job)
{
    (void)r;
    struct direct *d = direct_of(job);
    struct line *kept = lines_take(d->reader->lines, d->req, d->authority);
    if (kept != NULL)
        begin_again(d, kept);
    else
        begin_anew(d);
}

#define SCHEME "http://"

/* Lines as http_header_line() makes them: "Name;" is a header with an empty value. */
static void put_header(struct buf *out, const char *line)
{
    size_t len = strlen(line);
    bool is_empty = len > 0 && line[len - 1] == ';' && strchr(line, ':') == NULL;
    buf_append(out, line, is_empty ? len - 1 : len);
    buf_puts(out, is_empty ? ":\r\n" : "\r\n");
}

static void put_request(struct direct *d, const char *path)
{
    struct buf *out = &d->request;
    buf_puts(out, http_method_name(d->call.method));
    buf_putc(out, ' ');
    buf_puts(out, *path != '\0' ? path : "/");
    buf_puts(out, " HTTP/1.1\r\nHost: ");
    buf_puts(out, d->authority);
    buf_puts(out, "\r\nX-Request-Id: ");
    buf_puts(out, http_request_id(d->req));
    buf_puts(out, "\r\n");
    for (const char *const *line = d->call.headers; line != NULL && *line != NULL; line++)
        put_header(out, *line);
    buf_puts(out, "\r\n");
}

static size_t authority_length(const char *url)
{
    return strcspn(url + strlen(SCHEME), "/?");
}

bool direct_takes(const struct http_request *req, const char *url)
{
    return http_may_host(req) && strncmp(url, SCHEME, strlen(SCHEME)) == 0;
}

void direct_learn(struct direct_reader *r, const char *url, const char *address)
{
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0 || *address == '\0')
        return;
    _cleanup_free_ char *authority = xstrndup(url + strlen(SCHEME), authority_length(url));
    names_learn(r->names, authority, address, clock_ms());
}

void direct_start(struct direct_reader *r, struct http_request *req, const struct direct_call *call)
{
    struct direct *d = xcalloc(1, sizeof *d);
    const char *authority = call->url + strlen(SCHEME);
    *d = (struct direct){.job = {.run = begin},
                         .magic = DIRECT_MAGIC,
                         .reader = r,
                         .req = req,
                         .call = *call,
                         .authority = xstrndup(authority, authority_length(call->url)),
                         .length = -1,
                         .body = {.chunks = CHUNKS_INIT}};
    put_request(d, authority + strlen(d->authority));
    d->call.url = NULL;
    d->call.headers = NULL;
    http_here(req, &d->job);
}

/* --- the reader ------------------------------------------------------------------------------- */

struct direct_reader *direct_reader_new(const struct direct_config *config)
{
    struct direct_reader *r = xcalloc(1, sizeof *r);
    r->config = *config;
    r->client = http_client_config_of(config->client);
    r->lines = lines_new(config->kept_max);
    r->names = names_new();
    return r;
}

void direct_reader_free(struct direct_reader *r)
{
    if (r == NULL)
        return;
    lines_free(r->lines);
    names_free(r->names);
    free(r);
}
