#include "proxy/list_merge.h"

#include <string.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/list_token.h"

/* An entry or a common prefix of one source's page; everything is borrowed from the page. */
struct item {
    const char *name;
    json_t *entry; /* NULL: a prefix */
    uint64_t version[3];
};

struct source {
    json_t *page; /* the last one */
    struct item *items;
    size_t count, next;
    bool more;   /* there is something behind the last item */
    char *after; /* the last item's name, or where to begin */
};

struct list_merge {
    size_t limit;
    bool incomplete;
    size_t taken; /* entries and prefixes of the result */
    char *last;   /* the result's last name, or start_after */
    json_t *entries;
    json_t *prefixes;
    size_t source_count;
    struct source sources[];
};

struct list_merge *list_merge_new(size_t sources, const char *start_after, size_t limit)
{
    struct list_merge *m = xcalloc(1, sizeof *m + sources * sizeof m->sources[0]);
    m->limit = limit;
    m->last = xstrdup(start_after);
    m->entries = json_array();
    m->prefixes = json_array();
    m->source_count = sources;
    for (size_t i = 0; i < sources; i++) {
        m->sources[i].more = true;
        m->sources[i].after = xstrdup(start_after);
    }
    return m;
}

void list_merge_free(struct list_merge *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->source_count; i++) {
        json_decref(m->sources[i].page);
        free(m->sources[i].items);
        free(m->sources[i].after);
    }
    json_decref(m->entries);
    json_decref(m->prefixes);
    free(m->last);
    free(m);
}

/* --- what a target says ---------------------------------------------------------------------- */

static int parse_version(const char *text, uint64_t version[3])
{
    char piece[24];
    for (int i = 0; i < 3; i++) {
        size_t len = strcspn(text, ".");
        bool last = text[len] == '\0';
        if (len >= sizeof piece || last != (i == 2))
            return E_INVALID;
        memcpy(piece, text, len);
        piece[len] = '\0';
        if (parse_u64(piece, &version[i], NULL) != 0)
            return E_INVALID;
        text += len + 1;
    }
    return 0;
}

static int item_of_entry(json_t *entry, struct item *out, struct error *err)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *version = json_string_value(json_object_get(entry, "version"));
    *out = (struct item){.name = name, .entry = entry};
    if (name == NULL || version == NULL || parse_version(version, out->version) != 0)
        return error_set(err, E_CORRUPT, "an entry lacks its name or version");
    return 0;
}

static int item_of_prefix(json_t *prefix, struct item *out, struct error *err)
{
    *out = (struct item){.name = json_string_value(prefix)};
    if (out->name == NULL)
        return error_set(err, E_CORRUPT, "a prefix is no text");
    return 0;
}

/* One array of a page as items, which must grow. */
static int items_of(json_t *array, int (*item_of)(json_t *, struct item *, struct error *),
                    struct item *out, struct error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        int r = item_of(json_array_get(array, i), &out[i], err);
        if (r != 0)
            return r;
        if (i > 0 && strcmp(out[i - 1].name, out[i].name) >= 0)
            return error_set(err, E_CORRUPT, "'%.64s' is out of order", out[i].name);
    }
    return 0;
}

/* Both arrays of a page in one order. */
static void interleave(const struct item *a, size_t na, const struct item *b, size_t nb,
                       struct item *out)
{
    while (na + nb > 0) {
        bool first = nb == 0 || (na > 0 && strcmp(a->name, b->name) < 0);
        *out++ = first ? *a : *b;
        if (first)
            a++, na--;
        else
            b++, nb--;
    }
}

static int items_of_page(json_t *page, struct item **out, size_t *count, struct error *err)
{
    json_t *entries = NULL;
    json_t *prefixes = NULL;
    int r;
    if ((r = json_get_array(page, "", "entries", &entries, err)) != 0 ||
        (r = json_get_array(page, "", "prefixes", &prefixes, err)) != 0)
        return r;
    size_t ne = json_array_size(entries);
    size_t np = json_array_size(prefixes);
    _cleanup_free_ struct item *apart = xcalloc(ne + np, sizeof *apart);
    if ((r = items_of(entries, item_of_entry, apart, err)) != 0 ||
        (r = items_of(prefixes, item_of_prefix, apart + ne, err)) != 0)
        return r;
    *out = xcalloc(ne + np, sizeof **out);
    *count = ne + np;
    interleave(apart, ne, apart + ne, np, *out);
    return 0;
}

/* Items that are not behind where the page was to begin: a common prefix that the last page ended
 * with may come again. */
static void skip_to(struct source *s, const char *after)
{
    while (s->next < s->count && strcmp(s->items[s->next].name, after) <= 0)
        s->next++;
}

