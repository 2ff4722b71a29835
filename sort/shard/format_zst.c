/* .tar.zst: frames of Zstandard, one behind the other.  Written: one frame, with a checksum. */
#include <zstd.h>
#include <zstd_errors.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"

#define OUT_BYTES (256 * 1024)
#define LEVEL 3 /* zstd's own default */

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t window_max(const struct format_input *in)
{
    return in->window_max > 0 ? in->window_max : FORMAT_WINDOW_DEFAULT;
}

static int refuse_window(const struct inflow *f, struct error *err)
{
    _cleanup_free_ char *why = xprintf(
        "it asks for a zstd window above %llu KiB: raise sort_zstd_window of the targets, or "
        "compress it without --long and --ultra",
        (unsigned long long)(window_max(f->in) >> 10));
    return inflow_unsupported(f, why, err);
}

static int unzst_step(struct inflow *f, void *codec, unsigned char *out, size_t room, size_t *made,
                      size_t *wants, struct error *err)
{
    ZSTD_inBuffer in = {.src = inflow_data(f), .size = inflow_left(f)};
    ZSTD_outBuffer to = {.dst = out, .size = room};
    size_t rc = ZSTD_decompressStream(codec, &to, &in);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return refuse_window(f, err);
    if (ZSTD_isError(rc))
        return inflow_corrupt(f, ZSTD_getErrorName(rc), err);
    f->at += in.pos;
    *wants = rc;
    *made = to.pos;
    return 0;
}

/* The largest power of two that is not above the limit, among those that zstd knows. */
static int window_log(const struct format_input *in)
{
    ZSTD_bounds bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
    int log = bounds.lowerBound;
    while (log < bounds.upperBound && (uint64_t)2 << log <= window_max(in))
        log++;
    return log;
}

static int zst_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    if (z == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, window_log(in)))) {
        ZSTD_freeDStream(z);
        return error_set(err, E_NOMEM, "no memory to decompress with");
    }
    int rc = inflow_frames(in, unzst_step, z, tar, err);
    ZSTD_freeDStream(z);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct zst {
    struct sink sink;
    ZSTD_CStream *stream;
    unsigned char out[OUT_BYTES];
};

static void zst_encoder_free(void *encoder)
{
    struct zst *z = encoder;
    ZSTD_freeCStream(z->stream);
    free(z);
}

static int zst_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    struct zst *z = xcalloc(1, sizeof *z);
    z->sink = out->sink;
    z->stream = ZSTD_createCStream();
    if (z->stream == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(z->stream, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(z->stream, ZSTD_c_checksumFlag, 1))) {
        zst_encoder_free(z);
        return error_set(err, E_NOMEM, "no memory to compress with");
    }
    *encoder = z;
    return 0;
}

static int zst_run(struct zst *z, ZSTD_inBuffer *in, ZSTD_EndDirective how, struct error *err)
{
    size_t left;
    do {
        ZSTD_outBuffer to = {.dst = z->out, .size = OUT_BYTES};
        left = ZSTD_compressStream2(z->stream, &to, in, how);
        if (ZSTD_isError(left))
            return error_set(err, E_INTERNAL, "compress: %s", ZSTD_getErrorName(left));
        int rc = to.pos > 0 ? z->sink.write(z->sink.ctx, z->out, to.pos, err) : 0;
        if (rc != 0)
            return rc;
    } while (in->pos < in->size || (how == ZSTD_e_end && left > 0));
    return 0;
}

static int zst_write(void *encoder, const void *tar, size_t len, struct error *err)
{
    ZSTD_inBuffer in = {.src = tar, .size = len};
    return zst_run(encoder, &in, ZSTD_e_continue, err);
}

static int zst_finish(void *encoder, struct error *err)
{
    ZSTD_inBuffer in = {0};
    return zst_run(encoder, &in, ZSTD_e_end, err);
}

const struct shard_format_ops format_zst = {
    .extensions = {".tar.zst"},
    .content_type = "application/zstd",
    .decode = zst_decode,
    .encoder_new = zst_encoder_new,
    .write = zst_write,
    .finish = zst_finish,
    .encoder_free = zst_encoder_free,
    .keeps_end_mark = true,
};
