/* A record that index_record_decode() accepts and the tree could hold encodes again without harm:
 * what was read from a damaged index must not lead anywhere. */
#include <assert.h>

#include "target/index/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct index_record rec, again;
    if (index_record_decode(data, size, &rec, NULL) != 0)
        return 0;
    unsigned char bytes[INDEX_RECORD_MAX];
    size_t len = index_record_encode(&rec, bytes);
    assert(len <= INDEX_RECORD_MAX);
    int code = index_record_decode(bytes, len, &again, NULL);
    assert(code == 0);
    assert(version_compare(&rec.version, &again.version) == 0 && rec.size == again.size);
    assert(checksum_equal(&rec.md5, &again.md5) && rec.md5_parts == again.md5_parts);
    return 0;
}
