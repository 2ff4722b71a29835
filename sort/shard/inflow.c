#include "sort/shard/inflow.h"

#include <string.h>

#include "common/mem.h"
#include "io/file.h"

void inflow_init(struct inflow *f, const struct format_input *in)
{
    *f = (struct inflow){.in = in, .buffer = xmalloc(INFLOW_BYTES)};
}

void inflow_done(struct inflow *f)
{
    free(f->buffer);
    f->buffer = NULL;
}

static int inflow_fail(const struct inflow *f, int code, const char *why, struct error *err)
{
    return error_set(err, code, "shard '%s', byte %llu: %s", f->in->shard,
                     (unsigned long long)inflow_offset(f), why);
}

int inflow_corrupt(const struct inflow *f, const char *why, struct error *err)
{
    return inflow_fail(f, E_SHARD_CORRUPT, why, err);
}

int inflow_unsupported(const struct inflow *f, const char *why, struct error *err)
{
    return inflow_fail(f, E_SHARD_UNSUPPORTED, why, err);
}

int inflow_fill(struct inflow *f, struct error *err)
{
    if (f->at < f->len)
        return 0;
    int rc = f->in->check != NULL ? f->in->check(f->in->check_ctx, err) : 0;
    if (rc != 0)
        return rc;
    f->begin += f->at;
    f->at = f->len = 0;
    uint64_t left = f->in->size - f->begin;
    size_t len = left < INFLOW_BYTES ? (size_t)left : INFLOW_BYTES;
    if (len == 0)
        return 0;
    rc = file_pread_full(f->in->fd, f->buffer, len, f->begin, err);
    if (rc == E_LENGTH)
        return inflow_corrupt(f, "the file is shorter than its size says", err);
    if (rc != 0)
        return error_wrap(err, "read shard '%s'", f->in->shard);
    f->len = len;
    return 0;
}

void inflow_seek(struct inflow *f, uint64_t offset)
{
    if (offset >= f->begin && offset <= f->begin + f->len) {
        f->at = (size_t)(offset - f->begin);
        return;
    }
    f->begin = offset;
    f->at = f->len = 0;
}

/* The next bytes, at most `max`. */
static int inflow_take(struct inflow *f, uint64_t max, const unsigned char **data, size_t *n,
                       struct error *err)
{
    int rc = inflow_fill(f, err);
    if (rc != 0)
        return rc;
    *n = inflow_left(f) < max ? inflow_left(f) : (size_t)max;
    *data = inflow_data(f);
    return *n > 0 ? 0 : inflow_corrupt(f, "the file ends here: it is cut short", err);
}

int inflow_get(struct inflow *f, void *out, size_t len, struct error *err)
{
    for (unsigned char *to = out; len > 0;) {
        const unsigned char *data;
        size_t n;
        int rc = inflow_take(f, len, &data, &n, err);
        if (rc != 0)
            return rc;
        memcpy(to, data, n);
        f->at += n;
        to += n;
        len -= n;
    }
    return 0;
}

int inflow_copy(struct inflow *f, uint64_t len, struct sink to, struct error *err)
{
    while (len > 0) {
        const unsigned char *data;
        size_t n;
        int rc = inflow_take(f, len, &data, &n, err);
        if (rc == 0)
            rc = to.write(to.ctx, data, n, err);
        if (rc != 0)
            return rc;
        f->at += n;
        len -= n;
    }
    return 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

#define FRAMES_OUT_BYTES (256 * 1024)

static int frames_all(struct inflow *f, inflow_frame_fn *step, void *codec, unsigned char *out,
                      struct sink to, struct error *err)
{
    size_t wants = 0;
    for (;;) {
        int rc = inflow_fill(f, err);
        bool ended = inflow_left(f) == 0;
        if (rc != 0 || (ended && wants == 0))
            return rc;
        size_t made = 0;
        rc = step(f, codec, out, FRAMES_OUT_BYTES, &made, &wants, err);
        if (rc == 0 && made > 0)
            rc = to.write(to.ctx, out, made, err);
        if (rc == 0 && ended && made == 0 && wants > 0)
            rc = inflow_corrupt(f, "the file ends within a frame: it is cut short", err);
        if (rc != 0)
            return rc;
    }
}

int inflow_frames(const struct format_input *in, inflow_frame_fn *step, void *codec, struct sink to,
                  struct error *err)
{
    struct inflow f;
    unsigned char *out = xmalloc(FRAMES_OUT_BYTES);
    inflow_init(&f, in);
    int rc = frames_all(&f, step, codec, out, to, err);
    inflow_done(&f);
    free(out);
    return rc;
}
