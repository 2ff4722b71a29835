#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/utf8.h"

static const char *const log_names[] = {"debug", "info", "warn", "error", "off"};
static const char *const log_labels[] = {"DEBUG", "INFO", "WARN", "ERROR", "OFF", "AUDIT"};

static atomic_int log_threshold = LOG_INFO;
static atomic_int log_shape = LOG_TEXT;
static pthread_mutex_t log_node_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_node[64]; /* under log_node_lock */
static _Atomic(void (*)(const char *line, size_t len)) log_copy;
static _Thread_local const char *log_request;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

const char *log_level_now(void)
{
    return log_names[atomic_load_explicit(&log_threshold, memory_order_relaxed)];
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&log_shape, (int)format, memory_order_relaxed);
}

void log_set_node(const char *name)
{
    pthread_mutex_lock(&log_node_lock);
    snprintf(log_node, sizeof log_node, "%s", name != NULL ? name : "");
    pthread_mutex_unlock(&log_node_lock);
}

/* Under stderr's number, so that all that a library prints is in it, too. */
int log_set_file(const char *path, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0)
        return error_errno(err, errno, "open the log '%s'", path);
    int code =
        dup2(fd, STDERR_FILENO) >= 0 ? 0 : error_errno(err, errno, "take the log '%s'", path);
    close(fd);
    return code;
}

static void log_get_node(char out[static sizeof log_node])
{
    pthread_mutex_lock(&log_node_lock);
    memcpy(out, log_node, sizeof log_node);
    pthread_mutex_unlock(&log_node_lock);
}

void log_set_copy(void (*fn)(const char *line, size_t len))
{
    atomic_store_explicit(&log_copy, fn, memory_order_relaxed);
}

void log_set_request(const char *request_id)
{
    log_request = request_id;
}

int log_level_from_name(const char *name, enum log_level *level)
{
    for (int i = LOG_DEBUG; i <= LOG_OFF; i++) {
        if (strcmp(log_names[i], name) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    }
    return E_INVALID;
}

static void put_time(struct buf *line)
{
    char text[32];
    int64_t now_ms = clock_wall_ms();
    clock_format_rfc3339(now_ms, text);
    size_t whole = strlen(text) - 1; /* without the Z */
    buf_printf(line, "%.*s.%03dZ", (int)whole, text, (int)(now_ms % 1000));
}

/* The text, escaped as in JSON, and cut where it is longer than LOG_VALUE_MAX. */
static void put_escaped(struct buf *line, const char *text)
{
    size_t len = strnlen(text, LOG_VALUE_MAX + 1);
    if (len <= LOG_VALUE_MAX) {
        buf_put_json_escaped(line, text, len);
        return;
    }
    len = LOG_VALUE_MAX;
    while (len > LOG_VALUE_MAX - 4 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--; /* not through the middle of a character */
    buf_put_json_escaped(line, text, len);
    buf_puts(line, "...");
}

static void put_quoted(struct buf *line, const char *text)
{
    buf_putc(line, '"');
    put_escaped(line, text);
    buf_putc(line, '"');
}

static bool text_needs_quotes(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char u = (unsigned char)*c;
        if (u <= ' ' || u == 0x7f || u == '"' || u == '=' || u == '\\')
            return true;
    }
    return text[0] == '\0' || !utf8_valid(text, strlen(text));
}

static void put_value(struct buf *line, const struct log_field *f, enum log_format format)
{
    switch (f->type) {
    case LOG_F_I64:
        buf_printf(line, "%lld", (long long)f->i64);
        break;
    case LOG_F_U64:
        buf_printf(line, "%llu", (unsigned long long)f->u64);
        break;
    case LOG_F_BOOL:
        buf_puts(line, f->boolean ? "true" : "false");
        break;
    case LOG_F_STR:
        if (f->str == NULL)
            buf_puts(line, "null");
        else if (format == LOG_JSON || text_needs_quotes(f->str))
            put_quoted(line, f->str);
        else
            put_escaped(line, f->str);
        break;
    }
}

static void put_text_field(struct buf *line, const struct log_field *f)
{
    buf_printf(line, " %s=", f->key);
    put_value(line, f, LOG_TEXT);
}

static void put_text(struct buf *line, enum log_level level, const char *node, const char *event,
                     const struct log_field *fields)
{
    put_time(line);
    buf_printf(line, " %s %s ", log_labels[level], node[0] != '\0' ? node : "-");
    put_escaped(line, event);
    if (log_request != NULL)
        put_text_field(line, &lstr("req", log_request));
    for (const struct log_field *f = fields; f->key != NULL; f++)
        put_text_field(line, f);
    buf_putc(line, '\n');
}

static void put_json_field(struct buf *line, const struct log_field *f)
{
    buf_putc(line, ',');
    put_quoted(line, f->key);
    buf_putc(line, ':');
    put_value(line, f, LOG_JSON);
}

static void put_json(struct buf *line, enum log_level level, const char *node, const char *event,
                     const struct log_field *fields)
{
    buf_puts(line, "{\"time\":\"");
    put_time(line);
    buf_putc(line, '"');
    put_json_field(line, &lstr("level", log_names[level]));
    put_json_field(line, &lstr("daemon", node));
    put_json_field(line, &lstr("event", event));
    if (log_request != NULL)
        put_json_field(line, &lstr("req", log_request));
    for (const struct log_field *f = fields; f->key != NULL; f++)
        put_json_field(line, f);
    buf_puts(line, "}\n");
}

/* One write(2), which the kernel keeps whole on files and, up to PIPE_BUF, on pipes.  A stderr
 * that takes no more loses lines: the daemon must not stop for its log. */
static void write_line(const struct buf *line)
{
    ssize_t n;
    size_t done = 0;
    do {
        n = write(STDERR_FILENO, line->data + done, line->len - done);
        if (n > 0)
            done += (size_t)n;
    } while (done < line->len && (n > 0 || (n < 0 && errno == EINTR)));
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if ((int)level < atomic_load_explicit(&log_threshold, memory_order_relaxed))
        return;
    int saved_errno = errno;
    char node[sizeof log_node];
    log_get_node(node);
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    if (atomic_load_explicit(&log_shape, memory_order_relaxed) == LOG_JSON)
        put_json(&line, level, node, event, fields);
    else
        put_text(&line, level, node, event, fields);
    write_line(&line);
    void (*copy)(const char *, size_t) = atomic_load_explicit(&log_copy, memory_order_relaxed);
    if (copy != NULL)
        copy(line.data, line.len);
    errno = saved_errno;
}
