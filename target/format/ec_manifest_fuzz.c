/* Any text either is refused with a sentence, or is a manifest: one that is written as it was read,
 * and whose slices have names that lead back to it.  The same bytes are tried as such a name. */
#include "target/format/ec_manifest.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_manifest(const char *text)
{
    struct ec_manifest m, again;
    struct error err = ERROR_INIT;
    char written[EC_MANIFEST_TEXT_MAX], name[EC_SLICE_NAME_MAX];
    if (ec_manifest_parse(text, &m, &err) != 0) {
        assert(err.code != 0 && err.message[0] != '\0');
        return;
    }
    int code = ec_manifest_parse(ec_manifest_text(&m, written), &again, NULL);
    assert(code == 0 && again.tag == m.tag && again.layout.length == m.layout.length);
    for (unsigned i = 0; i < m.layout.k + m.layout.m; i++) {
        uint64_t tag;
        unsigned index;
        code = ec_slice_name_parse(ec_slice_name(m.tag, i, name), &tag, &index, NULL);
        assert(code == 0 && tag == m.tag && index == i);
    }
}

static void check_name(const char *text)
{
    uint64_t tag;
    unsigned index;
    char written[EC_SLICE_NAME_MAX];
    if (ec_slice_name_parse(text, &tag, &index, NULL) == 0)
        assert(strcmp(ec_slice_name(tag, index, written), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    check_manifest(text);
    check_name(text);
    return 0;
}
