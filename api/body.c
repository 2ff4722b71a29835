#include "api/body.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/mem.h"

/* One source of bytes; `read` gives those at b->sent. */
struct body_ops {
    bool in_store;
    ptrdiff_t (*read)(struct body *b, void *to, size_t room, struct dfc_error *err);
    int (*rewind)(struct body *b, struct dfc_error *err);
};

struct body {
    const struct body_ops *ops;
    int64_t size;
    uint64_t sent;
    const unsigned char *data; /* memory */
    int fd;                    /* file, pipe */
    off_t start;               /* file: where the body begins */
    struct dfc_source source;
    unsigned char *kept; /* read-once: the first bytes */
    size_t kept_len;
    bool kept_ended; /* they are all there is */
    bool beyond;     /* bytes after them are gone */
    enum checksum_type watch;
    struct checksum *running;
};

/* ---- memory ---- */

static ptrdiff_t memory_read(struct body *b, void *to, size_t room, struct dfc_error *err)
{
    (void)err;
    size_t left = (size_t)b->size - b->sent;
    size_t n = left < room ? left : room;
    memcpy(to, b->data + b->sent, n);
    return (ptrdiff_t)n;
}

static int nothing_to_rewind(struct body *b, struct dfc_error *err)
{
    (void)b;
    (void)err;
    return DFC_OK;
}

static const struct body_ops memory_ops = {
    .in_store = true, .read = memory_read, .rewind = nothing_to_rewind};

struct body *body_from_memory(const void *data, size_t size)
{
    struct body *b = xcalloc(1, sizeof *b);
    *b = (struct body){.ops = &memory_ops, .size = (int64_t)size, .fd = -1, .data = data};
    if (data == NULL)
        b->data = (const unsigned char *)"";
    return b;
}

/* ---- regular file ---- */

