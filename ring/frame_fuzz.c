/* Whatever is taken for a push has kinds within their samples, and keeps its stamps. */
#include "ring/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame f, again;
    uint64_t count;
    (void)frame_check_push(data, size, &count, NULL);
    if (size < FRAME_FIXED || frame_peek(data, &f, NULL) != 0 || f.head_len > size)
        return 0;
    char *copy = xmalloc(f.head_len); /* no byte behind it */
    memcpy(copy, data, f.head_len);
    frame_stamp(copy, &f); /* a fuzzer does not find checksums */
    if (frame_check_head(copy, &f, NULL) == 0) {
        for (unsigned i = 0; i < f.kinds; i++) {
            struct frame_kind k;
            frame_kind(copy, i, &k);
            assert(k.dtype + k.dtype_len <= copy + f.head_len);
            assert(k.offset + k.length <= f.total);
        }
        assert(frame_peek(copy, &again, NULL) == 0 && again.ordinal == f.ordinal &&
               again.sequence == f.sequence && again.producer == f.producer);
    }
    free(copy);
    return 0;
}
