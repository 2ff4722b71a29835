#include "vdisc/gzip.h"

#include <string.h>
#include <zlib.h>

#define WINDOW_GZIP (15 + 16) /* zlib: the largest window, with gzip's head */
#define MEMORY_LEVEL 9
#define LEVEL 1 /* of tables 5 takes almost three times as long, and makes them 4 % smaller */
#define PIECE (256u << 10)

int gzip_pack(const void *bytes, size_t len, struct buf *out, struct error *err)
{
    z_stream z = {.next_in = (unsigned char *)bytes};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return error_set(err, E_NOMEM, "no memory to compress the table of the image");
    int rc = Z_OK;
    for (size_t left = len; rc != Z_STREAM_END;) {
        if (z.avail_in == 0) {
            z.avail_in = left < PIECE ? (uInt)left : PIECE;
            left -= z.avail_in;
        }
        buf_reserve(out, PIECE);
        z.next_out = (unsigned char *)out->data + out->len;
        z.avail_out = PIECE;
        rc = deflate(&z, left == 0 ? Z_FINISH : Z_NO_FLUSH);
        out->len += PIECE - z.avail_out;
    }
    deflateEnd(&z);
    return 0;
}

bool gzip_is(const void *bytes, size_t len)
{
    return len >= 4 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0;
}

static int inflate_all(z_stream *z, size_t len, uint64_t max, struct buf *out, struct error *err)
{
    int rc = Z_OK;
    for (size_t left = len; rc == Z_OK;) {
        if (z->avail_in == 0 && left > 0) {
            z->avail_in = left < PIECE ? (uInt)left : PIECE;
            left -= z->avail_in;
        }
        if (out->len > max)
            return error_set(err, E_IMAGE_TOO_LARGE,
                             "the table of the image has more than %llu bytes",
                             (unsigned long long)max);
        buf_reserve(out, PIECE);
        z->next_out = (unsigned char *)out->data + out->len;
        z->avail_out = PIECE;
        rc = inflate(z, Z_NO_FLUSH);
        out->len += PIECE - z->avail_out;
        if (rc == Z_STREAM_END && (left > 0 || z->avail_in > 0))
            return error_set(err, E_IMAGE_DAMAGED,
                             "the table of the image is damaged: bytes follow its end");
    }
    return rc == Z_STREAM_END ? 0
                              : error_set(err, E_IMAGE_DAMAGED,
                                          "the table of the image is damaged: its gzip is %s",
                                          rc == Z_BUF_ERROR ? "cut" : "broken");
}

int gzip_unpack(const void *bytes, size_t len, uint64_t max, struct buf *out, struct error *err)
{
    z_stream z = {.next_in = (unsigned char *)bytes};
    if (inflateInit2(&z, WINDOW_GZIP) != Z_OK)
        return error_set(err, E_NOMEM, "no memory to unpack the table of the image");
    int rc = inflate_all(&z, len, max, out, err);
    inflateEnd(&z);
    if (rc == 0 && out->len > max)
        return error_set(err, E_IMAGE_TOO_LARGE, "the table of the image has more than %llu bytes",
                         (unsigned long long)max);
    return rc;
}
