#include "target/store/file_md5.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "common/md5.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/pool.h"

enum { PIECE = 64 * 1024, STEP = 1024 * 1024 };

struct file_md5 {
    struct hashers *hashers;
    struct file_md5 *next; /* of those that wait for a thread */
    int fd;                /* -1: the writer computes */
    uint64_t offset;
    struct md5 md5;
    struct checksum_value value;
    pthread_mutex_t lock; /* of what follows */
    uint64_t written, read;
    unsigned refs; /* the writer's, and that of a thread */
    bool reading;  /* it waits for a thread, or one is at it */
    bool gone;     /* the writer has left */
    struct error err;
    void (*fn)(void *arg); /* NULL: not all is written */
    void *arg;
};

struct hashers {
    struct pool *threads;
    pthread_mutex_t lock; /* of what follows */
    struct file_md5 *first, **last;
    size_t waiting, jobs; /* jobs that have not begun: at least one for each file that waits */
};

struct hashers *hashers_new(struct pool *threads)
{
    struct hashers *h = xcalloc(1, sizeof *h);
    h->threads = threads;
    h->last = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

void hashers_free(struct hashers *h)
{
    if (h == NULL)
        return;
    pool_free(h->threads);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int file_md5_new(struct hashers *hashers, int fd, uint64_t offset, uint64_t size,
                 struct file_md5 **out, struct error *err)
{
    int own = size < FILE_MD5_SMALL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 && size >= FILE_MD5_SMALL)
        return error_errno(err, errno, "dup of a file that is being written");
    struct file_md5 *m = xcalloc(1, sizeof *m);
    *m = (struct file_md5){.hashers = hashers, .fd = own, .offset = offset, .refs = 1};
    md5_begin(&m->md5);
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

static void finish(struct file_md5 *m)
{
    m->value.type = CHECKSUM_MD5;
    md5_end(&m->md5, m->value.bytes);
    m->fn(m->arg);
}

/* --- in a thread of the pool ------------------------------------------------------------------ */

/* Files that a thread reads side by side. */
struct gang {
    struct file_md5 *files[MD5_LANES];
    size_t count;
    unsigned char (*pieces)[PIECE];
};

/* From those that wait, as far as there are lanes. */
static void fill_gang(struct hashers *h, struct gang *g, bool begins)
{
    pthread_mutex_lock(&h->lock);
    h->jobs -= begins;
    while (g->count < MD5_LANES && h->first != NULL) {
        struct file_md5 *m = h->first;
        h->first = m->next;
        if (h->first == NULL)
            h->last = &h->first;
        h->waiting--;
        g->files[g->count++] = m;
    }
    pthread_mutex_unlock(&h->lock);
}

/* How much of the next piece there is.  0: the thread leaves the file; *over: it ends the MD5. */
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
static bool read_piece(struct file_md5 *m, unsigned char *piece, size_t len)
{
    struct error err = ERROR_INIT;
    int code = file_pread_full(m->fd, piece, len, m->offset + m->read, &err);
    pthread_mutex_lock(&m->lock);
    if (code != 0)
        m->err = err;
    else
        m->read += len;
    pthread_mutex_unlock(&m->lock);
    return code == 0;
}

static void leave_file(struct file_md5 *m, bool over)
{
    if (over)
        finish(m);
    drop_ref(m);
}

/* A piece of each file; those that have caught up leave. */
static void hash_pieces(struct gang *g)
{
    struct md5_piece pieces[MD5_LANES];
    size_t stay = 0, count = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct file_md5 *m = g->files[i];
        bool over;
        size_t len = next_piece(m, &over);
        if (len == 0) {
            leave_file(m, over);
            continue;
        }
        g->files[stay++] = m;
        if (read_piece(m, g->pieces[count], len)) {
            pieces[count] = (struct md5_piece){&m->md5, g->pieces[count], len};
            count++;
        }
    }
    g->count = stay;
    md5_update(pieces, count);
}

static void hash_files(void *arg)
{
    struct hashers *h = arg;
    struct gang g = {.count = 0};
    fill_gang(h, &g, true);
    if (g.count > 0) /* else another thread had lanes for those that waited */
        g.pieces = xmalloc(MD5_LANES * sizeof *g.pieces);
    for (; g.count > 0; fill_gang(h, &g, false))
        hash_pieces(&g);
    free(g.pieces);
}

/* --- the writer's ----------------------------------------------------------------------------- */

/* With the lock; the caller has it wait without. */
static bool takes_thread(struct file_md5 *m, uint64_t least)
{
    bool takes = !m->reading && m->err.code == 0 && m->written - m->read >= least;
    m->reading = m->reading || takes;
    m->refs += takes;
    return takes;
}

/* The last of those that wait.  The lock is held while the pool is asked: its job comes after. */
static int join_line(struct hashers *h, struct file_md5 *m, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&h->lock);
    if (h->waiting == h->jobs)
        code = pool_submit(h->threads, hash_files, h, err);
    if (code == 0) {
        h->jobs += h->waiting == h->jobs;
        h->waiting++;
        m->next = NULL;
        *h->last = m;
        h->last = &m->next;
    }
    pthread_mutex_unlock(&h->lock);
    return code;
}

/* The reference that takes_thread() has made is the thread's, or dropped. */
static int start_thread(struct file_md5 *m, struct error *err)
{
    int code = join_line(m->hashers, m, err);
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
        md5_update(&(struct md5_piece){&m->md5, data, len}, 1);
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
