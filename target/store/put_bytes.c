/* The bytes of a PUT: room for them, their sums, and the buffer that gathers small ones. */
#include "target/store/put_internal.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/meter.h"
#include "target/disk/claim.h"
#include "target/store/file_md5.h"

enum {
    WRITE_THROUGH_MIN = 64 * 1024, /* a piece of this size is written as it is */
    PREALLOCATE_MIN = 1 << 20, /* smaller files get their blocks when they are flushed, together */
};

/* --- room ------------------------------------------------------------------------------------- */

/* How far room is taken before the byte at `at` is written. */
static uint64_t put_claim_end(const struct object_put *p, uint64_t at)
{
    const struct object_store_config *config = &p->commit.place.store->config;
    if (!put_is_announced(p))
        return space_step_end(&config->grow, at);
    uint64_t end = space_step_end(&config->allocate, at);
    return p->size < PREALLOCATE_MIN || end > p->size ? p->size : end;
}

/* What is small, and the beginning of what may be, is let in by put_check_space() alone. */
int object_put_claim(struct object_put *p, uint64_t at, struct error *err)
{
    const struct mountpath *mp = p->commit.place.mp;
    uint64_t from = p->claimed, end = put_claim_end(p, at);
    if (end <= from)
        return 0;
    p->claimed = end;
    if (from == 0 && (!put_is_announced(p) || p->size < PREALLOCATE_MIN))
        return 0;
    p->allocated = true;
    if (from == 0)
        return claim_allocate(mp->path, p->commit.fd, from, end, err);
    return claim_take(&p->commit.place.store->config.space, mp->path, p->commit.fd, from, end, err);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* The bytes of another file, which are shared with it, or copied by its file system; NULL: they are
 * in memory alone. */
struct origin {
    int fd;
    uint64_t offset;
};

static int put_write_out(struct object_put *p, const void *data, size_t len,
                         const struct origin *from, struct error *err)
{
    struct meter *meter = p->commit.place.mp->meter;
    meter_enter(meter);
    uint64_t began_us = clock_us();
    int code = from != NULL ? direct_copy(&p->direct, from->fd, from->offset, data, len, err)
                            : direct_write(&p->direct, data, len, err);
    meter_count(meter, METER_WRITE, began_us, len);
    meter_leave(meter);
    if (code == 0 && p->md5 != NULL)
        file_md5_wrote(p->md5, data, len);
    if (code == 0)
        return 0;
    mountpath_failed(p->commit.place.mp, code);
    return error_recode(err, code, "'%s/.dfc/tmp/%s'", p->commit.place.mp->path, p->commit.tmp);
}

int object_put_flush(struct object_put *p, struct error *err)
{
    size_t len = p->buffered;
    p->buffered = 0;
    return len > 0 ? put_write_out(p, p->buffer, len, NULL, err) : 0;
}

/* A buffer, once there is something to gather; none when all buffers together have reached their
 * limit. */
static void put_take_buffer(struct object_put *p)
{
    struct object_store *s = p->commit.place.store;
    size_t size = s->config.put_buffer_bytes;
    if (atomic_fetch_add(&s->put_memory, size) + size > s->config.put_memory_bytes) {
        atomic_fetch_sub(&s->put_memory, size);
        return;
    }
    p->buffer = xmalloc(size);
    p->buffer_size = size;
}

/* Pieces that are large, or all there is, go to the file as they are; small ones are gathered. */
static bool put_writes_through(struct object_put *p, size_t len)
{
    if (p->buffered > 0)
        return false;
    if (len >= WRITE_THROUGH_MIN || p->written == p->size)
        return true;
    if (p->buffer == NULL)
        put_take_buffer(p);
    return len >= p->buffer_size;
}

static int put_store(struct object_put *p, const char *at, size_t len, struct error *err)
{
    int code = 0;
    while (len > 0 && code == 0) {
        if (put_writes_through(p, len))
            return put_write_out(p, at, len, NULL, err);
        size_t room = p->buffer_size - p->buffered, n = len < room ? len : room;
        memcpy(p->buffer + p->buffered, at, n);
        p->buffered += n;
        at += n;
        len -= n;
        if (p->buffered == p->buffer_size)
            code = object_put_flush(p, err);
    }
    return code;
}

/* So many bytes more are the object's: there is room for them, and they are summed up. */
static int put_take(struct object_put *p, const void *data, size_t len, struct error *err)
{
    if (p->size != OBJECT_SIZE_UNKNOWN && len > p->size - p->written)
        return error_set(err, E_LENGTH, "more than the announced %llu bytes have come",
                         (unsigned long long)p->size);
    p->written += len;
    int code = put_takes_room(p) && len > 0 ? object_put_claim(p, p->written - 1, err) : 0;
    if (code == 0)
        put_sums_update(&p->sums, data, len);
    return code;
}

int object_put_write(struct object_put *p, const void *data, size_t len, struct error *err)
{
    int code = put_take(p, data, len, err);
    return code != 0 ? code : put_store(p, data, len, err);
}

int object_put_copy(struct object_put *p, int fd, uint64_t offset, const void *data, size_t len,
                    struct error *err)
{
    const struct origin from = {.fd = fd, .offset = offset};
    int code = put_take(p, data, len, err);
    if (code == 0)
        code = object_put_flush(p, err);
    return code != 0 || len == 0 ? code : put_write_out(p, data, len, &from, err);
}
