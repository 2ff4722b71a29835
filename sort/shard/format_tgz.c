/* .tar.gz: igzip reads (three times as fast as zlib), zlib writes: its bytes are the same on every
 * processor.  No name and no time go into the header.  Several members one behind the other, as
 * pigz and cat make them, are one stream. */
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"

#define OUT_BYTES (256 * 1024)
#define LEVEL 6 /* gzip's own default */

/* --- reading ---------------------------------------------------------------------------------- */

struct gunzip {
    struct inflow in;
    struct inflate_state state;
    unsigned char *out;
    bool between; /* members: nothing of the next one has been read */
    bool begun;   /* the first one has been read */
};

static const char *complaint(int rc)
{
    switch (rc) {
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

static void member_begin(struct gunzip *g)
{
    isal_inflate_reset(&g->state);
    g->state.crc_flag = ISAL_GZIP;
    g->state.total_out = 0;
    g->between = true;
}

/* As much as one buffer of input or output lets pass; *made bytes came out. */
static int gunzip_step(struct gunzip *g, struct sink tar, size_t *made, struct error *err)
{
    struct inflate_state *s = &g->state;
    size_t had = inflow_left(&g->in);
    s->next_in = g->in.buffer + g->in.at;
    s->avail_in = (uint32_t)had;
    s->next_out = g->out;
    s->avail_out = OUT_BYTES;
    int rc = isal_inflate(s);
    g->in.at += had - s->avail_in;
    *made = OUT_BYTES - s->avail_out;
    if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT && rc != ISAL_OUT_OVERFLOW)
        return inflow_corrupt(&g->in, complaint(rc), err);
    if (had > 0)
        g->between = false;
    if (s->block_state == ISAL_BLOCK_FINISH) {
        member_begin(g);
        g->begun = true;
    }
    return *made > 0 ? tar.write(tar.ctx, g->out, *made, err) : 0;
}

/* Zeros behind a member: bsdtar fills the last block of what it writes to a pipe, and gzip, too,
 * passes over them. */
static void skip_padding(struct gunzip *g)
{
    while (g->between && g->begun && inflow_left(&g->in) > 0 && *inflow_data(&g->in) == 0)
        g->in.at++;
}

static int gunzip_all(struct gunzip *g, struct sink tar, struct error *err)
{
    for (;;) {
        int rc = inflow_fill(&g->in, err);
        bool ended = inflow_left(&g->in) == 0;
        if (rc != 0 || (ended && g->between))
            return rc;
        skip_padding(g);
        if (!ended && inflow_left(&g->in) == 0)
            continue;
        size_t made = 0;
        rc = gunzip_step(g, tar, &made, err);
        if (rc == 0 && ended && made == 0 && !g->between)
            rc = inflow_corrupt(&g->in, "the file ends within a gzip member: it is cut short", err);
        if (rc != 0)
            return rc;
    }
}

static int tgz_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct gunzip *g = xcalloc(1, sizeof *g);
    inflow_init(&g->in, in);
    g->out = xmalloc(OUT_BYTES);
    isal_inflate_init(&g->state);
    member_begin(g);
    int rc = gunzip_all(g, tar, err);
    inflow_done(&g->in);
    free(g->out);
    free(g);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct gzip {
    struct sink sink;
    z_stream stream;
    unsigned char out[OUT_BYTES];
};

static int tgz_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    struct gzip *g = xcalloc(1, sizeof *g);
    g->sink = out->sink;
    if (deflateInit2(&g->stream, LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(g);
        return error_set(err, E_NOMEM, "no memory to compress with");
    }
    *encoder = g;
    return 0;
}

static int gzip_run(struct gzip *g, int flush, struct error *err)
{
    int state;
    do {
        g->stream.next_out = g->out;
        g->stream.avail_out = OUT_BYTES;
        state = deflate(&g->stream, flush);
        size_t made = OUT_BYTES - g->stream.avail_out;
        int rc = made > 0 ? g->sink.write(g->sink.ctx, g->out, made, err) : 0;
        if (rc != 0)
            return rc;
    } while (g->stream.avail_out == 0 || (flush == Z_FINISH && state == Z_OK));
    return 0;
}

static int tgz_write(void *encoder, const void *tar, size_t len, struct error *err)
{
    struct gzip *g = encoder;
    g->stream.next_in = (unsigned char *)tar;
    g->stream.avail_in = (unsigned)len;
    return gzip_run(g, Z_NO_FLUSH, err);
}

static int tgz_finish(void *encoder, struct error *err)
{
    struct gzip *g = encoder;
    g->stream.avail_in = 0;
    return gzip_run(g, Z_FINISH, err);
}

static void tgz_encoder_free(void *encoder)
{
    struct gzip *g = encoder;
    deflateEnd(&g->stream);
    free(g);
}

const struct shard_format_ops format_tgz = {
    .extensions = {".tar.gz", ".tgz"},
    .content_type = "application/gzip",
    .decode = tgz_decode,
    .encoder_new = tgz_encoder_new,
    .write = tgz_write,
    .finish = tgz_finish,
    .encoder_free = tgz_encoder_free,
    .keeps_end_mark = true,
};
