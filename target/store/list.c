#include "target/store/list.h"

#include <assert.h>

#include "common/internal_name.h"
#include "common/mem.h"
#include "target/disk/index_merge.h"

enum { ARENA_BYTES = 64 * 1024 };

/* The least text that is greater than everything that begins with `prefix`; NULL where there is
 * none (only for a prefix of 0xff bytes). */
static char *behind_prefix(struct arena *a, const char *prefix)
{
    char *text = arena_strdup(a, prefix);
    size_t len = strlen(text);
    while (len > 0 && (unsigned char)text[len - 1] == 0xff)
        len--;
    if (len == 0)
        return NULL;
    text[len - 1]++;
    text[len] = '\0';
    return text;
}

/* --- the page --------------------------------------------------------------------------------- */

struct lister {
    struct object_store *store;
    const struct list_request *req;
    struct list_page *page;
    struct index_merge merge;
    const char *last;   /* entry or prefix put on the page last, or start_after */
    size_t passed;      /* names that were not shown */
    const char *behind; /* the last of them, where the page ends there */
};

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The common prefix that `name` is rolled up into, or NULL. */
static const char *common_prefix(const struct lister *l, const char *name)
{
    const char *delimiter = l->req->delimiter;
    if (*delimiter == '\0')
        return NULL;
    const char *at = strstr(name + strlen(l->req->prefix), delimiter);
    if (at == NULL)
        return NULL;
    return arena_strndup(l->page->arena, name, (size_t)(at - name) + strlen(delimiter));
}

static bool page_full(const struct lister *l)
{
    return l->page->entry_count + l->page->prefix_count == l->req->limit;
}

static int jump_behind(struct lister *l, const char *prefix, struct error *err)
{
    const char *behind = behind_prefix(l->page->arena, prefix);
    if (behind != NULL)
        return index_merge_seek(&l->merge, behind, false, err);
    index_merge_end(&l->merge);
    return 0;
}

static int add_prefix(struct lister *l, const char *prefix, struct error *err)
{
    if (strcmp(prefix, l->req->start_after) > 0) {
        l->page->prefixes[l->page->prefix_count++] = prefix;
        l->last = prefix;
    }
    return jump_behind(l, prefix, err);
}

static int add_entry(struct lister *l, const char *name, const struct index_record *rec,
                     struct error *err)
{
    struct list_entry *e = &l->page->entries[l->page->entry_count++];
    e->name = arena_strdup(l->page->arena, name);
    e->record = *rec;
    e->record.job = NULL;
    l->last = e->name;
    return index_merge_skip(&l->merge, e->name, err);
}

static bool hidden(const struct lister *l, const char *name, const struct index_record *rec,
                   const char *prefix)
{
    bool said = l->req->tombstones || (l->req->pending && rec->pending);
    if (rec->tombstone && (!said || prefix != NULL))
        return true;
    if (l->req->shows != NULL && !l->req->shows(l->req->ctx, name))
        return true;
    return object_job_hides(l->store, rec->job);
}

/* Over a name that is not there.  *full: it was the last that this page passes. */
static int pass(struct lister *l, const char *name, bool *full, struct error *err)
{
    char copy[ATTR_NAME_MAX + 1];
    snprintf(copy, sizeof copy, "%s", name);
    *full = ++l->passed == LIST_PASSED_MAX;
    if (*full)
        l->behind = arena_strdup(l->page->arena, copy);
    return index_merge_skip(&l->merge, copy, err);
}

/* Takes the least name: onto the page, into a prefix, or over it.  A hidden name makes no prefix.
 * *full: it would have been one too many, so there is a next page. */
static int take_least(struct lister *l, const struct index_cursor *least, bool *full,
                      struct error *err)
{
    const struct index_record *rec = index_cursor_record(least);
    const char *name = index_cursor_name(least);
    if (l->req->skips_internal && name_is_internal(name))
        return jump_behind(l, INTERNAL_PREFIX, err);
    const char *prefix = common_prefix(l, name);
    if (hidden(l, name, rec, prefix))
        return pass(l, name, full, err);
    bool shows = prefix == NULL || strcmp(prefix, l->req->start_after) > 0;
    *full = shows && page_full(l);
    if (*full)
        return 0;
    return prefix != NULL ? add_prefix(l, prefix, err) : add_entry(l, name, rec, err);
}

static int list_start(struct lister *l, struct error *err)
{
    const char *prefix = l->req->prefix, *after = l->req->start_after, *from = l->req->from;
    if (from != NULL && strcmp(from, after) > 0)
        after = from;
    bool within = strcmp(after, prefix) >= 0;
    return index_merge_seek(&l->merge, within ? after : prefix, within && *after != '\0', err);
}

static void say_next(struct lister *l)
{
    bool plain = *l->req->delimiter == '\0';
    l->page->next = l->last;
    if (l->behind != NULL && plain)
        l->page->next = l->behind;
    else if (l->behind != NULL)
        l->page->from = l->behind;
}

static int list_fill(struct lister *l, struct error *err)
{
    struct mountpaths *all = object_store_mountpaths(l->store);
    int code = index_merge_open(&l->merge, all, NULL, l->req->bucket_id, err);
    if (code == 0)
        code = list_start(l, err);
    bool full = false;
    while (code == 0 && !full) {
        const struct index_cursor *least = index_merge_least(&l->merge);
        if (least == NULL || !begins_with(index_cursor_name(least), l->req->prefix))
            break;
        code = take_least(l, least, &full, err);
    }
    if (full)
        say_next(l);
    return code;
}

int list_page(struct object_store *s, const struct list_request *req, struct list_page *out,
              struct error *err)
{
    assert(req->limit >= 1 && req->limit <= LIST_LIMIT_MAX);
    *out = (struct list_page){.arena = arena_new(ARENA_BYTES), .next = "", .from = ""};
    out->entries = xcalloc(req->limit, sizeof *out->entries);
    out->prefixes = xcalloc(req->limit, sizeof *out->prefixes);
    struct lister l = {
        .store = s, .req = req, .page = out, .last = arena_strdup(out->arena, req->start_after)};
    int code = list_fill(&l, err);
    out->visited = index_merge_visited(&l.merge);
    metric_add(metric_get(M_list_entries_visited_total, NULL), out->visited);
    index_merge_close(&l.merge);
    if (code != 0)
        list_page_done(out);
    return code;
}

void list_page_done(struct list_page *page)
{
    free(page->entries);
    free(page->prefixes);
    arena_free(page->arena);
    *page = (struct list_page){0};
}
