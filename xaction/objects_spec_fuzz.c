/* Any JSON asks for a job over objects or is refused; what a list or template names are names of
 * objects.  The first byte chooses the kind. */
#include "xaction/objects_spec.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cluster/documents/names.h"
#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 50 };
static const char *const kinds[] = {"delete",  "copy",      "prefetch", "evict",
                                    "archive", "unarchive", "promote"};

/* The first and the last ones: a template may make ten million. */
static void check_names(const struct objects_spec *s)
{
    const uint64_t count = objects_spec_count(s);
    _cleanup_buf_ struct buf name = BUF_INIT;
    for (uint64_t i = 0; i < count; i++) {
        i = i == NAMES && count > 2 * NAMES ? count - NAMES : i;
        const char *text = objects_spec_name(s, i, &name);
        assert(object_name_check(text, strlen(text), NULL) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(objects_spec_freep)
    struct objects_spec *s = NULL;
    struct error err = ERROR_INIT;
    if (size == 0)
        return 0;
    _cleanup_json_ json_t *value = json_loadb((const char *)data + 1, size - 1, 0, NULL);
    if (value == NULL)
        return 0;
    if (objects_spec_parse(kinds[data[0] % (sizeof kinds / sizeof *kinds)], value, &s, &err) != 0) {
        assert(err.code != 0 && err.message[0] != '\0');
        return 0;
    }
    assert(s->which != OBJECTS_TEMPLATE || objects_spec_count(s) <= OBJECTS_NAMES_MAX);
    if (s->which == OBJECTS_LIST || s->which == OBJECTS_TEMPLATE)
        check_names(s);
    return 0;
}
