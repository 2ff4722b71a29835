/* Any body, whole and in pieces of a few bytes: the same bytes and the same end.  What is accepted
 * has the length that was announced.  The first byte has the kind of body and the length of pieces,
 * the second the announced length. */
#include "s3/chunked.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum s3_error decode(const struct s3_chunked_spec *spec, const char *bytes, size_t len,
                            size_t step, struct buf *out)
{
    _cleanup_(s3_chunked_freep)
    struct s3_chunked *c = NULL;
    enum s3_error e = s3_chunked_new(spec, &c, NULL);
    assert(e == S3_OK);
    while (len > 0 && e == S3_OK) {
        size_t n = len < step ? len : step, piece_len;
        const char *at = bytes, *piece;
        bytes += n;
        len -= n;
        while (n > 0 && e == S3_OK) {
            e = s3_chunked_decode(c, &at, &n, &piece, &piece_len, NULL);
            if (e == S3_OK && piece_len > 0)
                buf_append(out, piece, piece_len);
        }
    }
    if (e == S3_OK)
        e = s3_chunked_end(c, NULL);
    assert((e == S3_OK) <= (out->len == spec->decoded_length));
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const struct s3_credential credential = {
        .region = "us-east-1",
        .service = "s3",
        .time = "20130524T000000Z",
        .signature = "00",
        .payload = S3_PAYLOAD_CHUNKS_SIGNED + data[0] % 3u,
    };
    bool trails = credential.payload != S3_PAYLOAD_CHUNKS_SIGNED;
    const struct s3_chunked_spec spec = {.credential = &credential,
                                         .decoded_length = data[1],
                                         .trailers = trails ? "x-a, x-b" : NULL};
    _cleanup_buf_ struct buf whole = BUF_INIT, parts = BUF_INIT;
    const char *bytes = (const char *)data + 2;
    enum s3_error e = decode(&spec, bytes, size - 2, size, &whole);
    assert(decode(&spec, bytes, size - 2, 1 + data[0] / 3u, &parts) == e);
    assert(whole.len == parts.len && memcmp(buf_str(&whole), buf_str(&parts), whole.len) == 0);
    return 0;
}
