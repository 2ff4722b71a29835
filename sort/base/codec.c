#include "sort/base/codec.h"

#include "common/mem.h"

static int sink_buf_write(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    buf_append(ctx, data, len);
    return 0;
}

struct sink sink_buf(struct buf *b)
{
    return (struct sink){.write = sink_buf_write, .ctx = b};
}

static ssize_t source_span_read(void *ctx, void *out, size_t max, struct error *err)
{
    (void)err;
    struct span *s = ctx;
    size_t n = s->len < max ? s->len : max;
    if (n > 0)
        memcpy(out, s->data, n);
    s->data += n;
    s->len -= n;
    return (ssize_t)n;
}

struct source source_span(struct span *s)
{
    return (struct source){.read = source_span_read, .ctx = s};
}

void encoder_init(struct encoder *e, struct sink sink)
{
    *e = (struct encoder){
        .sink = sink,
        .checksum = checksum_new(CHECKSUM_XXH3),
        .buffer = xmalloc(CODEC_BUFFER),
    };
}

void encoder_done(struct encoder *e)
{
    checksum_free(e->checksum);
    free(e->buffer);
    *e = (struct encoder){0};
}

int encoder_flush(struct encoder *e, struct error *err)
{
    if (e->used == 0)
        return 0;
    checksum_update(e->checksum, e->buffer, e->used);
    size_t len = e->used;
    e->used = 0;
    return e->sink.write(e->sink.ctx, e->buffer, len, err);
}

int encoder_put(struct encoder *e, const void *data, size_t len, struct error *err)
{
    const unsigned char *at = data;
    while (len > 0) {
        if (e->used == CODEC_BUFFER) {
            int rc = encoder_flush(e, err);
            if (rc != 0)
                return rc;
        }
        size_t room = CODEC_BUFFER - e->used;
        size_t n = len < room ? len : room;
        memcpy(e->buffer + e->used, at, n);
        e->used += n;
        at += n;
        len -= n;
    }
    return 0;
}

int encoder_put_u64(struct encoder *e, uint64_t value, struct error *err)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    return encoder_put(e, bytes, sizeof bytes, err);
}

int encoder_put_checksum(struct encoder *e, struct error *err)
{
    int rc = encoder_flush(e, err);
    if (rc != 0)
        return rc;
    struct checksum_value sum;
    checksum_final(e->checksum, &sum);
    return e->sink.write(e->sink.ctx, sum.bytes, checksum_size(CHECKSUM_XXH3), err);
}

void decoder_init(struct decoder *d, struct source source)
{
    *d = (struct decoder){
        .source = source,
        .checksum = checksum_new(CHECKSUM_XXH3),
        .buffer = xmalloc(CODEC_BUFFER),
    };
}

void decoder_done(struct decoder *d)
{
    checksum_free(d->checksum);
    free(d->buffer);
    *d = (struct decoder){0};
}

uint64_t decoder_offset(const struct decoder *d)
{
    return d->before + d->start;
}

static void decoder_hash(struct decoder *d)
{
    if (d->checksum != NULL) /* it has been compared */
        checksum_update(d->checksum, d->buffer + d->hashed, d->start - d->hashed);
    d->hashed = d->start;
}

/* One read more behind what is there.  0 where the source has ended. */
static ssize_t decoder_refill(struct decoder *d, struct error *err)
{
    if (d->at_end)
        return 0;
    decoder_hash(d);
    memmove(d->buffer, d->buffer + d->start, d->end - d->start);
    d->before += d->start;
    d->end -= d->start;
    d->start = 0;
    d->hashed = 0;
    ssize_t n = d->source.read(d->source.ctx, d->buffer + d->end, CODEC_BUFFER - d->end, err);
    if (n > 0)
        d->end += (size_t)n;
    d->at_end = n == 0;
    return n;
}

static int decoder_short(const struct decoder *d, struct error *err)
{
    return error_set(err, E_LENGTH, "the stream ends after %llu bytes, in the middle",
                     (unsigned long long)(d->before + d->end));
}

int decoder_get(struct decoder *d, void *out, size_t len, struct error *err)
{
    unsigned char *at = out;
    while (len > 0) {
        if (d->start == d->end) {
            ssize_t got = decoder_refill(d, err);
            if (got < 0)
                return (int)got;
            if (got == 0)
                return decoder_short(d, err);
        }
        size_t there = d->end - d->start;
        size_t n = len < there ? len : there;
        memcpy(at, d->buffer + d->start, n);
        d->start += n;
        at += n;
        len -= n;
    }
    return 0;
}

int decoder_get_u64(struct decoder *d, uint64_t *value, struct error *err)
{
    unsigned char bytes[8];
    int rc = decoder_get(d, bytes, sizeof bytes, err);
    if (rc != 0)
        return rc;
    *value = 0;
    for (unsigned i = 0; i < 8; i++)
        *value |= (uint64_t)bytes[i] << (8 * i);
    return 0;
}

int decoder_get_varint_slow(struct decoder *d, uint64_t *value, struct error *err)
{
    for (;;) {
        size_t there = d->end - d->start;
        size_t n = varint_get(d->buffer + d->start, there, value);
        if (n > 0) {
            d->start += n;
            return 0;
        }
        if (there >= VARINT_MAX)
            return error_set(err, E_CORRUPT, "byte %llu of the stream: a number exceeds 64 bits",
                             (unsigned long long)decoder_offset(d));
        ssize_t got = decoder_refill(d, err);
        if (got < 0)
            return (int)got;
        if (got == 0)
            return decoder_short(d, err);
    }
}

int decoder_get_bounded(struct decoder *d, uint64_t max, const char *what, uint64_t *value,
                        struct error *err)
{
    int rc = decoder_get_varint(d, value, err);
    if (rc != 0)
        return rc;
    if (*value > max)
        return error_set(err, E_CORRUPT, "byte %llu of the stream: %s %llu exceeds %llu",
                         (unsigned long long)decoder_offset(d), what, (unsigned long long)*value,
                         (unsigned long long)max);
    return 0;
}

int decoder_get_checksum(struct decoder *d, struct error *err)
{
    decoder_hash(d);
    struct checksum_value expected;
    checksum_final(d->checksum, &expected);
    checksum_free(steal(d->checksum));
    unsigned char stated[CHECKSUM_MAX];
    size_t len = checksum_size(CHECKSUM_XXH3);
    int rc = decoder_get(d, stated, len, err);
    if (rc != 0)
        return rc;
    if (memcmp(stated, expected.bytes, len) != 0)
        return error_set(err, E_CHECKSUM, "the stream's bytes do not have its checksum");
    return 0;
}

int decoder_expect_end(struct decoder *d, struct error *err)
{
    if (d->start == d->end) {
        ssize_t got = decoder_refill(d, err);
        if (got <= 0)
            return (int)got;
    }
    return error_set(err, E_CORRUPT, "bytes follow the end of the stream");
}
