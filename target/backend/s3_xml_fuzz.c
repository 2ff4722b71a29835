/* Any bytes: printable words of a bounded length, or none; a page of names, of which each is one of
 * ours, or none. */
#include "target/backend/s3_xml.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cluster/documents/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_page(const char *data, size_t size)
{
    const struct backend_spec spec = {.prefix = "p/"};
    _cleanup_arena_ struct arena *a = arena_new(1024);
    struct backend_page page = {.arena = a};
    if (s3_xml_page(&spec, data, size, &page, NULL) != 0)
        return;
    for (size_t i = 0; i < page.entry_count; i++)
        assert(object_name_check(page.entries[i].name, strlen(page.entries[i].name), NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT;
    s3_xml_error((const char *)data, size, &out);
    assert(out.len < 1024);
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] >= ' ' && out.data[i] <= '~');
    buf_done(&out);
    read_page((const char *)data, size);
    return 0;
}
