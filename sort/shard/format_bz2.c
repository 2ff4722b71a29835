/* .tar.bz2: streams of bzip2, one behind the other, as pbzip2 makes them.  Read only.
 *
 * libbz2 decodes, not libarchive: that takes a damaged second stream for the end of the first. */
#include <bzlib.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"

struct unbz2 {
    bz_stream stream;
    bool between; /* streams: the decoder is that of the last one */
};

static const char *complaint(int rc)
{
    return rc == BZ_DATA_ERROR_MAGIC ? "this is not the beginning of a bzip2 stream"
                                     : "the compressed data is damaged";
}

static int begin(struct unbz2 *z, struct error *err)
{
    if (!z->between)
        return 0;
    BZ2_bzDecompressEnd(&z->stream);
    z->stream = (bz_stream){0};
    if (BZ2_bzDecompressInit(&z->stream, 0, 0) != BZ_OK)
        return error_set(err, E_NOMEM, "no memory to decompress with");
    z->between = false;
    return 0;
}

static int unbz2_step(struct inflow *f, void *codec, unsigned char *out, size_t room, size_t *made,
                      size_t *wants, struct error *err)
{
    struct unbz2 *z = codec;
    int rc = begin(z, err);
    if (rc != 0)
        return rc;
    size_t had = inflow_left(f);
    z->stream.next_in = (char *)f->buffer + f->at;
    z->stream.avail_in = (unsigned)had;
    z->stream.next_out = (char *)out;
    z->stream.avail_out = (unsigned)room;
    int state = BZ2_bzDecompress(&z->stream);
    f->at += had - z->stream.avail_in;
    *made = room - z->stream.avail_out;
    z->between = state == BZ_STREAM_END;
    *wants = !z->between;
    if (state == BZ_MEM_ERROR)
        return error_set(err, E_NOMEM, "no memory to decompress with");
    return state == BZ_OK || z->between ? 0 : inflow_corrupt(f, complaint(state), err);
}

static int bz2_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct unbz2 z = {.between = true};
    int rc = inflow_frames(in, unbz2_step, &z, tar, err);
    BZ2_bzDecompressEnd(&z.stream);
    return rc;
}

const struct shard_format_ops format_bz2 = {
    .extensions = {".tar.bz2", ".tbz2"},
    .content_type = "application/x-bzip2",
    .decode = bz2_decode,
    .read_only = true,
};
