/* Any bytes: printable words of a bounded length, or none. */
#include "target/backend/s3_xml.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT;
    s3_xml_error((const char *)data, size, &out);
    assert(out.len < 1024);
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] >= ' ' && out.data[i] <= '~');
    buf_done(&out);
    return 0;
}
