/* A text that is a head is printed as a text that is the same head. */
#include "plog/head.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct plog_head h, again;
    if (plog_head_parse((const char *)data, size, &h, NULL) != 0)
        return 0;
    plog_head_print(&h, &text);
    assert(plog_head_parse(text.data, text.len, &again, NULL) == 0);
    assert(memcmp(&h, &again, sizeof h) == 0);
    return 0;
}
