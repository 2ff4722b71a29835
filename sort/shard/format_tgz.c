/* .tar.gz: igzip reads (gunzip.h), zlib writes: its bytes are the same on every processor.  No name
 * and no time go into the header. */
#include <string.h>
#include <zlib.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/archive/gunzip.h"
#include "sort/shard/inflow.h"

#define OUT_BYTES (256 * 1024)
#define LEVEL 6 /* gzip's own default */

/* --- reading ---------------------------------------------------------------------------------- */

static ssize_t take_input(void *ctx, void *to, size_t max, struct error *err)
{
    struct inflow *in = ctx;
    int rc = inflow_fill(in, err);
    if (rc != 0)
        return rc;
    size_t len = inflow_left(in) < max ? inflow_left(in) : max;
    memcpy(to, inflow_data(in), len);
    in->at += len;
    return (ssize_t)len;
}

static int tgz_decode(const struct format_input *input, struct sink tar, struct error *err)
{
    struct inflow in;
    inflow_init(&in, input);
    _cleanup_(gunzip_freep)
    struct gunzip *g = gunzip_new(take_input, &in, NULL, 0);
    _cleanup_free_ unsigned char *out = xmalloc(OUT_BYTES);
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = gunzip_read(g, out, OUT_BYTES, err)) != 0)
        rc = n < 0 ? (int)n : tar.write(tar.ctx, out, (size_t)n, err);
    if (gunzip_complaint(g) != NULL) {
        inflow_seek(&in, inflow_offset(&in) - gunzip_unread(g));
        rc = inflow_corrupt(&in, gunzip_complaint(g), err);
    }
    inflow_done(&in);
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
