#include "net/direct/line.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "net/client/silence.h"
#include "net/http/guest.h"

enum {
    PIPE_BYTES = 1 << 20,   /* the kernel's default is 64 KiB, which stays where this is refused */
    PIPE_LEAST = 32 << 10,  /* a user with many pipes gets some of two pages: memory is faster */
    WAKE_BYTES = 256 << 10, /* a reader of a large body is woken for so many, not for each packet */
};

/* --- opening and closing ---------------------------------------------------------------------- */

bool line_is_numeric(const char *authority)
{
    return authority[0] == '[' || strspn(authority, "0123456789.:") == strlen(authority);
}

/* "[::1]:80" is the host "::1". */
static int look_up(const char *address, struct addrinfo **out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    _cleanup_free_ char *copy = xstrdup(address);
    char *host = copy, *colon = strrchr(copy, ':');
    if (colon == NULL)
        return EAI_NONAME;
    *colon = '\0';
    if (host[0] == '[' && colon > host + 1 && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    return getaddrinfo(host, colon + 1, &hints, out);
}

static int begin_connect(const struct addrinfo *to, uint64_t silence_ms)
{
    const int one = 1;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* it is slower then */
    if (silence_ms > 0)
        silence_watch(fd, silence_ms);
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

static int no_connection(const char *authority, int number, struct error *err)
{
    error_errno(err, number, "connect to %s", authority);
    return error_recode(err, E_NET, "no connection");
}

int line_open(const char *authority, const char *address, uint64_t silence_ms, struct line **out,
              struct error *err)
{
    struct addrinfo *to;
    int code = look_up(address, &to);
    if (code != 0)
        return error_set(err, E_NET, "'%s' is no address: %s", address, gai_strerror(code));
    int fd = begin_connect(to, silence_ms);
    freeaddrinfo(to);
    if (fd < 0)
        return no_connection(authority, errno, err);
    struct line *l = xcalloc(1, sizeof *l);
    *l = (struct line){.fd = fd, .pipe = {-1, -1}, .wakes_at = 1, .authority = xstrdup(authority)};
    *out = l;
    return 0;
}

static void close_pipe(struct line *l)
{
    for (int i = 0; i < 2; i++) {
        if (l->pipe[i] >= 0)
            close(l->pipe[i]);
        l->pipe[i] = -1;
    }
}

void line_close(struct line *l)
{
    if (l == NULL)
        return;
    http_guest_free(l->guest);
    close(l->fd);
    close_pipe(l);
    buf_done(&l->in);
    free(l->authority);
    free(l);
}

int line_check_connected(const struct line *l, struct error *err)
{
    int code = 0;
    socklen_t len = sizeof code;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
        code = errno;
    return code == 0 ? 0 : no_connection(l->authority, code, err);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static ssize_t outcome(ssize_t n, ssize_t later)
{
    if (n > 0)
        return n;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? later : LINE_CUT;
}

ssize_t line_send(struct line *l, const char *data, size_t len)
{
    return outcome(send(l->fd, data, len, MSG_NOSIGNAL), LINE_FULL);
}

ssize_t line_recv(struct line *l, char *out, size_t max)
{
    ssize_t n = recv(l->fd, out, max, 0);
    l->drained = n > 0 && (size_t)n < max;
    return outcome(n, LINE_EMPTY);
}

void line_forget(struct line *l)
{
    buf_clear(&l->in);
    if (l->in.cap > LINE_IN_KEPT_BYTES)
        buf_done(&l->in);
}

static bool has_pipe(struct line *l)
{
    if (l->pipe[0] >= 0)
        return true;
    if (l->copies || pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        l->pipe[0] = l->pipe[1] = -1;
        l->copies = true;
        return false;
    }
    if (fcntl(l->pipe[1], F_SETPIPE_SZ, PIPE_BYTES) < 0 &&
        fcntl(l->pipe[1], F_GETPIPE_SZ) < PIPE_LEAST) {
        close_pipe(l);
        l->copies = true;
    }
    return !l->copies;
}

/* Whether there is something in the pipe, or why not. */
static ssize_t fill(struct line *l, uint64_t left)
{
    uint64_t wanted = left - l->piped;
    if (wanted == 0)
        return 1;
    size_t most = wanted < PIPE_BYTES ? (size_t)wanted : PIPE_BYTES;
    ssize_t n = splice(l->fd, NULL, l->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0)
        l->piped += (size_t)n;
    return l->piped > 0 ? 1 : outcome(n, LINE_EMPTY);
}

ssize_t line_splice(struct line *l, int to, size_t max, uint64_t left)
{
    if (!has_pipe(l))
        return LINE_COPY;
    l->drained = false;
    ssize_t filled = fill(l, left);
    if (filled <= 0)
        return filled;
    size_t len = l->piped < max ? l->piped : max;
    unsigned more = left > len ? SPLICE_F_MORE : 0;
    ssize_t n = splice(l->pipe[0], NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | more);
    if (n > 0)
        l->piped -= (size_t)n;
    return outcome(n, LINE_FULL);
}

/* --- waiting ---------------------------------------------------------------------------------- */

void line_await(struct line *l, uint64_t bytes)
{
    int wakes_at = bytes < WAKE_BYTES ? (int)bytes : WAKE_BYTES;
    if (wakes_at == l->wakes_at)
        return;
    /* Where this fails the caller is woken too often, or by the next tick. */
    if (setsockopt(l->fd, SOL_SOCKET, SO_RCVLOWAT, &wakes_at, sizeof wakes_at) == 0)
        l->wakes_at = wakes_at;
}

bool line_has_bytes(const struct line *l)
{
    int bytes = 0;
    return ioctl(l->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

bool line_is_clean(const struct line *l)
{
    char one;
    return recv(l->fd, &one, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}
