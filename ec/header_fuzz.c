/* Whatever is taken for a header encodes to the same bytes. */
#include "ec/header.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ec_header h;
    unsigned char again[EC_HEADER_BYTES];
    if (ec_header_decode(data, size, &h, NULL) != 0)
        return 0;
    assert(size == EC_HEADER_BYTES);
    assert(ec_layout_check(&h.layout, NULL) == 0 && h.index < h.layout.k + h.layout.m);
    ec_header_encode(&h, again);
    assert(memcmp(data, again, sizeof again) == 0);
    return 0;
}
