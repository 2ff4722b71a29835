/* Whatever a target says its uploads are, the merge either refuses it or makes a page of it: by
 * object and within the limit. */
#include "proxy/http/upload_merge.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 3 };

#define ID(n) "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_" n

static void check_rows(json_t *rows)
{
    const char *last = "";
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *object = json_string_value(json_object_get(json_array_get(rows, i), "object"));
        assert(object != NULL && strcmp(object, last) >= 0);
        last = object;
    }
    assert(json_array_size(rows) <= LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char other[] =
        "{\"uploads\": ["
        "{\"object\": \"b\", \"upload\": \"" ID("w") "\", \"time\": 1}, "
                                                     "{\"object\": \"d\", \"upload\": \"" ID(
                                                         "w") "\", \"time\": 1}], "
                                                              "\"more\": true}";
    _cleanup_(upload_merge_freep)
    struct upload_merge *m = upload_merge_new(LIMIT);
    struct error err = ERROR_INIT;
    int first = upload_merge_feed(m, (const char *)data, size, &err);
    assert(first == 0 || (first == E_CORRUPT && err.message[0] != '\0'));
    int code = upload_merge_feed(m, other, sizeof other - 1, NULL);
    assert(code == 0);
    code = upload_merge_feed(m, (const char *)data, size, NULL);
    assert(code == first);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    upload_merge_page(m, &text);
    _cleanup_json_ json_t *page = json_loadb(text.data, text.len, 0, NULL);
    assert(page != NULL);
    check_rows(json_object_get(page, "uploads"));
    return 0;
}
