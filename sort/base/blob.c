/* Memory comes in chunks that never move, listed in a table allocated whole for the limit: that is
 * what lets readers go on while a writer appends.  Where the disk of a work file gets full, what
 * comes next goes to another one. */
#include "sort/base/blob.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/base/work.h"

#define CHUNK (256 * 1024)
#define PARTS_MAX 32
#define TRIES_MAX 4 /* work files in a row that take nothing */

/* A work file, and where its bytes begin among those beyond the memory. */
struct part {
    int fd;
    uint64_t from;
};

struct blob {
    const struct sort_env *env;
    uint64_t memory_limit; /* a multiple of CHUNK */
    unsigned char **chunks;
    struct part parts[PARTS_MAX]; /* have what is beyond memory_limit */
    atomic_uint part_count;
    uint64_t size;
};

struct blob *blob_new(const struct sort_env *env, uint64_t memory_limit)
{
    struct blob *b = xcalloc(1, sizeof *b);
    size_t count = (size_t)((memory_limit + CHUNK - 1) / CHUNK);
    *b = (struct blob){
        .env = env,
        .memory_limit = (uint64_t)count * CHUNK,
        .chunks = xcalloc(count + 1, sizeof *b->chunks),
    };
    return b;
}

/* Closes all but the first `kept` of them. */
static void parts_drop(struct blob *b, unsigned kept)
{
    unsigned count = atomic_load(&b->part_count);
    for (unsigned i = kept; i < count; i++)
        cleanup_close_(&b->parts[i].fd);
    atomic_store(&b->part_count, count < kept ? count : kept);
}

void blob_free(struct blob *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->memory_limit / CHUNK; i++)
        free(b->chunks[i]);
    free(b->chunks);
    parts_drop(b, 0);
    free(b);
}

uint64_t blob_size(const struct blob *b)
{
    return b->size;
}

void blob_reset(struct blob *b)
{
    b->size = 0;
    parts_drop(b, 1);
}

/* Bytes at `offset` that lie in one chunk. */
static size_t chunk_room(uint64_t offset, size_t len)
{
    size_t room = CHUNK - (size_t)(offset % CHUNK);
    return len < room ? len : room;
}

static size_t append_memory(struct blob *b, const unsigned char *data, size_t len)
{
    unsigned char **chunk = &b->chunks[b->size / CHUNK];
    if (*chunk == NULL)
        *chunk = xmalloc(CHUNK);
    size_t n = chunk_room(b->size, len);
    memcpy(*chunk + b->size % CHUNK, data, n);
    return n;
}

/* A work file for what comes from here on. */
static int part_begin(struct blob *b, uint64_t from, struct error *err)
{
    unsigned count = atomic_load(&b->part_count);
    if (count == PARTS_MAX)
        return error_set(err, E_NO_SPACE, "%d work files are full", PARTS_MAX);
    int rc = b->env->open_work_file(b->env->ctx, &b->parts[count].fd, err);
    if (rc != 0)
        return error_wrap(err, "open a work file");
    b->parts[count].from = from;
    atomic_store(&b->part_count, count + 1);
    return 0;
}

/* One that is full is left as it is; one that is full with nothing in it was not worth it. */
static int part_next(struct blob *b, uint64_t at, struct error *err)
{
    struct part *last = &b->parts[atomic_load(&b->part_count) - 1];
    if (last->from != at)
        return part_begin(b, at, err);
    cleanup_close_(&last->fd);
    last->fd = -1;
    return b->env->open_work_file(b->env->ctx, &last->fd, err);
}

static int append_file(struct blob *b, const void *data, size_t len, struct error *err)
{
    uint64_t at = b->size - b->memory_limit;
    int rc = atomic_load(&b->part_count) == 0 ? part_begin(b, at, err) : 0;
    for (unsigned tries = 0; rc == 0; tries++) {
        const struct part *last = &b->parts[atomic_load(&b->part_count) - 1];
        rc = work_write(b->env, last->fd, data, len, at - last->from, err);
        if (rc == 0)
            return 0;
        if (rc != E_NO_SPACE || tries == TRIES_MAX)
            return error_wrap(err, "write a work file");
        rc = part_next(b, at, err);
    }
    return rc;
}

int blob_append(struct blob *b, const void *data, size_t len, struct error *err)
{
    const unsigned char *at = data;
    while (len > 0) {
        size_t n = len;
        if (b->size < b->memory_limit) {
            n = append_memory(b, at, len);
        } else {
            int rc = append_file(b, at, len, err);
            if (rc != 0)
                return rc;
        }
        b->size += n;
        at += n;
        len -= n;
    }
    return 0;
}

/* `at` counts from the end of the memory. */
static int read_files(const struct blob *b, uint64_t at, unsigned char *out, size_t len,
                      struct error *err)
{
    int rc = 0;
    for (unsigned i = atomic_load(&b->part_count); rc == 0 && len > 0 && i-- > 0;) {
        const struct part *p = &b->parts[i];
        if (at + len <= p->from)
            continue;
        uint64_t from = at > p->from ? at : p->from;
        size_t n = (size_t)(at + len - from);
        rc = file_pread_full(p->fd, out + (from - at), n, from - p->from, err);
        len -= n;
    }
    return rc != 0 ? error_wrap(err, "read a work file") : 0;
}

int blob_read(const struct blob *b, uint64_t offset, void *out, size_t len, struct error *err)
{
    unsigned char *at = out;
    while (len > 0 && offset < b->memory_limit) {
        size_t n = chunk_room(offset, len);
        memcpy(at, b->chunks[offset / CHUNK] + offset % CHUNK, n);
        at += n;
        offset += n;
        len -= n;
    }
    return len == 0 ? 0 : read_files(b, offset - b->memory_limit, at, len, err);
}

void blob_prefetch(const struct blob *b, uint64_t offset)
{
    if (offset < b->memory_limit)
        __builtin_prefetch(b->chunks[offset / CHUNK] + offset % CHUNK);
}

static int sink_blob_write(void *ctx, const void *data, size_t len, struct error *err)
{
    return blob_append(ctx, data, len, err);
}

struct sink sink_blob(struct blob *b)
{
    return (struct sink){.write = sink_blob_write, .ctx = b};
}

static ssize_t source_blob_read(void *ctx, void *out, size_t max, struct error *err)
{
    struct blob_range *r = ctx;
    assert(r->end <= r->blob->size);
    uint64_t left = r->end - r->at;
    size_t n = left < max ? (size_t)left : max;
    int rc = blob_read(r->blob, r->at, out, n, err);
    if (rc != 0)
        return rc;
    r->at += n;
    return (ssize_t)n;
}

struct source source_blob(struct blob_range *r)
{
    return (struct source){.read = source_blob_read, .ctx = r};
}
