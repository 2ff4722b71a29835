/* Whatever attr_decode() accepts must encode to the same bytes.  The input is tried as it is and
 * with a right check behind it, since a fuzzer does not guess those. */
#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "target/format/attr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_and_compare(const unsigned char *raw, size_t len)
{
    struct attr a;
    if (attr_decode(raw, len, &a, NULL) != 0)
        return;
    unsigned char again[ATTR_ENCODED_MAX];
    size_t again_len;
    int code = attr_encode(&a, again, &again_len, NULL);
    assert(code == 0);
    assert(again_len == len && memcmp(again, raw, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode_and_compare(data, size);
    unsigned char checked[8192];
    if (size > sizeof checked - 4)
        return 0;
    memcpy(checked, data, size);
    uint32_t check = (uint32_t)XXH3_64bits(data, size);
    for (unsigned i = 0; i < 4; i++)
        checked[size + i] = (unsigned char)(check >> (8 * i));
    decode_and_compare(checked, size + 4);
    return 0;
}
