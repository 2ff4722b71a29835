/* Any members make a table: each name is found once, at its last place, and pages have all names in
 * order.  The input is names, separated by newlines. */
#include "target/archive/member_table.h"

#include <assert.h>
#include <string.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "target/archive/member_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t fill(struct member_table *t, const char *at, size_t left)
{
    size_t count = 0;
    while (left > 0) {
        const char *end = memchr(at, '\n', left);
        size_t len = end != NULL ? (size_t)(end - at) : left;
        if (len > 0 && memchr(at, '\0', len) == NULL) {
            const struct member_place m = {.name = at, .name_len = len, .offset = count++};
            member_table_add(t, &m);
        }
        at += len + (end != NULL);
        left -= len + (end != NULL);
    }
    return count;
}

static void check_order(const struct member_table *t)
{
    for (size_t i = 0; i < member_table_count(t); i++) {
        struct member_place m, found;
        member_table_at(t, i, &m);
        assert(member_table_find(t, m.name, m.name_len, &found) && found.offset == m.offset);
        assert(member_table_after(t, m.name, m.name_len) == i + 1);
    }
}

static void check_page(const struct member_table *t)
{
    _cleanup_buf_ struct buf page = BUF_INIT;
    const struct version version = {.term = 1};
    struct error err = ERROR_INIT;
    member_list_put(&page, t, &version, NULL, 10);
    json_t *doc = NULL;
    int code = json_parse(page.data, page.len, &doc, &err);
    assert(code == 0);
    size_t all = member_table_count(t);
    assert(json_array_size(json_object_get(doc, "members")) == (all < 10 ? all : 10));
    json_decref(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(member_table_freep)
    struct member_table *t = member_table_new();
    size_t count = fill(t, (const char *)data, size);
    member_table_finish(t);
    assert(member_table_count(t) <= count);
    check_order(t);
    check_page(t);
    return 0;
}
