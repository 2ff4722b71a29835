/* Any text either is none, or is written again as it was. */
#include "s3/uploads/part_sums.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xcalloc(1, size + 1);
    struct part_sums sums;
    struct s3_sum_value values[PART_SUMS_BYTES / 4];
    char again[PART_SUMS_MAX];
    if (size > 0)
        memcpy(text, data, size);
    if (!part_sums_parse(text, &sums))
        return 0;
    assert(sums.count >= 1 && sums.count <= PART_SUMS_BYTES / 4);
    for (unsigned i = 0; i < sums.count; i++) {
        bool found = part_sums_find(&sums, i + 1, &values[i]);
        assert(found);
    }
    bool printed = part_sums_print(values, sums.count, again);
    assert(printed && strcmp(again, text) == 0);
    return 0;
}
