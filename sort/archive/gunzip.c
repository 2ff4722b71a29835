#include "sort/archive/gunzip.h"

#include <isa-l/igzip_lib.h>
#include <string.h>

#include "common/mem.h"

enum { IN_BYTES = 64 << 10 };

struct gunzip {
    gunzip_source *source;
    void *ctx;
    struct inflate_state state;
    bool between; /* members: nothing of the next one has been read */
    bool begun;   /* the first one has been read */
    bool ended;   /* the source has */
    size_t at, len;
    unsigned char in[IN_BYTES];
};

bool gunzip_knows(const unsigned char *data, size_t len)
{
    static const unsigned char magic[] = {0x1f, 0x8b, 8};
    return len >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

static void member_begin(struct gunzip *g)
{
    isal_inflate_reset(&g->state);
    g->state.crc_flag = ISAL_GZIP;
    g->state.total_out = 0;
    g->between = true;
}

struct gunzip *gunzip_new(gunzip_source *source, void *ctx, const void *first, size_t len)
{
    struct gunzip *g = xcalloc(1, sizeof *g);
    g->source = source;
    g->ctx = ctx;
    g->len = len < IN_BYTES ? len : IN_BYTES;
    memcpy(g->in, first, g->len);
    isal_inflate_init(&g->state);
    member_begin(g);
    return g;
}

void gunzip_free(struct gunzip *g)
{
    free(g);
}

static int fill(struct gunzip *g, struct error *err)
{
    if (g->at < g->len || g->ended)
        return 0;
    ssize_t n = g->source(g->ctx, g->in, IN_BYTES, err);
    g->ended = n == 0;
    g->at = 0;
    g->len = n > 0 ? (size_t)n : 0;
    return n < 0 ? (int)n : 0;
}

static int step(struct gunzip *g, void *to, size_t max, size_t *made, struct error *err)
{
    struct inflate_state *s = &g->state;
    const size_t had = g->len - g->at;
    s->next_in = g->in + g->at;
    s->avail_in = (uint32_t)had;
    s->next_out = to;
    s->avail_out = (uint32_t)max;
    int rc = isal_inflate(s);
    g->at += had - s->avail_in;
    *made = max - s->avail_out;
    if (had > 0)
        g->between = false;
    if (rc == ISAL_INCORRECT_CHECKSUM)
        return error_set(err, E_SHARD_CORRUPT, "the checksum or length of a gzip member is wrong");
    if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT && rc != ISAL_OUT_OVERFLOW)
        return error_set(err, E_SHARD_CORRUPT, "the compressed data is damaged");
    if (g->ended && *made == 0 && s->block_state != ISAL_BLOCK_FINISH)
        return error_set(err, E_SHARD_CORRUPT, "it ends within a gzip member: truncated");
    if (s->block_state == ISAL_BLOCK_FINISH) {
        member_begin(g);
        g->begun = true;
    }
    return 0;
}

/* Zeros behind a member: bsdtar fills the last block of what it writes to a pipe, and gzip, too,
 * passes over them. */
static void skip_padding(struct gunzip *g)
{
    while (g->between && g->begun && g->at < g->len && g->in[g->at] == 0)
        g->at++;
}

ssize_t gunzip_read(struct gunzip *g, void *to, size_t max, struct error *err)
{
    if (max > UINT32_MAX)
        max = UINT32_MAX;
    for (size_t made = 0;;) {
        int rc = fill(g, err);
        if (rc != 0 || (g->ended && g->between))
            return rc;
        skip_padding(g);
        if (g->at == g->len && g->between)
            continue;
        rc = step(g, to, max, &made, err);
        if (rc != 0 || made > 0)
            return rc != 0 ? rc : (ssize_t)made;
    }
}
