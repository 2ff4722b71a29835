#include "sort/shard/contents.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/base/work.h"

/* Bytes behind each other; fd -1 until the first. */
struct pile {
    int fd;
    uint64_t size;
};

struct contents_writer {
    struct contents *contents;
    struct pile memory, work;
    struct pile *now; /* where the present shard goes */
    int *full;        /* work files on full disks: what is in them stays there */
    size_t full_count;
    uint64_t full_bytes; /* in them */
    char *shard;         /* NULL: nothing is being written */
    uint64_t limit;      /* of the present shard */
    uint64_t size;       /* of it, the buffer included */
    uint64_t written;    /* of it, into `now` */
    unsigned char *buffer;
    size_t used;
    bool ended;
};

struct contents {
    const struct sort_env *env;
    uint64_t share; /* bytes in memory, of each writer */
    unsigned count;
    pthread_mutex_t lock; /* of taking and giving back */
    bool *taken;
    struct contents_writer *writers;
};

struct contents *contents_new(const struct sort_env *env, unsigned writers, uint64_t memory)
{
    struct contents *c = xcalloc(1, sizeof *c);
    *c = (struct contents){
        .env = env,
        .share = memory / writers,
        .count = writers,
        .taken = xcalloc(writers, sizeof *c->taken),
        .writers = xcalloc(writers, sizeof *c->writers),
    };
    pthread_mutex_init(&c->lock, NULL);
    for (unsigned i = 0; i < writers; i++)
        c->writers[i] =
            (struct contents_writer){.contents = c, .memory = {.fd = -1}, .work = {.fd = -1}};
    return c;
}

void contents_free(struct contents *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < c->count; i++) {
        assert(!c->taken[i]);
        cleanup_close_(&c->writers[i].memory.fd);
        cleanup_close_(&c->writers[i].work.fd);
        for (size_t k = 0; k < c->writers[i].full_count; k++)
            close(c->writers[i].full[k]);
        free(c->writers[i].full);
        free(c->writers[i].buffer);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->taken);
    free(c->writers);
    free(c);
}

uint64_t contents_spilled(struct contents *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->count; i++)
        sum += c->writers[i].work.size + c->writers[i].full_bytes;
    return sum;
}

/* --- a shard ---------------------------------------------------------------------------------- */

static uint64_t limit_of(uint64_t shard_size)
{
    uint64_t grown =
        shard_size < UINT64_MAX / CONTENTS_RATIO ? shard_size * CONTENTS_RATIO : UINT64_MAX;
    return grown > CONTENTS_FREE ? grown : CONTENTS_FREE;
}

struct contents_writer *contents_begin(struct contents *c, const char *shard, uint64_t shard_size)
{
    unsigned n = 0;
    pthread_mutex_lock(&c->lock);
    while (n < c->count && c->taken[n])
        n++;
    assert(n < c->count);
    c->taken[n] = true;
    pthread_mutex_unlock(&c->lock);
    struct contents_writer *w = &c->writers[n];
    if (w->buffer == NULL)
        w->buffer = xmalloc(CONTENTS_BUFFER);
    w->shard = xstrdup(shard);
    w->limit = limit_of(shard_size);
    w->now = &w->memory;
    w->size = w->written = w->used = 0;
    w->ended = false;
    return w;
}

static int memory_open(struct pile *p, struct error *err)
{
    if (p->fd >= 0)
        return 0;
    p->fd = memfd_create("dfc-sort-contents", MFD_CLOEXEC);
    return p->fd < 0 ? error_errno(err, errno, "memory for decoded shards") : 0;
}

static int work_open(struct contents_writer *w, struct error *err)
{
    if (w->work.fd >= 0)
        return 0;
    int rc = w->contents->env->open_work_file(w->contents->env->ctx, &w->work.fd, err);
    return rc != 0 ? error_wrap(err, "open a work file") : 0;
}

/* Takes the present shard back out of a pile. */
static int pile_cut(const struct pile *p, struct error *err)
{
    if (p->fd >= 0 && ftruncate(p->fd, (off_t)p->size) != 0)
        return error_errno(err, errno, "shorten a work file");
    return 0;
}

