/* An object of any bytes is no segment, or one whose index can be read. */
#include "plog/segment.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plog_footer f;
    struct plog_record r;
    if (size < PLOG_FOOTER || plog_footer_parse(data + size - PLOG_FOOTER, &f, NULL) != 0 ||
        plog_footer_size(&f) != size)
        return 0;
    const uint8_t *index = data + f.name.bytes;
    if (plog_index_check(&f, index, NULL) != 0)
        return 0;
    struct plog_cursor c = plog_index_records(&f, index);
    uint32_t records = 0;
    for (; plog_cursor_next(&c, &r, NULL) == 1; records++)
        assert(r.is_cut || plog_record_end(&r) <= f.name.end);
    assert(records == f.records && c.at == c.end);
    return 0;
}
