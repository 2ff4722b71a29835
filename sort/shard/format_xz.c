/* .tar.xz: streams of xz, one behind the other, with padding as `xz` allows it.  Read only.
 *
 * liblzma decodes, not libarchive: it takes a limit to the memory that a shard asks for, and says
 * at which byte a shard is damaged. */
#include <lzma.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"

#define BESIDE_WINDOW ((uint64_t)1 << 20) /* of a decoder, more than it takes */

static uint64_t window_max(const struct format_input *in)
{
    return in->window_max > 0 ? in->window_max : FORMAT_WINDOW_DEFAULT;
}

static int refuse_window(const struct inflow *f, struct error *err)
{
    _cleanup_free_ char *why = xprintf(
        "it asks for an xz dictionary above %llu KiB: raise sort_zstd_window of the targets, or "
        "compress it with xz -6 or less",
        (unsigned long long)(window_max(f->in) >> 10));
    return inflow_unsupported(f, why, err);
}

static int refuse(const struct inflow *f, lzma_ret rc, struct error *err)
{
    switch (rc) {
    case LZMA_MEMLIMIT_ERROR:
        return refuse_window(f, err);
    case LZMA_MEM_ERROR:
        return error_set(err, E_NOMEM, "no memory to decompress with");
    case LZMA_OPTIONS_ERROR:
    case LZMA_UNSUPPORTED_CHECK:
        return inflow_unsupported(f, "it uses an option of xz that is not known", err);
    case LZMA_FORMAT_ERROR:
        return inflow_corrupt(f, "this is not the beginning of an xz stream", err);
    default:
        return inflow_corrupt(f, "the compressed data is damaged", err);
    }
}

/* The decoder knows the file's end from LZMA_FINISH alone: another stream may follow the last. */
static int unxz_step(struct inflow *f, void *codec, unsigned char *out, size_t room, size_t *made,
                     size_t *wants, struct error *err)
{
    lzma_stream *z = codec;
    size_t had = inflow_left(f);
    z->next_in = inflow_data(f);
    z->avail_in = had;
    z->next_out = out;
    z->avail_out = room;
    lzma_ret rc = lzma_code(z, had == 0 ? LZMA_FINISH : LZMA_RUN);
    f->at += had - z->avail_in;
    *made = room - z->avail_out;
    *wants = rc != LZMA_STREAM_END;
    if (rc == LZMA_OK || rc == LZMA_STREAM_END)
        return 0;
    return rc == LZMA_BUF_ERROR && had == 0 ? 0 : refuse(f, rc, err);
}

static int xz_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    lzma_stream z = LZMA_STREAM_INIT;
    uint64_t most = window_max(in) + BESIDE_WINDOW;
    if (lzma_stream_decoder(&z, most, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) != LZMA_OK)
        return error_set(err, E_NOMEM, "no memory to decompress with");
    int rc = inflow_frames(in, unxz_step, &z, tar, err);
    lzma_end(&z);
    return rc;
}

const struct shard_format_ops format_xz = {
    .extensions = {".tar.xz", ".txz"},
    .content_type = "application/x-xz",
    .decode = xz_decode,
    .read_only = true,
};
