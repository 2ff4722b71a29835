/* Any JSON is refused with words, or its canonical form parses to itself. */
#include "sort/spec/spec.h"

#include <assert.h>
#include <stdint.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_canonical(const struct sort_spec *s)
{
    _cleanup_json_ json_t *doc = sort_spec_json(s);
    assert(doc != NULL);
    _cleanup_(sort_spec_freep)
    struct sort_spec *again = NULL;
    int rc = sort_spec_parse(doc, &again, NULL);
    assert(rc == 0);
    _cleanup_json_ json_t *same = sort_spec_json(again);
    assert(json_equal(doc, same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    _cleanup_(sort_spec_freep)
    struct sort_spec *s = NULL;
    struct error err = ERROR_INIT;
    int rc = sort_spec_parse(doc, &s, &err);
    if (rc == 0)
        check_canonical(s);
    else
        assert((rc == E_SPEC || rc == E_UNSUPPORTED) && err.code == rc && err.message[0] != '\0');
    return 0;
}
