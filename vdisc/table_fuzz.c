/* Any bytes as a table: refused, or one that is written and read back the same. */
#include "vdisc/table.h"

#include <assert.h>
#include <string.h>

#define MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vdisc_table *t = NULL, *again = NULL;
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    int rc = vdisc_table_read(data, size, MAX, &t, &err);
    assert(rc == 0 || err.message[0] != '\0');
    if (rc != 0)
        return 0;
    assert(vdisc_table_write(t, 0, &bytes, &err) == 0);
    assert(vdisc_table_read(bytes.data, bytes.len, 0, &again, &err) == 0);
    assert(again->count == t->count && again->pinned == t->pinned);
    for (uint32_t i = 0; i < t->count; i++)
        assert(strcmp(again->extents[i].address, t->extents[i].address) == 0);
    vdisc_table_free(t);
    vdisc_table_free(again);
    return 0;
}
