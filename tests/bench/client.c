#include "tests/bench/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/bench/response.h"

static void request_send(struct load_client *c);
static void client_read_head(struct load_client *c);

void client_init(struct load_client *c, struct load_worker *w)
{
    c->worker = w;
    c->phase = CLIENT_IDLE;
    for (unsigned i = 0; i < LOAD_ENDPOINTS_MAX; i++)
        c->sockets[i] = (struct client_socket){.fd = -1, .client = c};
}

static struct client_socket *client_socket(struct load_client *c)
{
    return &c->sockets[c->endpoint];
}

static void socket_close(struct client_socket *s)
{
    if (s->fd >= 0)
        close(s->fd); /* leaves the epoll set by itself */
    s->fd = -1;
}

void client_done(struct load_client *c)
{
    for (unsigned i = 0; i < LOAD_ENDPOINTS_MAX; i++)
        socket_close(&c->sockets[i]);
}

void client_fail(struct load_client *c, enum load_error kind)
{
    struct load_worker *w = c->worker;
    w->stats.errors[kind]++;
    socket_close(client_socket(c));
    c->phase = CLIENT_IDLE;
    w->idle++;
}

/* A server may close a kept-alive connection just as we write to it: that is no failure of the
 * request, which goes out once more over a new connection (whose `answers` is 0, so only once). */
static void client_connection_lost(struct load_client *c)
{
    struct client_socket *s = client_socket(c);
    if (s->answers == 0 || c->in_len > 0) {
        client_fail(c, LOAD_ERROR_IO);
        return;
    }
    c->worker->stats.reconnects++;
    socket_close(s);
    request_send(c);
}

