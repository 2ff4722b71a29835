#include "sort/archive/gunzip.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <string.h>

#include "common/mem.h"

struct gunzip {
    gunzip_source *source;
    void *ctx;
    struct inflate_state state;
    bool between; /* members: nothing of the next one has been read */
    bool begun;   /* the first one has been read */
    bool ended;   /* the source has */
    const char *complaint;
    size_t at, len;
    unsigned char in[GUNZIP_FIRST_MAX];
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
    assert(len <= sizeof g->in);
    g->source = source;
    g->ctx = ctx;
    g->len = len;
    if (len > 0)
        memcpy(g->in, first, len);
    isal_inflate_init(&g->state);
    member_begin(g);
    return g;
}

void gunzip_free(struct gunzip *g)
{
    free(g);
}

const char *gunzip_complaint(const struct gunzip *g)
{
    return g->complaint;
}

size_t gunzip_unread(const struct gunzip *g)
{
    return g->len - g->at;
}

static int fill(struct gunzip *g, struct error *err)
{
    if (g->at < g->len || g->ended)
        return 0;
    ssize_t n = g->source(g->ctx, g->in, sizeof g->in, err);
    g->ended = n == 0;
    g->at = 0;
    g->len = n > 0 ? (size_t)n : 0;
    return n < 0 ? (int)n : 0;
}

static void skip_padding(struct gunzip *g)
{
    while (g->between && g->begun && g->at < g->len && g->in[g->at] == 0)
        g->at++;
}

static const char *complaint_of(int rc)
{
    switch (rc) {
    case ISAL_DECOMP_OK:
    case ISAL_END_INPUT:
    case ISAL_OUT_OVERFLOW:
        return NULL;
    case ISAL_INVALID_WRAPPER:
        return "this is not the beginning of a gzip member";
    case ISAL_UNSUPPORTED_METHOD:
        return "an unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
        return "the checksum or length of a gzip member is wrong";
    default:
        return "the compressed data is damaged";
    }
}

/* As much as one buffer of input or output lets pass. */
static size_t step(struct gunzip *g, void *to, size_t max)
{
    struct inflate_state *s = &g->state;
    const size_t had = gunzip_unread(g);
    s->next_in = g->in + g->at;
    s->avail_in = (uint32_t)had;
    s->next_out = to;
    s->avail_out = (uint32_t)max;
    g->complaint = complaint_of(isal_inflate(s));
    const size_t made = max - s->avail_out;
    g->at += had - s->avail_in;
    if (had > 0)
        g->between = false;
    if (g->complaint == NULL && s->block_state == ISAL_BLOCK_FINISH) {
        member_begin(g);
        g->begun = true;
    } else if (g->complaint == NULL && g->ended && made == 0) {
        g->complaint = "it ends within a gzip member: it is truncated";
    }
    return made;
}

ssize_t gunzip_read(struct gunzip *g, void *to, size_t max, struct error *err)
{
    if (max > UINT32_MAX)
        max = UINT32_MAX;
    for (;;) {
        int rc = fill(g, err);
        if (rc != 0 || (g->ended && g->between))
            return rc;
        skip_padding(g);
        if (g->between && gunzip_unread(g) == 0)
            continue;
        size_t made = step(g, to, max);
        if (g->complaint != NULL)
            return error_set(err, E_SHARD_CORRUPT, "%s", g->complaint);
        if (made > 0)
            return (ssize_t)made;
    }
}
