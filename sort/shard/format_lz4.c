/* .tar.lz4: frames of LZ4, one behind the other.  Written: one frame of independent blocks, with a
 * checksum of the whole. */
#include <lz4frame.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"

#define PIECE 65536 /* compressed at once */

/* --- reading ---------------------------------------------------------------------------------- */

static int unlz4_step(struct inflow *f, void *codec, unsigned char *out, size_t room, size_t *made,
                      size_t *wants, struct error *err)
{
    size_t taken = inflow_left(f);
    *made = room;
    size_t rc = LZ4F_decompress(codec, out, made, inflow_data(f), &taken, NULL);
    if (LZ4F_isError(rc))
        return inflow_corrupt(f, LZ4F_getErrorName(rc), err);
    f->at += taken;
    *wants = rc;
    return 0;
}

static int lz4_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    LZ4F_dctx *z = NULL;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION)))
        return error_set(err, E_NOMEM, "no memory to decompress with");
    int rc = inflow_frames(in, unlz4_step, z, tar, err);
    LZ4F_freeDecompressionContext(z);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct lz4 {
    struct sink sink;
    LZ4F_cctx *stream;
    bool begun;
    size_t room; /* of out */
    unsigned char *out;
};

static const LZ4F_preferences_t preferences = {
    .frameInfo = {.blockSizeID = LZ4F_max256KB,
                  .blockMode = LZ4F_blockIndependent,
                  .contentChecksumFlag = LZ4F_contentChecksumEnabled},
};

static void lz4_encoder_free(void *encoder)
{
    struct lz4 *z = encoder;
    LZ4F_freeCompressionContext(z->stream);
    free(z->out);
    free(z);
}

static int lz4_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    struct lz4 *z = xcalloc(1, sizeof *z);
    z->sink = out->sink;
    if (LZ4F_isError(LZ4F_createCompressionContext(&z->stream, LZ4F_VERSION))) {
        free(z);
        return error_set(err, E_NOMEM, "no memory to compress with");
    }
    z->room = LZ4F_compressBound(PIECE, &preferences) + LZ4F_HEADER_SIZE_MAX;
    z->out = xmalloc(z->room);
    *encoder = z;
    return 0;
}

static int lz4_put(struct lz4 *z, size_t made, struct error *err)
{
    if (LZ4F_isError(made))
        return error_set(err, E_INTERNAL, "compress: %s", LZ4F_getErrorName(made));
    return made > 0 ? z->sink.write(z->sink.ctx, z->out, made, err) : 0;
}

static int lz4_begin(struct lz4 *z, struct error *err)
{
    if (z->begun)
        return 0;
    z->begun = true;
    return lz4_put(z, LZ4F_compressBegin(z->stream, z->out, z->room, &preferences), err);
}

static int lz4_write(void *encoder, const void *tar, size_t len, struct error *err)
{
    struct lz4 *z = encoder;
    const unsigned char *at = tar;
    int rc = lz4_begin(z, err);
    while (rc == 0 && len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        rc = lz4_put(z, LZ4F_compressUpdate(z->stream, z->out, z->room, at, n, NULL), err);
        at += n;
        len -= n;
    }
    return rc;
}

static int lz4_finish(void *encoder, struct error *err)
{
    struct lz4 *z = encoder;
    int rc = lz4_begin(z, err);
    return rc != 0 ? rc : lz4_put(z, LZ4F_compressEnd(z->stream, z->out, z->room, NULL), err);
}

const struct shard_format_ops format_lz4 = {
    .extensions = {".tar.lz4"},
    .content_type = "application/x-lz4",
    .decode = lz4_decode,
    .encoder_new = lz4_encoder_new,
    .write = lz4_write,
    .finish = lz4_finish,
    .encoder_free = lz4_encoder_free,
    .keeps_end_mark = true,
};
