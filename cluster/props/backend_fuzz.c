/* Any text either is refused with a sentence, or is a backend: one whose texts can stand in a
 * request as they are, and that its own URL says to be the same. */
#include "cluster/props/backend.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    assert(text != NULL && strpbrk(text, "\r\n \"@") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *url = xstrndup((const char *)data, size);
    _cleanup_(arena_freep)
    struct arena *a = arena_new(1024);
    struct backend_spec s;
    struct error err = ERROR_INIT;
    if (backend_parse(url, a, &s, &err) != 0) {
        assert(err.message[0] != '\0');
        return 0;
    }
    check_text(s.bucket);
    check_text(s.region);
    check_text(s.profile);
    assert(strpbrk(s.endpoint, "\r\n \"") == NULL && strncmp(s.endpoint, "http", 4) == 0);
    assert(backend_same_objects(url, url));
    return 0;
}
