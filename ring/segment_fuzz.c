/* The scan of any bytes reads within them, and ends at the end of a frame that it has told of. */
#include "ring/segment.h"

#include <assert.h>
#include <string.h>

struct input {
    const uint8_t *data;
    size_t size;
    uint64_t end;
};

static int read_bytes(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    (void)err;
    const struct input *in = ctx;
    assert(offset <= in->size && len <= in->size - offset);
    memcpy(out, in->data + offset, len);
    return 0;
}

static void note(void *ctx, const struct frame *f, uint64_t offset)
{
    struct input *in = ctx;
    assert(offset == in->end);
    in->end += f->total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = data, .size = size};
    uint64_t end;
    const struct segment_scan scan = {.read = read_bytes,
                                      .frame = note,
                                      .ctx = &in,
                                      .size = size,
                                      .first = 0,
                                      .payloads = size % 2 == 0};
    assert(segment_scan(&scan, &end, NULL) == 0);
    assert(end == in.end);
    return 0;
}
