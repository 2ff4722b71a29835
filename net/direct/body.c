#include "net/direct/body.h"

#include <string.h>

#include "common/fault.h"

enum { CHUNKS_READ_BYTES = 64 << 10 };

static bool is_cut(const struct direct_body *b)
{
    return b->received >= fault_cut_bytes("net.recv");
}

static size_t at_most(size_t a, uint64_t b)
{
    return a < b ? a : (size_t)b;
}

static size_t take_early(struct direct_body *b, char *out, size_t max)
{
    size_t len = at_most(b->line->in.len - b->at, max);
    if (len > 0)
        memcpy(out, b->line->in.data + b->at, len);
    b->at += len;
    return len;
}

static ssize_t taken(struct direct_body *b, ssize_t n)
{
    if (n <= 0)
        return n;
    b->left -= b->chunked ? 0 : (uint64_t)n;
    b->received += (uint64_t)n;
    return n;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static ssize_t read_more(struct direct_body *b)
{
    buf_clear(&b->line->in);
    b->at = 0;
    buf_reserve(&b->line->in, CHUNKS_READ_BYTES);
    ssize_t n = line_recv(b->line, b->line->in.data, CHUNKS_READ_BYTES);
    if (n > 0)
        b->line->in.len = (size_t)n;
    return n;
}

static ssize_t read_chunks(struct direct_body *b, char *out, size_t max)
{
    for (;;) {
        const char *data;
        size_t len;
        ssize_t framing = chunk_next(&b->chunks, b->line->in.data + b->at, b->line->in.len - b->at,
                                     &data, &len, NULL);
        if (framing < 0)
            return LINE_CUT;
        b->at += (size_t)framing;
        if (len > 0) {
            size_t n = take_early(b, out, at_most(len, max));
            chunk_used(&b->chunks, n);
            return (ssize_t)n;
        }
        if (chunk_ended(&b->chunks))
            return DIRECT_BODY_END;
        ssize_t more = read_more(b);
        if (more <= 0)
            return more;
    }
}

/* --- both ------------------------------------------------------------------------------------- */

ssize_t direct_body_read(struct direct_body *b, char *out, size_t max)
{
    if (is_cut(b))
        return LINE_CUT;
    if (b->chunked)
        return taken(b, read_chunks(b, out, max));
    if (b->left == 0)
        return DIRECT_BODY_END;
    size_t room = at_most(max, b->left);
    size_t early = take_early(b, out, room);
    return taken(b, early > 0 ? (ssize_t)early : line_recv(b->line, out, room));
}

ssize_t direct_body_splice(struct direct_body *b, int to, size_t max)
{
    if (is_cut(b))
        return LINE_CUT;
    if (b->chunked || b->at < b->line->in.len)
        return DIRECT_BODY_COPY;
    return b->left == 0 ? DIRECT_BODY_END : taken(b, line_splice(b->line, to, max, b->left));
}

bool direct_body_is_over(const struct direct_body *b)
{
    bool ended = b->chunked ? chunk_ended(&b->chunks) : b->left == 0;
    return ended && b->at == b->line->in.len;
}
