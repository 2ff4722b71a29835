/* Whatever a target says its list is, the merge either refuses it or makes a page of it: in order,
 * without doubles, behind the start and within the limit. */
#include "proxy/list/merge.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 5 };
static const char start[] = "b";

static void check_names(json_t *names, const char *(*name_of)(json_t *item))
{
    const char *last = start;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_of(json_array_get(names, i));
        assert(name != NULL && strcmp(name, last) > 0);
        last = name;
    }
}

static const char *name_of_entry(json_t *entry)
{
    return json_string_value(json_object_get(entry, "name"));
}

static const char *name_of_prefix(json_t *prefix)
{
    return json_string_value(prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char other[] = "{\"entries\": [{\"name\": \"c\", \"version\": \"1.2.3\"}], "
                                "\"prefixes\": [\"d/\"], \"next\": \"\"}";
    const struct list_position position = {.after = start, .from = ""};
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(2, &position, LIMIT);
    int r = list_merge_feed(m, 0, xstrdup(other), sizeof other - 1, NULL);
    assert(r == 0);
    struct error err = ERROR_INIT;
    char *page = xmalloc(size + 1);
    memcpy(page, data, size);
    r = list_merge_feed(m, 1, page, size, &err);
    assert(r == 0 || (r == E_CORRUPT && err.message[0] != '\0'));
    if (r != 0 || !list_merge_done(m))
        list_merge_lose(m, 1);
    assert(list_merge_done(m));
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    list_merge_page(m, &text);
    _cleanup_json_ json_t *result = json_loadb(text.data, text.len, 0, NULL);
    assert(result != NULL); /* what is passed on is JSON */
    json_t *entries = json_object_get(result, "entries");
    json_t *prefixes = json_object_get(result, "prefixes");
    check_names(entries, name_of_entry);
    check_names(prefixes, name_of_prefix);
    assert(json_array_size(entries) + json_array_size(prefixes) <= LIMIT);
    return 0;
}