static void socket_want_out(struct client_socket *s, bool wants)
{
    if (s->wants_out == wants)
        return;
    s->wants_out = wants;
    struct epoll_event ev = {.events = EPOLLIN | (wants ? EPOLLOUT : 0), .data.ptr = s};
    epoll_ctl(s->client->worker->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

/* Opens the connection; 0, or an errno value.  EINPROGRESS counts as success. */
static int socket_open(struct client_socket *s, const struct load_endpoint *e)
{
    int fd = socket(e->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = s};
    if ((connect(fd, (const struct sockaddr *)&e->address, e->address_len) != 0 &&
         errno != EINPROGRESS) ||
        epoll_ctl(s->client->worker->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
        int errnum = errno;
        close(fd);
        return errnum;
    }
    s->fd = fd;
    s->wants_out = true;
    s->answers = 0;
    return 0;
}

/* The head first, small bodies together with it.  True when something was sent. */
static bool send_head(struct load_client *c, bool with_body)
{
    const struct load *load = c->worker->load;
    bool whole = with_body && load->body_bytes <= LOAD_INLINE_BODY_MAX;
    struct iovec parts[2] = {
        {.iov_base = c->out + c->out_sent, .iov_len = c->out_len - c->out_sent},
        {.iov_base = (char *)load->body, .iov_len = whole ? load->body_bytes : 0},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int more = with_body && !whole ? MSG_MORE : 0;
    ssize_t n = sendmsg(client_socket(c)->fd, &message, MSG_NOSIGNAL | more);
    if (n < 0)
        return false;
    size_t of_head = (size_t)n < parts[0].iov_len ? (size_t)n : parts[0].iov_len;
    c->out_sent += of_head;
    c->body_sent += (size_t)n - of_head;
    return true;
}

static bool send_body(struct load_client *c)
{
    const struct load *load = c->worker->load;
    off_t offset = (off_t)c->body_sent;
    ssize_t n =
        sendfile(client_socket(c)->fd, load->body_fd, &offset, load->body_bytes - c->body_sent);
    if (n > 0)
        c->body_sent += (uint64_t)n;
    return n > 0;
}

/* The server takes no more of the request; it may have said why. */
static void client_hear_out(struct load_client *c)
{
    c->phase = CLIENT_AWAITING;
    socket_want_out(client_socket(c), false);
    client_read_head(c);
}

static void client_send(struct load_client *c)
{
    const struct load *load = c->worker->load;
    bool with_body = c->put && !c->expecting;
    uint64_t body_bytes = with_body ? load->body_bytes : 0;
    c->phase = CLIENT_SENDING;
    while (c->out_sent < c->out_len || c->body_sent < body_bytes) {
        bool sent = c->out_sent < c->out_len ? send_head(c, with_body) : send_body(c);
        if (sent)
            continue;
        if (errno == EAGAIN)
            socket_want_out(client_socket(c), true);
        else
            client_hear_out(c);
        return;
    }
    c->phase = CLIENT_AWAITING;
    socket_want_out(client_socket(c), false);
}

static void head_write(struct load_client *c)
{
    const struct load *load = c->worker->load;
    char put_fields[96] = "";
    if (c->put)
        snprintf(put_fields, sizeof put_fields, "Content-Length: %ju\r\n%s",
                 (uintmax_t)load->body_bytes, c->expecting ? "Expect: 100-continue\r\n" : "");
    int n = snprintf(c->out, sizeof c->out, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n",
                     c->put ? "PUT" : "GET", c->path, c->worker->endpoints[c->endpoint].authority,
                     load->extra_head, put_fields, load->close_each ? "Connection: close\r\n" : "");
    assert(n > 0 && (size_t)n < sizeof c->out); /* every part is bounded where it is taken */
    c->out_len = (size_t)n;
}

/* Sends the request that the client holds to its endpoint, connecting first where needed. */
static void request_send(struct load_client *c)
{
    const struct load *load = c->worker->load;
    struct client_socket *s = client_socket(c);
    /* A redirect of a PUT is cheap only where the body has not left yet. */
    c->expecting = c->put && (load->expect || (load->redirect != REDIRECT_NONE && c->hops == 0));
    c->out_sent = 0;
    c->body_sent = 0;
    c->in_len = 0;
    c->closing = load->close_each;
    head_write(c);
    if (s->fd >= 0) {
        client_send(c);
        return;
    }
    if (socket_open(s, &c->worker->endpoints[c->endpoint]) != 0)
        client_fail(c, LOAD_ERROR_CONNECT);
    else
        c->phase = CLIENT_CONNECTING;
}

static uint64_t random_next(uint64_t *state) /* xorshift64 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void target_choose(struct load_client *c, uint64_t number)
{
    struct load_worker *w = c->worker;
    const struct load *load = w->load;
    c->endpoint = 0;
    c->put = load->mode == LOAD_PUT ||
             (load->mode == LOAD_MIXED && random_next(&w->random) % 100 < load->put_percent);
    if (c->put) {
        uint64_t name = load->put_names > 0 ? number % load->put_names : number;
        snprintf(c->path, sizeof c->path, "%s%08ju", load->put_prefix, (uintmax_t)name);
        return;
    }
    c->path_index = (unsigned)(number % load->path_count);
    const struct load_route *known = &w->routes[c->path_index];
    if (known->path != NULL)
        c->endpoint = known->endpoint;
    snprintf(c->path, sizeof c->path, "%s",
             known->path != NULL ? known->path : load->paths[c->path_index]);
}

void client_start(struct load_client *c)
{
    struct load_worker *w = c->worker;
    struct load *load = w->load;
    uint64_t number = atomic_fetch_add_explicit(&load->started, 1, memory_order_relaxed);
    if (number >= load->requests_max || atomic_load_explicit(&load->stop, memory_order_relaxed)) {
        c->phase = CLIENT_FINISHED;
        w->active--;
        return;
    }
    target_choose(c, number);
    c->hops = 0;
    c->begin_ns = load_now_ns();
    request_send(c);
}

static void answer_count(struct load_client *c)
{
    struct load_stats *stats = &c->worker->stats;
    uint64_t now = load_now_ns();
    stats->status[c->status]++;
    stats->puts += c->put;
    stats->last_answer_ns = now;
    histogram_add(&stats->latency_ns, now - c->begin_ns);
    client_start(c);
}

static void redirect_remember(struct load_client *c)
{
    struct load_route *route = &c->worker->routes[c->path_index];
    if (c->worker->load->redirect != REDIRECT_CACHE || c->put || route->path != NULL)
        return;
    route->path = strdup(c->path);
    route->endpoint = c->endpoint;
}

static void redirect_follow(struct load_client *c)
{
    c->worker->stats.redirects++;
    c->endpoint = c->next_endpoint;
    redirect_remember(c);
    request_send(c);
}

/* Takes the place that a 307 names; false where it names none that we can use. */
static bool redirect_take(struct load_client *c, const struct response *r)
{
    struct url_parts url;
    if (r->location == NULL || !url_split(r->location, r->location_len, &url) ||
        url.path_len == 0 || url.path_len >= sizeof c->path)
        return false;
    int endpoint = load_worker_endpoint(c->worker, url.host, url.host_len, url.port);
    if (endpoint < 0)
        return false;
    memcpy(c->path, url.path, url.path_len);
    c->path[url.path_len] = '\0';
    c->hops++;
    c->next_endpoint = (unsigned)endpoint;
    return true;
}

/* The last byte of an answer is in. */
static void answer_end(struct load_client *c)
{
    struct client_socket *s = client_socket(c);
    s->answers++;
    if (c->closing)
        socket_close(s);
    if (c->redirecting)
        redirect_follow(c);
    else
        answer_count(c);
}

/* The head of the final answer is in the buffer. */
static void answer_begin(struct load_client *c, const struct response *r)
{
    bool bodyless = r->status == 204 || r->status == 304;
    size_t have = c->in_len - r->head_bytes;
    uint64_t length = bodyless ? 0 : r->content_length;
    if (r->chunked || (!bodyless && !r->has_length) || have > length || r->status >= 600) {
        client_fail(c, LOAD_ERROR_PROTOCOL);
        return;
    }
    /* An answer before the whole body has gone: the rest of it must not follow. */
    bool cut = c->put && c->body_sent < c->worker->load->body_bytes;
    c->closing = c->closing || r->close || cut;
    c->status = r->status;
    c->worker->stats.bytes_out += c->body_sent;
    c->worker->stats.bytes_in += have;
    c->body_left = length - have;

    c->redirecting = r->status == 307 && c->worker->load->redirect != REDIRECT_NONE;
    if (c->redirecting && (c->hops >= LOAD_HOPS_MAX || !redirect_take(c, r))) {
        client_fail(c, LOAD_ERROR_PROTOCOL);
        return;
    }
    c->phase = CLIENT_READING;
    if (c->body_left == 0)
        answer_end(c);
}

static void answer_continue(struct load_client *c, const struct response *r)
{
    c->in_len -= r->head_bytes;
    memmove(c->in, c->in + r->head_bytes, c->in_len);
    if (r->status == 100 && c->expecting) {
        c->expecting = false;
        client_send(c);
    }
}

static void client_read_head(struct load_client *c)
{
    ssize_t n = recv(client_socket(c)->fd, c->in + c->in_len, sizeof c->in - c->in_len, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        client_connection_lost(c);
        return;
    }
    c->in_len += (size_t)n;
    struct response r;
    enum response_result result = response_parse(c->in, c->in_len, &r);
    if (result == RESPONSE_MALFORMED ||
        (result == RESPONSE_INCOMPLETE && c->in_len == sizeof c->in))
        client_fail(c, LOAD_ERROR_PROTOCOL);
    else if (result == RESPONSE_COMPLETE && r.status < 200)
        answer_continue(c, &r);
    else if (result == RESPONSE_COMPLETE)
        answer_begin(c, &r);
}

/* TCP discards what MSG_TRUNC receives without copying it (tcp(7)), so there is no buffer.  The
 * plain system call, because the sanitizers take recv(2) for a write to one. */
static void client_read_body(struct load_client *c)
{
    ssize_t n =
        syscall(SYS_recvfrom, client_socket(c)->fd, NULL, c->body_left, MSG_TRUNC, NULL, NULL);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        client_fail(c, LOAD_ERROR_IO);
        return;
    }
    c->body_left -= (uint64_t)n;
    c->worker->stats.bytes_in += (uint64_t)n;
    if (c->body_left == 0)
        answer_end(c);
}

static void client_on_connected(struct load_client *c)
{
    int errnum = 0;
    socklen_t len = sizeof errnum;
    if (getsockopt(client_socket(c)->fd, SOL_SOCKET, SO_ERROR, &errnum, &len) != 0 || errnum != 0)
        client_fail(c, LOAD_ERROR_CONNECT);
    else
        client_send(c);
}

void client_on_event(struct client_socket *s, uint32_t events)
{
    struct load_client *c = s->client;
    bool ours = s == client_socket(c) && c->phase != CLIENT_IDLE && c->phase != CLIENT_FINISHED;
    if (!ours) {
        socket_close(s); /* nothing is under way on it: the server hung up */
        return;
    }
    switch (c->phase) {
    case CLIENT_CONNECTING:
        client_on_connected(c);
        break;
    case CLIENT_SENDING:
        if (events & EPOLLIN)
            client_read_head(c);
        else
            client_send(c);
        break;
    case CLIENT_AWAITING:
        client_read_head(c);
        break;
    case CLIENT_READING:
        client_read_body(c);
        break;
    case CLIENT_IDLE:
    case CLIENT_FINISHED:
        break;
    }
}