static ptrdiff_t file_read(struct body *b, void *to, size_t room, struct dfc_error *err)
{
    ssize_t n;
    do {
        n = pread(b->fd, to, room, b->start + (off_t)b->sent);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return failure_errno(err, errno, "read the file to send");
    return n;
}

static const struct body_ops file_ops = {
    .in_store = true, .read = file_read, .rewind = nothing_to_rewind};

/* ---- pipe, socket, terminal: a read-once source ---- */

static ptrdiff_t pipe_read(void *context, void *to, size_t room)
{
    struct body *b = context;
    ssize_t n;
    do {
        n = read(b->fd, to, room);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* ---- the caller's source ---- */

static ptrdiff_t source_pull(struct body *b, void *to, size_t room, struct dfc_error *err)
{
    errno = 0;
    ptrdiff_t n = b->source.read(b->source.context, to, room);
    if (n >= 0 && (size_t)n <= room)
        return n;
    if (errno != 0)
        return failure_errno(err, errno, "read the source");
    return failure_set(err, DFC_LOCAL, E_IO, "the source could not be read");
}

static int source_rewind(struct body *b, struct dfc_error *err)
{
    if (b->source.rewind(b->source.context) == 0)
        return DFC_OK;
    return failure_set(err, DFC_LOCAL, E_IO, "the source could not be rewound");
}

static const struct body_ops source_ops = {.read = source_pull, .rewind = source_rewind};

static ptrdiff_t once_read(struct body *b, void *to, size_t room, struct dfc_error *err)
{
    if (b->sent < b->kept_len) {
        size_t left = b->kept_len - b->sent;
        size_t n = left < room ? left : room;
        memcpy(to, b->kept + b->sent, n);
        return (ptrdiff_t)n;
    }
    if (b->kept_ended)
        return 0;
    b->beyond = true;
    return source_pull(b, to, room, err);
}

static const struct body_ops once_ops = {.read = once_read, .rewind = nothing_to_rewind};

struct body *body_from_source(const struct dfc_source *source)
{
    struct body *b = xcalloc(1, sizeof *b);
    *b = (struct body){
        .ops = source->rewind != NULL ? &source_ops : &once_ops,
        .size = source->size,
        .fd = -1,
        .source = *source,
    };
    return b;
}

int body_from_fd(int fd, struct body **out, struct dfc_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failure_errno(err, errno, "stat the file to send");
    if (S_ISDIR(st.st_mode))
        return failure_errno(err, EISDIR, "read the file to send");
    struct body *b = xcalloc(1, sizeof *b);
    if (!S_ISREG(st.st_mode)) {
        *b = (struct body){.ops = &once_ops, .size = -1, .fd = fd};
        b->source = (struct dfc_source){.read = pipe_read, .context = b, .size = -1};
        *out = b;
        return DFC_OK;
    }
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        at = 0;
    int64_t size = st.st_size > at ? st.st_size - at : 0;
    *b = (struct body){.ops = &file_ops, .size = size, .fd = fd, .start = at};
    *out = b;
    return DFC_OK;
}

void body_free(struct body *b)
{
    if (b == NULL)
        return;
    checksum_free(b->running);
    free(b->kept);
    free(b);
}

int body_prime(struct body *b, struct dfc_error *err)
{
    if (b->ops != &once_ops || b->kept != NULL)
        return DFC_OK;
    size_t wanted = BODY_KEPT_BYTES;
    if (b->size >= 0 && (uint64_t)b->size < wanted)
        wanted = (size_t)b->size;
    b->kept = xmalloc(BODY_KEPT_BYTES);
    while (b->kept_len < wanted) {
        ptrdiff_t n = source_pull(b, b->kept + b->kept_len, wanted - b->kept_len, err);
        if (n < 0)
            return (int)n;
        if (n == 0) {
            b->kept_ended = true;
            break;
        }
        b->kept_len += (size_t)n;
    }
    if (b->kept_ended && b->size < 0)
        b->size = (int64_t)b->kept_len;
    return DFC_OK;
}

int64_t body_size(const struct body *b)
{
    return b->size;
}

bool body_repeatable(const struct body *b)
{
    return !b->beyond;
}

bool body_in_store(const struct body *b)
{
    return b->ops->in_store;
}

bool body_rereadable(const struct body *b)
{
    return b->ops != &once_ops;
}

uint64_t body_sent(const struct body *b)
{
    return b->sent;
}

void body_watch(struct body *b, enum checksum_type type)
{
    b->watch = type;
}

bool body_seen(struct body *b, struct checksum_value *out)
{
    if (b->running == NULL)
        return false;
    checksum_final(b->running, out);
    checksum_free(steal(b->running));
    return true;
}

int body_begin(struct body *b, struct dfc_error *err)
{
    if (!body_repeatable(b))
        return failure_set(err, DFC_LOCAL, E_IO, "the source cannot be read a second time");
    int rc = b->ops->rewind(b, err);
    if (rc != DFC_OK)
        return rc;
    b->sent = 0;
    checksum_free(steal(b->running));
    if (b->watch != CHECKSUM_NONE)
        b->running = checksum_new(b->watch);
    return DFC_OK;
}

ptrdiff_t body_read(struct body *b, void *to, size_t room, struct dfc_error *err)
{
    if (b->size >= 0 && (uint64_t)b->size - b->sent < room)
        room = (size_t)((uint64_t)b->size - b->sent);
    if (room == 0)
        return 0;
    ptrdiff_t n = b->ops->read(b, to, room, err);
    if (n == 0 && b->size >= 0)
        return failure_set(err, DFC_LOCAL, E_LENGTH, "the source ended after %llu of %lld bytes",
                           (unsigned long long)b->sent, (long long)b->size);
    if (n <= 0)
        return n;
    if (b->running != NULL)
        checksum_update(b->running, to, (size_t)n);
    b->sent += (uint64_t)n;
    return n;
}

int body_checksum(struct body *b, enum checksum_type type, struct checksum_value *out,
                  struct dfc_error *err)
{
    enum { CHUNK = 256 << 10 };
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(type);
    _cleanup_free_ unsigned char *chunk = xmalloc(CHUNK);
    ptrdiff_t n;
    int rc = body_begin(b, err);
    if (rc != DFC_OK)
        return rc;
    while ((n = body_read(b, chunk, CHUNK, err)) > 0)
        checksum_update(sum, chunk, (size_t)n);
    checksum_final(sum, out);
    b->sent = 0;
    return n < 0 ? (int)n : DFC_OK;
}
