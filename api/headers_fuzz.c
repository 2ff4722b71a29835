/* Headers that a server sends, and the numbers in them. */
#include <assert.h>

#include "api/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct headers *h)
{
    struct header one;
    size_t n = 0;
    uint64_t first, last, total;
    for (size_t at = 0; headers_next(h, &at, &one); n++) {
        assert(headers_get(h, one.name) != NULL);
        if (headers_parse_range(one.value, &first, &last, &total))
            assert(first <= last && last < total);
    }
    assert(n == h->count);
    assert(headers_retry_after_ms(h, 0) <= 86400000);
    headers_get_u64(h, "Content-Length");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct headers h = {0};
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end != NULL ? (size_t)(end - data) + 1 : size;
        if (!headers_add_line(&h, (const char *)data, len))
            break;
        data += len;
        size -= len;
    }
    look(&h);
    headers_done(&h);
    return 0;
}
