/* Whatever is taken for a head is printed and taken again. */
#include "ring/head.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_ring_head_ struct ring_head h, again;
    _cleanup_buf_ struct buf text = BUF_INIT, twice = BUF_INIT;
    again = (struct ring_head){.generation = 0};
    if (ring_head_parse((const char *)data, size, &h, NULL) != 0)
        return 0;
    ring_head_print(&h, &text);
    assert(ring_head_parse(text.data, text.len, &again, NULL) == 0);
    ring_head_print(&again, &twice);
    assert(strcmp(text.data, twice.data) == 0);
    for (size_t i = 0; i < h.lanes_count; i++)
        assert(ring_head_release(&h, h.lanes[i].lane) <= h.lanes[i].taken);
    return 0;
}
