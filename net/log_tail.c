#include "net/log_tail.h"

#include <pthread.h>
#include <string.h>

#include "common/parse.h"
#include "common/rng.h"

enum { BOOT_BYTES = 8 };

static pthread_mutex_t tail_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t tail_max;
static struct buf tail = BUF_INIT; /* whole lines */
static uint64_t tail_first = 1;    /* number of the first of them … */
static uint64_t tail_next = 1;     /* … and of the next line that comes */

static pthread_once_t boot_once = PTHREAD_ONCE_INIT;
static char boot[2 * BOOT_BYTES + 1];

static void drop_lines(size_t wanted)
{
    size_t drop = 0;
    while (drop < wanted) {
        const char *end = memchr(tail.data + drop, '\n', tail.len - drop);
        drop = (size_t)(end + 1 - tail.data);
        tail_first++;
    }
    memmove(tail.data, tail.data + drop, tail.len - drop);
    tail.len -= drop;
}

/* A quarter of all makes room at once, so that few lines move the others. */
static void make_room(size_t len)
{
    if (tail.len + len <= tail_max)
        return;
    size_t over = tail.len + len - tail_max, quarter = tail_max / 4;
    size_t wanted = over > quarter ? over : quarter;
    drop_lines(wanted < tail.len ? wanted : tail.len);
}

void log_tail_keep(size_t bytes)
{
    pthread_mutex_lock(&tail_lock);
    tail_max = bytes;
    if (tail.len > bytes)
        drop_lines(tail.len - bytes);
    pthread_mutex_unlock(&tail_lock);
}

void log_tail_add(const char *line, size_t len)
{
    pthread_mutex_lock(&tail_lock);
    if (len <= tail_max && len > 0 && memchr(line, '\n', len) == line + len - 1) {
        make_room(len);
        buf_append(&tail, line, len);
        tail_next++;
    }
    pthread_mutex_unlock(&tail_lock);
}

uint64_t log_tail_read(uint64_t after, struct buf *out, uint64_t *first)
{
    pthread_mutex_lock(&tail_lock);
    uint64_t number = tail_first, last = tail_next - 1;
    const char *at = tail.data;
    *first = tail_first;
    for (; number < tail_next && number <= after; number++)
        at = (const char *)memchr(at, '\n', tail.len - (size_t)(at - tail.data)) + 1;
    if (number < tail_next)
        buf_append(out, at, tail.len - (size_t)(at - tail.data));
    pthread_mutex_unlock(&tail_lock);
    return last > after ? last : after;
}

static void draw_boot(void)
{
    uint8_t bytes[BOOT_BYTES];
    random_bytes(bytes, sizeof bytes);
    format_hex(bytes, sizeof bytes, boot);
}

const char *log_tail_boot(void)
{
    pthread_once(&boot_once, draw_boot);
    return boot;
}
