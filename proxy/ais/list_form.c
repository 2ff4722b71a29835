#include "proxy/ais/list_form.h"

#include <stddef.h>
#include <string.h>

#include "ais/msgpack.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/parse.h"

/* Of an entry's field "f". */
enum { ENTRY_IS_CACHED = 1 << 6, ENTRY_IN_ARCHIVE = 1 << 7, ENTRY_IS_DIR = 1 << 8 };

/* --- flags ------------------------------------------------------------------------------------ */

static const struct {
    unsigned bit;
    size_t at; /* in struct list_flags; NOTHING: it changes nothing here */
} taken[] = {
#define NOTHING SIZE_MAX
    {0, offsetof(struct list_flags, cached)},
    {3, offsetof(struct list_flags, members)},
    {4, offsetof(struct list_flags, names_only)},
    {5, offsetof(struct list_flags, sizes_only)},
    {6, NOTHING}, /* buckets that the cluster has already: it has no others */
    {7, NOTHING}, /* no question to the backend whether its bucket exists */
    {8, NOTHING}, /* no new bucket is made of a backend's */
    {11, offsetof(struct list_flags, no_recursion)},
    {13, offsetof(struct list_flags, no_dirs)},
};

int list_flags_parse(const char *text, struct list_flags *out, struct error *err)
{
    uint64_t left;
    *out = (struct list_flags){0};
    if (text[0] == '\0')
        return 0;
    if (parse_u64(text, &left, NULL) != 0)
        return error_set(err, E_INVALID, "field 'value.flags': '%.32s' is no number", text);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        uint64_t bit = 1ull << taken[i].bit;
        if ((left & bit) != 0 && taken[i].at != NOTHING)
            *((bool *)((char *)out + taken[i].at)) = true;
        left &= ~bit;
    }
    if (left != 0)
        return error_set(err, E_UNSUPPORTED,
                         "field 'value.flags': bit %d of a list is not supported",
                         __builtin_ctzll(left));
    return 0;
}

/* --- the page --------------------------------------------------------------------------------- */

static void put_pair(struct buf *out, const char *name, const char *value)
{
    msgpack_put_str(out, name);
    msgpack_put_str(out, value);
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    msgpack_put_str(out, name);
    msgpack_put_u64(out, value);
}

static const char *text_of(const json_t *entry, const char *field)
{
    const char *text = json_string_value(json_object_get(entry, field));
    return text != NULL ? text : "";
}

/* {"type", "value"}; a name that only a backend has is without. */
static const char *checksum_of(const json_t *entry)
{
    return text_of(json_object_get(entry, "checksum"), "value");
}

static unsigned flags_of(const json_t *entry)
{
    return (json_is_false(json_object_get(entry, "cached")) ? 0 : ENTRY_IS_CACHED) |
           (json_is_true(json_object_get(entry, "member")) ? ENTRY_IN_ARCHIVE : 0);
}

static void put_entry(struct buf *out, const json_t *entry, const struct list_flags *flags)
{
    bool has_size = !flags->names_only, has_all = has_size && !flags->sizes_only;
    msgpack_put_map(out, 2 + (has_size ? 1 : 0) + (has_all ? 2 : 0));
    put_pair(out, "n", text_of(entry, "name"));
    put_number(out, "f", flags_of(entry));
    if (has_size)
        put_number(out, "s", (uint64_t)json_integer_value(json_object_get(entry, "size")));
    if (has_all) {
        put_pair(out, "cs", checksum_of(entry));
        put_pair(out, "v", text_of(entry, "version"));
    }
}

static void put_prefix(struct buf *out, const char *name)
{
    msgpack_put_map(out, 2);
    put_pair(out, "n", name);
    put_number(out, "f", ENTRY_IS_DIR);
}

/* Both are in order. */
static void put_merged(struct buf *out, const json_t *entries, const json_t *prefixes,
                       const struct list_flags *flags)
{
    size_t e = 0, p = 0, entry_count = json_array_size(entries);
    size_t prefix_count = flags->no_dirs ? 0 : json_array_size(prefixes);
    msgpack_put_array(out, (uint32_t)(entry_count + prefix_count));
    while (e < entry_count || p < prefix_count) {
        const json_t *entry = json_array_get(entries, e);
        const char *prefix = json_string_value(json_array_get(prefixes, p));
        bool takes_entry =
            p == prefix_count || (e < entry_count && strcmp(text_of(entry, "name"), prefix) < 0);
        if (takes_entry)
            put_entry(out, entry, flags);
        else
            put_prefix(out, prefix);
        e += takes_entry;
        p += !takes_entry;
    }
}

static int check_page(const json_t *entries, const json_t *prefixes, const char *next,
                      struct error *err)
{
    bool is_page = json_is_array(entries) && json_is_array(prefixes) && next != NULL;
    for (size_t i = 0; is_page && i < json_array_size(entries); i++)
        is_page = json_is_string(json_object_get(json_array_get(entries, i), "name"));
    for (size_t i = 0; is_page && i < json_array_size(prefixes); i++)
        is_page = json_is_string(json_array_get(prefixes, i));
    return is_page ? 0 : error_set(err, E_CORRUPT, "a page of a list is none");
}

int list_form_put(const struct buf *page, const struct list_flags *flags, const char *uuid,
                  struct buf *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(page->data, page->len, &doc, err);
    const json_t *entries = json_object_get(doc, "entries");
    const json_t *prefixes = json_object_get(doc, "prefixes");
    const char *next = json_string_value(json_object_get(doc, "next"));
    if (code != 0 || (code = check_page(entries, prefixes, next, err)) != 0)
        return code;
    msgpack_put_map(out, 4);
    put_pair(out, "UUID", uuid);
    put_pair(out, "ContinuationToken", next);
    put_number(out, "Flags", 0);
    msgpack_put_str(out, "Entries");
    put_merged(out, entries, prefixes, flags);
    return 0;
}
