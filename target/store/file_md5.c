#include "target/store/file_md5.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/file.h"
#include "io/pool.h"

enum { PIECE = 256 * 1024, STEP = 1024 * 1024 };

struct file_md5 {
    struct pool *threads;
    int fd; /* -1: the writer computes */
    uint64_t offset;
    struct checksum *md5;
    struct checksum_value value;
    pthread_mutex_t lock; /* of what follows */
    uint64_t written, read;
    unsigned refs; /* the writer's, and that of a thread */
    bool reading;  /* a thread is at it */
    bool gone;     /* the writer has left */
    struct error err;
    void (*fn)(void *arg); /* NULL: not all is written */
    void *arg;
};

int file_md5_new(struct pool *threads, int fd, uint64_t offset, uint64_t size,
                 struct file_md5 **out, struct error *err)
{
    int own = size < FILE_MD5_SMALL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 && size >= FILE_MD5_SMALL)
        return error_errno(err, errno, "dup of a file that is being written");
    struct file_md5 *m = xcalloc(1, sizeof *m);
    *m = (struct file_md5){.threads = threads,
                           .fd = own,
                           .offset = offset,
                           .md5 = checksum_new(CHECKSUM_MD5),
                           .refs = 1};
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return 0;
}

static void drop_ref(struct file_md5 *m)
{
    pthread_mutex_lock(&m->lock);
    bool last = --m->refs == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    if (m->fd >= 0)
        close(m->fd);
    checksum_free(m->md5);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void file_md5_unref(struct file_md5 *m)
{
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->gone = true;
    pthread_mutex_unlock(&m->lock);
    drop_ref(m);
}

/* --- in a thread of the pool ------------------------------------------------------------------ */

/* How much of the next piece there is.  0: the thread leaves; *over: it ends the digest. */
static size_t next_piece(struct file_md5 *m, bool *over)
{
    pthread_mutex_lock(&m->lock);
    uint64_t left = m->err.code == 0 && !m->gone ? m->written - m->read : 0;
    *over = left == 0 && m->fn != NULL && !m->gone;
    m->reading = left > 0;
    pthread_mutex_unlock(&m->lock);
    return left < PIECE ? (size_t)left : PIECE;
}

/* `read` is changed by the thread that reads alone. */
static void read_piece(struct file_md5 *m, char *piece, size_t len)
{
    struct error err = ERROR_INIT;
    int code = file_pread_full(m->fd, piece, len, m->offset + m->read, &err);
    if (code == 0)
        checksum_update(m->md5, piece, len);
    pthread_mutex_lock(&m->lock);
    if (code != 0)
        m->err = err;
    else
        m->read += len;
    pthread_mutex_unlock(&m->lock);
}

static void finish(struct file_md5 *m)
{
    checksum_final(m->md5, &m->value);
    m->fn(m->arg);
}

static void follow(void *arg)
{
    struct file_md5 *m = arg;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    bool over;
    for (size_t len; (len = next_piece(m, &over)) > 0;)
        read_piece(m, piece, len);
    if (over)
        finish(m);
    drop_ref(m);
}

/* --- the writer's ----------------------------------------------------------------------------- */

/* With the lock; the caller submits it without. */
static bool takes_thread(struct file_md5 *m, uint64_t least)
{
    bool takes = !m->reading && m->err.code == 0 && m->written - m->read >= least;
    m->reading = m->reading || takes;
    m->refs += takes;
    return takes;
}

/* The reference that takes_thread() has made is the thread's, or dropped. */
static int start_thread(struct file_md5 *m, struct error *err)
{
    int code = pool_submit(m->threads, follow, m, err);
    if (code == 0)
        return 0;
    pthread_mutex_lock(&m->lock);
    m->reading = false;
    m->refs--; /* the writer has one, too */
    pthread_mutex_unlock(&m->lock);
    return code;
}

void file_md5_wrote(struct file_md5 *m, const void *data, size_t len)
{
    if (m->fd < 0) {
        checksum_update(m->md5, data, len);
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->written += len;
    bool starts = takes_thread(m, STEP);
    pthread_mutex_unlock(&m->lock);
    if (starts)
        (void)start_thread(m, NULL); /* a pool that is full now is asked again later */
}

void file_md5_end(struct file_md5 *m, const struct error *why, void (*fn)(void *arg), void *arg)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&m->lock);
    if (why != NULL)
        m->err = *why;
    bool starts = takes_thread(m, 1);
    bool is_over = !m->reading;
    m->fn = fn;
    m->arg = arg;
    pthread_mutex_unlock(&m->lock);
    if (starts && start_thread(m, &err) != 0) {
        m->err = err;
        is_over = true;
    }
    if (is_over)
        finish(m);
}

int file_md5_result(const struct file_md5 *m, char hex[static 2 * CHECKSUM_MAX + 1],
                    struct error *err)
{
    if (m->err.code != 0)
        return error_set(err, m->err.code, "%s", m->err.message);
    checksum_hex(&m->value, hex);
    return 0;
}
