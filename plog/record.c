#include "plog/record.h"

#include <assert.h>

#include "io/varint.h"

enum { RUN, PATTERN, CUT, KINDS };

uint64_t plog_record_end(const struct plog_record *r)
{
    return r->start + (r->count - 1) * r->stride + r->length;
}

/* --- writing ---------------------------------------------------------------------------------- */

void plog_encoder_done(struct plog_encoder *e)
{
    buf_done(&e->out);
    *e = (struct plog_encoder){.records = 0};
}

static void put(struct plog_encoder *e, uint64_t value)
{
    unsigned char bytes[VARINT_MAX];
    buf_append(&e->out, bytes, varint_put(bytes, value));
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ -(value & 1));
}

static void emit_pattern(struct plog_encoder *e)
{
    const struct plog_record *p = &e->pattern;
    if (p->count == 0)
        return;
    put(e, p->count > 1 ? PATTERN : RUN);
    put(e, zigzag((int64_t)(p->start - e->last_end)));
    put(e, p->length);
    if (p->count > 1) {
        put(e, p->stride);
        put(e, p->count);
    }
    e->last_end = plog_record_end(p);
    e->records++;
    e->pattern.count = 0;
}

/* The run is the pattern's next one, or begins another. */
static void end_run(struct plog_encoder *e)
{
    struct plog_record *p = &e->pattern;
    const struct plog_record *r = &e->run;
    if (r->count == 0)
        return;
    const bool follows = p->count > 0 && r->length == p->length &&
                         (p->count == 1 ? r->start > p->start && r->start - p->start > p->length
                                        : r->start == p->start + p->count * p->stride);
    if (follows) {
        p->stride = p->count == 1 ? r->start - p->start : p->stride;
        p->count++;
    } else {
        emit_pattern(e);
        *p = *r;
    }
    e->run.count = 0;
}

void plog_encode_write(struct plog_encoder *e, uint64_t start, uint64_t length)
{
    assert(length > 0 && start <= PLOG_OFFSET_MAX && length <= PLOG_OFFSET_MAX - start);
    if (e->run.count > 0 && e->run.start + e->run.length == start) {
        e->run.length += length;
        return;
    }
    end_run(e);
    e->run = (struct plog_record){.start = start, .length = length, .count = 1};
}

void plog_encode_cut(struct plog_encoder *e, uint64_t length)
{
    assert(length <= PLOG_OFFSET_MAX);
    plog_encode_flush(e);
    put(e, CUT);
    put(e, length);
    e->records++;
}

void plog_encode_flush(struct plog_encoder *e)
{
    end_run(e);
    emit_pattern(e);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool get(struct plog_cursor *c, uint64_t *value)
{
    const size_t n = varint_get(c->at, (size_t)(c->end - c->at), value);
    c->at += n;
    return n > 0;
}

/* All of it is within PLOG_OFFSET_MAX, and so are the data. */
static bool is_sound(const struct plog_record *r, uint64_t *bytes)
{
    uint64_t span, end;
    const bool is_pattern = r->count > 1;
    return r->length > 0 && r->count > 0 && (is_pattern ? r->stride > r->length : r->stride == 0) &&
           !__builtin_mul_overflow(r->count - 1, r->stride, &span) &&
           !__builtin_add_overflow(span, r->length, &span) &&
           !__builtin_add_overflow(span, r->start, &end) && end <= PLOG_OFFSET_MAX &&
           !__builtin_mul_overflow(r->count, r->length, bytes) &&
           !__builtin_add_overflow(*bytes, r->physical, &end) && end <= PLOG_OFFSET_MAX;
}

static bool get_piece(struct plog_cursor *c, bool is_pattern, struct plog_record *r)
{
    uint64_t delta, bytes;
    if (!get(c, &delta) || !get(c, &r->length))
        return false;
    if (is_pattern && (!get(c, &r->stride) || !get(c, &r->count) || r->count < 2))
        return false;
    r->start = c->last_end + (uint64_t)unzigzag(delta);
    if (r->start > PLOG_OFFSET_MAX || !is_sound(r, &bytes))
        return false;
    c->physical += bytes;
    c->last_end = plog_record_end(r);
    return true;
}

int plog_cursor_next(struct plog_cursor *c, struct plog_record *r, struct error *err)
{
    uint64_t kind;
    if (c->at == c->end)
        return 0;
    if (!get(c, &kind) || kind >= KINDS)
        return error_set(err, E_CORRUPT, "a record of an unknown kind");
    *r = (struct plog_record){.is_cut = kind == CUT, .count = 1, .physical = c->physical};
    const bool is_good = r->is_cut ? get(c, &r->start) && r->start <= PLOG_OFFSET_MAX
                                   : get_piece(c, kind == PATTERN, r);
    return is_good ? 1 : error_set(err, E_CORRUPT, "a record is out of bounds");
}
