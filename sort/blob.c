/* Memory comes in chunks that never move, listed in a table allocated whole for the limit: that is
 * what lets readers go on while a writer appends. */
#include "sort/blob.h"

#include <assert.h>

#include "common/mem.h"
#include "io/file.h"

#define CHUNK (256 * 1024)

struct blob {
    const struct sort_env *env;
    uint64_t memory_limit; /* a multiple of CHUNK */
    unsigned char **chunks;
    int fd; /* holds what is beyond memory_limit; -1 until needed */
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
        .fd = -1,
    };
    return b;
}

void blob_free(struct blob *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->memory_limit / CHUNK; i++)
        free(b->chunks[i]);
    free(b->chunks);
    cleanup_close_(&b->fd);
    free(b);
}

uint64_t blob_size(const struct blob *b)
{
    return b->size;
}

void blob_reset(struct blob *b)
{
    b->size = 0;
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

static int append_file(struct blob *b, const void *data, size_t len, struct error *err)
{
    if (b->fd < 0) {
        int rc = b->env->open_work_file(b->env->ctx, &b->fd, err);
        if (rc != 0)
            return error_wrap(err, "open a work file");
    }
    int rc = file_pwrite_all(b->fd, data, len, b->size - b->memory_limit, err);
    return rc != 0 ? error_wrap(err, "write a work file") : 0;
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
    if (len == 0)
        return 0;
    int rc = file_pread_full(b->fd, at, len, offset - b->memory_limit, err);
    return rc != 0 ? error_wrap(err, "read a work file") : 0;
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
