/* Specifications in both notations.  What is accepted is an object that JSON can carry. */
#include <assert.h>

#include "api/ctl/spec.h"
#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *doc;
    json_t *again;
    if (spec_parse((const char *)data, size, "spec", &doc, NULL) != 0)
        return 0;
    char *text = json_text(doc);
    int rc = json_parse(text, strlen(text), &again, NULL);
    assert(rc == 0);
    assert(json_equal(doc, again));
    json_decref(again);
    json_decref(doc);
    free(text);
    return 0;
}
