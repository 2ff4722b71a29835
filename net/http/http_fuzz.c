/* Ranges, conditions and lists out of any text: what they say holds, whatever the text. */
#include "net/http/http.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_range(const char *text, uint64_t size)
{
    struct http_range r = {0};
    switch (http_range_parse(text, size, &r)) {
    case HTTP_RANGE_OK:
        assert(r.length > 0 && r.offset < size && r.length <= size - r.offset);
        break;
    case HTTP_RANGE_NONE:
    case HTTP_RANGE_UNSATISFIABLE:
        assert(r.offset == 0 && r.length == 0);
    }
}

static void check_conditions(const char *a, const char *b)
{
    static const char *const etags[] = {"\"7\"", NULL};
    const struct http_conditions all[] = {
        {.if_match = a, .if_none_match = b},
        {.if_match = a, .if_modified_since = b},
        {.if_unmodified_since = a, .if_none_match = b},
        {.if_unmodified_since = a, .if_modified_since = b},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (size_t e = 0; e < 2; e++) {
            int get = http_conditions_check(&all[i], HTTP_GET, etags[e], 1700000000);
            int put = http_conditions_check(&all[i], HTTP_PUT, etags[e], 1700000000);
            assert(get == 0 || get == E_PRECONDITION || get == E_NOT_MODIFIED);
            assert(put == 0 || put == E_PRECONDITION);
            assert(get != E_NOT_MODIFIED || etags[e] != NULL);
        }
    }
    http_if_range_holds(a, "\"7\"");
    if (*b != '\0' && strpbrk(b, " \t,") == NULL)
        assert(http_list_has(b, b));
    http_list_has(a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 9)
        return 0;
    uint64_t object_size;
    memcpy(&object_size, data, 8);
    size_t half = (size - 9) * data[8] / 255;
    _cleanup_free_ char *a = xstrndup((const char *)data + 9, half);
    _cleanup_free_ char *b = xstrndup((const char *)data + 9 + half, size - 9 - half);
    check_range(a, object_size);
    check_range(a, object_size % 1000);
    check_conditions(a, b);
    http_method_parse(a);
    return 0;
}