/* What has been written of the shard goes from another pile to the work file. */
static int move_out(struct contents_writer *w, const struct pile *from, struct error *err)
{
    int rc = work_open(w, err);
    unsigned char piece[16384];
    for (uint64_t done = 0; rc == 0 && done < w->written;) {
        uint64_t left = w->written - done;
        size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        rc = file_pread_full(from->fd, piece, n, from->size + done, err);
        if (rc == 0)
            rc = work_write(w->contents->env, w->work.fd, piece, n, w->work.size + done, err);
        done += n;
    }
    if (rc == 0)
        rc = pile_cut(from, err);
    w->now = &w->work;
    return rc;
}

/* The disk of the work file is full: the shard goes on in another one. */
static int work_renew(struct contents_writer *w, struct error *err)
{
    struct pile old = w->work;
    w->full = xrealloc(w->full, (w->full_count + 1) * sizeof *w->full);
    w->full[w->full_count++] = old.fd;
    w->full_bytes += old.size;
    w->work = (struct pile){.fd = -1};
    return move_out(w, &old, err);
}

static int write_out(const struct contents_writer *w, struct error *err)
{
    uint64_t at = w->now->size + w->written;
    return w->now == &w->work
               ? work_write(w->contents->env, w->now->fd, w->buffer, w->used, at, err)
               : file_pwrite_all(w->now->fd, w->buffer, w->used, at, err);
}

/* Work files are opened where there is room: one that is full at once says that there is none. */
static int write_buffer(struct contents_writer *w, struct error *err)
{
    int rc = write_out(w, err);
    if (rc != E_NO_SPACE || w->now != &w->work || w->work.size + w->written == 0)
        return rc;
    rc = work_renew(w, err);
    return rc != 0 ? rc : write_out(w, err);
}

static int writer_flush(struct contents_writer *w, struct error *err)
{
    int rc = 0;
    if (w->used == 0)
        return 0;
    if (w->now == &w->memory) {
        bool fits = w->memory.size + w->written + w->used <= w->contents->share;
        rc = fits ? memory_open(&w->memory, err) : move_out(w, &w->memory, err);
    }
    if (rc == 0)
        rc = write_buffer(w, err);
    if (rc != 0)
        return error_wrap(err, "write the contents of shard '%s'", w->shard);
    w->written += w->used;
    w->used = 0;
    return 0;
}

static int writer_put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct contents_writer *w = ctx;
    const unsigned char *at = data;
    if (len > w->limit - w->size)
        return error_set(err, E_SHARD_CORRUPT,
                         "shard '%s' grows beyond %llu bytes, which its size does not warrant",
                         w->shard, (unsigned long long)w->limit);
    w->size += len;
    while (len > 0) {
        size_t room = CONTENTS_BUFFER - w->used;
        size_t n = len < room ? len : room;
        memcpy(w->buffer + w->used, at, n);
        w->used += n;
        at += n;
        len -= n;
        int rc = w->used == CONTENTS_BUFFER ? writer_flush(w, err) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

struct sink contents_sink(struct contents_writer *w)
{
    return (struct sink){.write = writer_put, .ctx = w};
}

int contents_end(struct contents_writer *w, int *fd, uint64_t *at, uint64_t *size,
                 struct error *err)
{
    int rc = writer_flush(w, err);
    if (rc == 0 && w->now->fd < 0)
        rc = memory_open(w->now, err); /* of no bytes */
    if (rc != 0)
        return rc;
    *fd = w->now->fd;
    *at = w->now->size;
    *size = w->size;
    w->now->size += w->size;
    w->ended = true;
    return 0;
}

void contents_forget(struct contents_writer *w)
{
    if (w->ended)
        w->now->size -= w->size;
    w->ended = false;
}

void contents_release(struct contents_writer *w)
{
    if (w == NULL)
        return;
    struct contents *c = w->contents;
    /* Where this fails the next shard is written over what was left. */
    if (!w->ended)
        pile_cut(w->now, NULL);
    free(w->shard);
    w->shard = NULL;
    pthread_mutex_lock(&c->lock);
    c->taken[w - c->writers] = false;
    pthread_mutex_unlock(&c->lock);
}