/* --- the merge ------------------------------------------------------------------------------- */

static const struct item *source_head(const struct source *s)
{
    return s->next < s->count ? &s->items[s->next] : NULL;
}

static bool source_waits(const struct source *s)
{
    return source_head(s) == NULL && s->more;
}

/* Of two items with one name: the prefix, else the greater version. */
static bool item_wins(const struct item *a, const struct item *b)
{
    if (a->entry == NULL || b->entry == NULL)
        return a->entry == NULL;
    for (int i = 0; i < 3; i++) {
        if (a->version[i] != b->version[i])
            return a->version[i] > b->version[i];
    }
    return false;
}

/* The next item of all; NULL at the end.  Every source has a head or has ended. */
static const struct item *least_head(const struct list_merge *m)
{
    const struct item *least = NULL;
    for (size_t i = 0; i < m->source_count; i++) {
        const struct item *head = source_head(&m->sources[i]);
        if (head == NULL)
            continue;
        int order = least != NULL ? strcmp(head->name, least->name) : -1;
        if (order < 0 || (order == 0 && item_wins(head, least)))
            least = head;
    }
    return least;
}

static bool some_source_waits(const struct list_merge *m)
{
    for (size_t i = 0; i < m->source_count; i++) {
        if (source_waits(&m->sources[i]))
            return true;
    }
    return false;
}

static void take(struct list_merge *m, const struct item *item)
{
    if (item->entry != NULL)
        json_array_append(m->entries, item->entry);
    else
        json_array_append_new(m->prefixes, json_string(item->name));
    free(m->last);
    m->last = xstrdup(item->name);
    m->taken++;
    for (size_t i = 0; i < m->source_count; i++)
        skip_to(&m->sources[i], m->last);
}

static void run(struct list_merge *m)
{
    const struct item *item;
    while (m->taken < m->limit && !some_source_waits(m) && (item = least_head(m)) != NULL)
        take(m, item);
}

/* Each holds about its share of the names; a quarter and a few more make a second question rare. */
static size_t share(const struct list_merge *m)
{
    size_t left = m->limit - m->taken;
    size_t part = left / m->source_count + left / (4 * m->source_count) + 16;
    return part < left + 16 ? part : left + 16;
}

bool list_merge_wants(const struct list_merge *m, size_t i, const char **start_after, size_t *limit)
{
    const struct source *s = &m->sources[i];
    if (m->taken == m->limit || !source_waits(s))
        return false;
    *start_after = s->after;
    *limit = share(m) < LIST_LIMIT_MAX ? share(m) : LIST_LIMIT_MAX;
    return true;
}

/* The target's page as the source's items; what it had before is used up. */
static int source_load(struct source *s, json_t *page, struct error *err)
{
    struct item *items = NULL;
    size_t count = 0;
    const char *next = NULL;
    int r;
    if ((r = json_need_str(page, "", "next", &next, err)) != 0 ||
        (r = items_of_page(page, &items, &count, err)) != 0)
        return r;
    json_incref(page);
    json_decref(s->page);
    free(s->items);
    *s = (struct source){page, items, count, 0, next[0] != '\0', s->after};
    return 0;
}

int list_merge_feed(struct list_merge *m, size_t i, json_t *page, struct error *err)
{
    struct source *s = &m->sources[i];
    struct error why = ERROR_INIT;
    if (source_load(s, page, &why) != 0)
        return error_set(err, E_CORRUPT, "its list cannot be read: %s", why.message);
    skip_to(s, s->after);
    if (source_waits(s))
        return error_set(err, E_CORRUPT, "its list does not get on from '%.64s'", s->after);
    if (s->count > 0) {
        free(s->after);
        s->after = xstrdup(s->items[s->count - 1].name);
    }
    skip_to(s, m->last);
    run(m);
    return 0;
}

void list_merge_lose(struct list_merge *m, size_t i)
{
    m->sources[i].more = false;
    m->incomplete = true;
    run(m);
}

bool list_merge_done(const struct list_merge *m)
{
    return m->taken == m->limit || !some_source_waits(m);
}

static bool has_more(const struct list_merge *m)
{
    for (size_t i = 0; i < m->source_count; i++) {
        if (source_head(&m->sources[i]) != NULL || m->sources[i].more)
            return true;
    }
    return false;
}

json_t *list_merge_page(const struct list_merge *m)
{
    _cleanup_(buf_done)
    struct buf next = BUF_INIT;
    if (has_more(m))
        list_token_put(&next, m->last);
    return json_pack("{s:O, s:O, s:s, s:b}", "entries", m->entries, "prefixes", m->prefixes, "next",
                     buf_str(&next), "incomplete", (int)m->incomplete);
}
