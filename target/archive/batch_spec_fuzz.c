/* Any bytes are a batch or are refused; of a batch every entry has a name, and a range that ends
 * within 63 bits. */
#include "target/archive/batch_spec.h"

#include <assert.h>
#include <string.h>

#include "common/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_spec spec;
    struct error err = ERROR_INIT;
    if (batch_spec_parse((const char *)data, size, 100, &spec, &err) != 0) {
        assert(err.code != 0 && err.message[0] != '\0');
        return 0;
    }
    assert(spec.count <= 100);
    for (size_t i = 0; i < spec.count; i++) {
        const struct batch_entry *e = &spec.entries[i];
        _cleanup_buf_ struct buf name = BUF_INIT;
        batch_entry_name(&spec, e, i % 2 == 0, &name);
        assert(strlen(name.data) == name.len && *e->bucket != '\0' && *e->object != '\0');
        assert(e->offset + e->length <= INT64_MAX && (e->ranged || e->length == 0));
    }
    batch_spec_done(&spec);
    return 0;
}
