#include "access/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/thread.h"

struct audit {
    char *path, *node;
    enum audit_level level;
    size_t buffer_bytes;
    bool must;
    metric_t *dropped;
    pthread_t writer;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wakes; /* lines wait, or there is room, or it ends */
    struct buf waiting;
    int fd;
    bool failed; /* the last write */
    bool over;
};

int audit_level_from_name(const char *name, enum audit_level *out, struct error *err)
{
    static const char *const names[] = {"none", "denied", "changes", "all"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum audit_level)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%.32s' is not none, denied, changes or all", name);
}

/* --- a line ----------------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    buf_printf(out, ",\"%s\":\"", name);
    buf_put_json_escaped(out, text, strlen(text));
    buf_putc(out, '"');
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

static void put_line(const struct audit *a, const struct audit_line *l, struct buf *out)
{
    char time[32];
    int64_t now_ms = clock_wall_ms();
    clock_format_rfc3339(now_ms, time);
    size_t whole = strlen(time) - 1; /* without the Z */
    buf_printf(out, "{\"time\":\"%.*s.%03dZ\"", (int)whole, time, (int)(now_ms % 1000));
    put_text(out, "node", a->node);
    put_text(out, "request_id", l->request_id);
    put_text(out, "peer", l->peer);
    put_text(out, "user", l->user);
    put_text(out, "key", l->key);
    put_text(out, "via", l->via);
    put_text(out, "op", l->op);
    put_text(out, "path", l->path);
    put_text(out, "bucket", l->bucket);
    put_text(out, "object", l->object);
    put_number(out, "status", l->status);
    put_text(out, "code", l->code);
    put_text(out, "rule", l->rule);
    put_number(out, "bytes_in", l->bytes_in);
    put_number(out, "bytes_out", l->bytes_out);
    put_number(out, "ms", l->ms);
    buf_puts(out, "}\n");
}

bool audit_wants(const struct audit *a, const struct audit_line *l)
{
    enum audit_level least = l->denied ? AUDIT_DENIED : l->changes ? AUDIT_CHANGES : AUDIT_ALL;
    return a->level >= least;
}

/* A line that is longer than the whole buffer fits when nothing waits. */
static bool fits(const struct audit *a, size_t len)
{
    return a->waiting.len == 0 || a->waiting.len + len <= a->buffer_bytes;
}

void audit_put(struct audit *a, const struct audit_line *line)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (!audit_wants(a, line))
        return;
    put_line(a, line, &text);
    pthread_mutex_lock(&a->lock);
    while (a->must && !fits(a, text.len))
        pthread_cond_wait(&a->wakes, &a->lock);
    if (fits(a, text.len))
        buf_append(&a->waiting, text.data, text.len);
    else
        metric_add(a->dropped, 1);
    pthread_cond_broadcast(&a->wakes);
    pthread_mutex_unlock(&a->lock);
}

/* --- the writer ------------------------------------------------------------------------------- */

/* Does the file end in the middle of a line?  A full disk, or a crash, has cut a write. */
static bool is_torn(int fd)
{
    struct stat st;
    char last;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
           pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* errno, or 0; `done` grows by what was written. */
static int write_all(int fd, const char *data, size_t len, size_t *done)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, data + at, len - at);
        if (n < 0 && errno != EINTR)
            return errno;
        at += n > 0 ? (size_t)n : 0;
        *done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static size_t count_lines(const char *data, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += data[i] == '\n';
    return count;
}

/* Without the lock, so that nobody waits for the disk; the descriptor is the writer's own. */
static void write_out(struct audit *a, const struct buf *text)
{
    int fd = a->fd;
    size_t ended = 0, done = 0;
    pthread_mutex_unlock(&a->lock);
    int error = is_torn(fd) ? write_all(fd, "\n", 1, &ended) : 0;
    if (error == 0)
        error = write_all(fd, text->data, text->len, &done);
    pthread_mutex_lock(&a->lock);
    metric_add(a->dropped, count_lines(text->data + done, text->len - done));
    if (error != 0 && !a->failed)
        log_error("audit log not written", lstr("file", a->path), lstr("error", strerror(error)));
    a->failed = error != 0;
}

static void *run(void *arg)
{
    struct audit *a = arg;
    struct buf text = BUF_INIT;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (a->waiting.len == 0 && !a->over)
            pthread_cond_wait(&a->wakes, &a->lock);
        if (a->waiting.len == 0)
            break;
        struct buf full = a->waiting;
        a->waiting = text;
        text = full;
        pthread_cond_broadcast(&a->wakes);
        write_out(a, &text);
        buf_clear(&text);
    }
    pthread_mutex_unlock(&a->lock);
    buf_done(&text);
    return NULL;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int open_file(const char *path, int *fd, struct error *err)
{
    *fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                 : open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return *fd >= 0 ? 0 : error_errno(err, errno, "open the audit log '%s'", path);
}

/* Under the number of the old one, which the writer may be using. */
int audit_reopen(struct audit *a, struct error *err)
{
    int fd = -1, code = open_file(a->path, &fd, err);
    if (code != 0)
        return code;
    if (dup3(fd, a->fd, O_CLOEXEC) < 0)
        code = error_errno(err, errno, "take the audit log '%s'", a->path);
    close(fd);
    return code;
}

static void drop(struct audit *a)
{
    if (a->fd >= 0)
        close(a->fd);
    buf_done(&a->waiting);
    pthread_cond_destroy(&a->wakes);
    pthread_mutex_destroy(&a->lock);
    free(a->path);
    free(a->node);
    free(a);
}

int audit_new(const struct audit_config *config, struct audit **out, struct error *err)
{
    struct audit *a = xcalloc(1, sizeof *a);
    a->path = xstrdup(config->path);
    a->node = xstrdup(config->node);
    a->level = config->level;
    a->buffer_bytes = config->buffer_bytes;
    a->must = config->must;
    a->dropped = metric_get(M_audit_dropped_total, NULL);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wakes, NULL);
    int code = open_file(a->path, &a->fd, err);
    if (code == 0)
        code = thread_start("audit", run, a, &a->writer, err);
    if (code != 0) {
        drop(a);
        return code;
    }
    *out = a;
    return 0;
}

void audit_free(struct audit *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->over = true;
    pthread_cond_broadcast(&a->wakes);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->writer, NULL);
    drop(a);
}
