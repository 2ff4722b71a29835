#include "net/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/utf8.h"

/* systemd reads 4096 bytes of a message. */
enum { STATUS_MAX = 1024 };

struct notify {
    int fd;
    struct sockaddr_un address;
    socklen_t address_len;
    pthread_mutex_t lock; /* what follows */
    bool ready;           /* READY=1 was said */
    bool complained;      /* the log has said that nobody can be reached */
    char *state;          /* lines that were not sent yet, or NULL */
    char *status;
    uint64_t extend_ms; /* likewise, or 0 */
    uint64_t retry_ms;  /* when a socket that could not be reached is tried again, or 0 */
};

/* --- the socket ------------------------------------------------------------------------------- */

static bool parse_address(const char *name, struct sockaddr_un *out, socklen_t *len)
{
    size_t n = strlen(name);
    bool abstract = name[0] == '@';
    if ((name[0] != '/' && !abstract) || n < 2 || n >= sizeof out->sun_path)
        return false;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, name, n);
    if (abstract)
        out->sun_path[0] = '\0'; /* and its length ends the name */
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (abstract ? 0 : 1));
    return true;
}

struct notify *notify_open(void)
{
    struct notify n = {.fd = -1};
    const char *value = getenv("NOTIFY_SOCKET");
    if (value == NULL)
        return NULL;
    _cleanup_free_ char *name = xstrdup(value);
    unsetenv("NOTIFY_SOCKET");
    if (!parse_address(name, &n.address, &n.address_len)) {
        log_warn("NOTIFY_SOCKET is neither a path nor an abstract name: no notifications",
                 lstr("socket", name));
        return NULL;
    }
    n.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n.fd < 0) {
        log_warn("no socket for notifications", li64("errno", errno));
        return NULL;
    }
    struct notify *out = xcalloc(1, sizeof *out);
    *out = n;
    pthread_mutex_init(&out->lock, NULL);
    return out;
}

void notify_close(struct notify *n)
{
    if (n == NULL)
        return;
    close(n->fd);
    pthread_mutex_destroy(&n->lock);
    free(n->state);
    free(n->status);
    free(n);
}

/* --- sending (the lock is held) --------------------------------------------------------------- */

static void forget(struct notify *n)
{
    free(steal(n->state));
    free(steal(n->status));
    n->extend_ms = 0;
}

static void put_message(const struct notify *n, struct buf *out)
{
    if (n->state != NULL)
        buf_puts(out, n->state);
    if (n->status != NULL)
        buf_printf(out, "STATUS=%s\n", n->status);
    if (n->extend_ms != 0)
        buf_printf(out, "EXTEND_TIMEOUT_USEC=%" PRIu64 "\n", n->extend_ms * 1000);
}

/* Connected, so that poll() knows whether the manager's queue has room; each time anew, since a
 * socket may have been made again.  0, or an errno. */
static int send_message(struct notify *n, const struct buf *message)
{
    if (connect(n->fd, (const struct sockaddr *)&n->address, n->address_len) != 0)
        return errno;
    ssize_t sent = send(n->fd, message->data, message->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? errno : 0;
}

/* The manager may be on its way up again.  What is kept waits for a time: poll() would tell of room
 * at once. */
static void unreachable(struct notify *n, int errnum)
{
    n->retry_ms = clock_ms() + NOTIFY_RETRY_MS;
    if (n->complained)
        return;
    n->complained = true;
    log_warn("the service manager cannot be reached at NOTIFY_SOCKET: the daemon goes on",
             li64("errno", errnum));
}

static void flush(struct notify *n)
{
    _cleanup_buf_ struct buf message = BUF_INIT;
    put_message(n, &message);
    if (message.len == 0)
        return;
    int code = send_message(n, &message);
    n->retry_ms = 0;
    if (code == EAGAIN || code == EWOULDBLOCK)
        return; /* what is kept waits for room */
    if (code != 0)
        unreachable(n, code);
    else
        forget(n);
}

static void keep_state(struct notify *n, char *lines)
{
    free(n->state);
    n->state = lines;
}

/* One line of UTF-8, or systemd takes none of it. */
static void keep_status(struct notify *n, const char *status)
{
    _cleanup_buf_ struct buf line = BUF_INIT;
    size_t left = strlen(status);
    while (left > 0 && line.len < STATUS_MAX) {
        size_t len = utf8_sequence(status, left);
        if (len == 0 || (unsigned char)*status < ' ')
            buf_puts(&line, "?");
        else
            buf_append(&line, status, len);
        len = len == 0 ? 1 : len;
        status += len;
        left -= len;
    }
    free(n->status);
    n->status = xstrdup(buf_str(&line));
}

/* --- what is said ----------------------------------------------------------------------------- */

void notify_ready(struct notify *n, const char *status)
{
    if (n == NULL)
        return;
    pthread_mutex_lock(&n->lock);
    if (!n->ready)
        keep_state(n, xstrdup("READY=1\n"));
    n->ready = true;
    n->extend_ms = 0; /* of the start, which has ended */
    keep_status(n, status);
    flush(n);
    pthread_mutex_unlock(&n->lock);
}

static void change(struct notify *n, char *lines)
{
    pthread_mutex_lock(&n->lock);
    keep_state(n, lines);
    flush(n);
    pthread_mutex_unlock(&n->lock);
}

static bool was_ready(struct notify *n)
{
    if (n == NULL)
        return false;
    pthread_mutex_lock(&n->lock);
    bool ready = n->ready;
    pthread_mutex_unlock(&n->lock);
    return ready;
}

void notify_reloading(struct notify *n)
{
    if (was_ready(n))
        change(n, xprintf("RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n", clock_us()));
}

void notify_reloaded(struct notify *n)
{
    if (was_ready(n))
        change(n, xstrdup("READY=1\n"));
}

void notify_stopping(struct notify *n, uint64_t wait_ms)
{
    if (n == NULL)
        return;
    pthread_mutex_lock(&n->lock);
    keep_state(n, xstrdup("STOPPING=1\n"));
    n->extend_ms = wait_ms + NOTIFY_STOP_MARGIN_MS;
    flush(n);
    pthread_mutex_unlock(&n->lock);
}

void notify_status(struct notify *n, const char *status)
{
    notify_progress(n, 0, status);
}

void notify_progress(struct notify *n, uint64_t extend_ms, const char *status)
{
    if (n == NULL)
        return;
    pthread_mutex_lock(&n->lock);
    if (extend_ms > n->extend_ms)
        n->extend_ms = extend_ms;
    keep_status(n, status);
    flush(n);
    pthread_mutex_unlock(&n->lock);
}

/* --- what waits ------------------------------------------------------------------------------- */

int notify_fd(struct notify *n)
{
    if (n == NULL)
        return -1;
    pthread_mutex_lock(&n->lock);
    bool waits = n->state != NULL || n->status != NULL || n->extend_ms != 0;
    bool for_room = waits && n->retry_ms == 0;
    pthread_mutex_unlock(&n->lock);
    return for_room ? n->fd : -1;
}

uint64_t notify_retry_ms(struct notify *n)
{
    if (n == NULL)
        return UINT64_MAX;
    pthread_mutex_lock(&n->lock);
    uint64_t at_ms = n->retry_ms != 0 ? n->retry_ms : UINT64_MAX;
    pthread_mutex_unlock(&n->lock);
    return at_ms;
}

void notify_flush(struct notify *n)
{
    if (n == NULL)
        return;
    pthread_mutex_lock(&n->lock);
    flush(n);
    pthread_mutex_unlock(&n->lock);
}
