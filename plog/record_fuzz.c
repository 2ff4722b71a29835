/* Records of any bytes are refused or sound: within the file, their data one behind the other. */
#include "plog/record.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plog_cursor c = {.at = data, .end = data + size};
    struct plog_record r;
    uint64_t physical = 0;
    while (plog_cursor_next(&c, &r, NULL) == 1) {
        assert(r.start <= PLOG_OFFSET_MAX);
        if (r.is_cut)
            continue;
        assert(r.length > 0 && r.count > 0 && (r.count == 1 || r.stride > r.length));
        assert(plog_record_end(&r) > r.start && plog_record_end(&r) <= PLOG_OFFSET_MAX);
        assert(r.physical == physical && c.physical <= PLOG_OFFSET_MAX);
        physical = c.physical;
    }
    return 0;
}
