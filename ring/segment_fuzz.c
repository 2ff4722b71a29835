/* The scan of any bytes reads within them.  Its frames are in order, and do not overlap. */
#include "ring/segment.h"

#include <assert.h>
#include <string.h>

struct input {
    const uint8_t *data;
    size_t size;
    uint64_t end, next;
    bool last_is_whole;
};

static int read_bytes(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    (void)err;
    const struct input *in = ctx;
    assert(offset <= in->size && len <= in->size - offset);
    memcpy(out, in->data + offset, len);
    return 0;
}

static void note(void *ctx, const struct frame *f, uint64_t offset, bool is_of_whole)
{
    struct input *in = ctx;
    assert(offset >= in->end && f->ordinal >= in->next && f->total <= in->size - offset);
    in->end = offset + f->total;
    in->next = f->ordinal + 1;
    in->last_is_whole = is_of_whole;
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
                                      .payloads = size % 2 == 0,
                                      .is_followed = size % 3 == 0};
    assert(segment_scan(&scan, &end, NULL) == 0);
    assert(end <= size);
    if (in.next > 0 && !scan.is_followed) /* the last push that counts is whole */
        assert(end == in.end && in.last_is_whole);
    return 0;
}
