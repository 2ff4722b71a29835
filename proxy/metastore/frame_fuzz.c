/* Any bytes are a row of whole frames, and then an end, a torn one or a damaged one; a frame lies
 * within the bytes, and putting it together again gives the same ones. */
#include "proxy/metastore/frame.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_frames(const char *file, size_t size)
{
    size_t offset = 0;
    for (;;) {
        struct frame f;
        const char *why = NULL;
        enum frame_status status = frame_get(file, size, offset, &f, &why);
        if (status != FRAME_OK) {
            assert(status == FRAME_END ? offset == size : why != NULL);
            return offset;
        }
        assert(f.end > offset && f.end <= size && f.data + f.len == file + f.end);
        _cleanup_(buf_done)
        struct buf again = BUF_INIT;
        frame_put(&again, f.sequence, f.data, f.len);
        /* The four spare bytes of a header are anything in what is read. */
        assert(again.len == f.end - offset);
        offset = f.end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *file = size > 0 ? (const char *)data : "";
    size_t whole = check_frames(file, size);
    /* What comes behind a whole frame does not change it. */
    _cleanup_(buf_done)
    struct buf longer = BUF_INIT;
    buf_append(&longer, file, whole);
    frame_put(&longer, 7, file, size);
    size_t all = check_frames(longer.data, longer.len);
    assert(all == longer.len);
    (void)all;
    return 0;
}
