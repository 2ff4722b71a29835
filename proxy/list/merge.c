#include "proxy/list/merge.h"

#include <string.h>

#include "common/mem.h"
#include "proxy/list/page.h"

struct source {
    struct list_page *page; /* the last one; NULL before */
    size_t next;
    bool more;     /* there may be something behind its items */
    size_t rounds; /* questions */
    char *after;   /* where the next question begins: its start_after, */
    char *from;    /* and its from, or "" */
};

struct list_merge {
    size_t limit;
    bool incomplete;
    size_t taken; /* entries and prefixes of the result */
    char *last;   /* the result's last name, or start_after */
    struct buf entries;
    struct buf prefixes;
    struct source **heap; /* those that have an item; heap[0] has the next of all */
    size_t heap_count;
    size_t source_count;
    struct source sources[];
};

struct list_merge *list_merge_new(size_t sources, const struct list_position *position,
                                  size_t limit)
{
    struct list_merge *m = xcalloc(1, sizeof *m + sources * sizeof m->sources[0]);
    m->limit = limit;
    m->last = xstrdup(position->after);
    m->source_count = sources;
    m->heap = xcalloc(sources, sizeof m->heap[0]);
    for (size_t i = 0; i < sources; i++)
        m->sources[i] = (struct source){
            .more = true, .after = xstrdup(position->after), .from = xstrdup(position->from)};
    return m;
}

void list_merge_free(struct list_merge *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->source_count; i++) {
        list_page_free(m->sources[i].page);
        free(m->sources[i].after);
        free(m->sources[i].from);
    }
    buf_done(&m->entries);
    buf_done(&m->prefixes);
    free(m->heap);
    free(m->last);
    free(m);
}

/* --- a source --------------------------------------------------------------------------------- */

static const struct list_item *source_head(const struct source *s)
{
    return s->page != NULL && s->next < s->page->count ? &s->page->items[s->next] : NULL;
}

/* Items that are not behind where the page was to begin: a common prefix that the last page ended
 * with may come again. */
static void skip_to(struct source *s, const char *after)
{
    const struct list_item *head;
    while ((head = source_head(s)) != NULL && strcmp(head->name, after) <= 0)
        s->next++;
}

static bool source_waits(const struct source *s)
{
    return source_head(s) == NULL && s->more;
}

static const char *greater(const char *a, const char *b)
{
    return strcmp(a, b) > 0 ? a : b;
}

/* Whatever it still has is greater than this, or a common prefix that this lies in. */
static const char *source_reached(const struct source *s)
{
    return greater(s->after, s->from);
}

static void replace(char **text, const char *by)
{
    char *copy = xstrdup(by);
    free(*text);
    *text = copy;
}

/* From the page that has come, which has `any` new item, to where the next one begins; false: it
 * leads nowhere. */
static bool source_advance(struct source *s, const struct list_page *p, bool any)
{
    _cleanup_free_ char *before = xstrdup(source_reached(s));
    if (p->count > 0)
        replace(&s->after, greater(s->after, p->items[p->count - 1].name));
    replace(&s->after, greater(s->after, p->next));
    replace(&s->from, p->from);
    s->more = *p->next != '\0' || *p->from != '\0';
    return !s->more || any || strcmp(source_reached(s), before) > 0;
}

/* --- the merge -------------------------------------------------------------------------------- */

/* Of two items with one name: the prefix, else the greater version. */
static bool item_wins(const struct list_item *a, const struct list_item *b)
{
    if (a->is_prefix || b->is_prefix)
        return a->is_prefix;
    for (int i = 0; i < 3; i++) {
        if (a->version[i] != b->version[i])
            return a->version[i] > b->version[i];
    }
    return false;
}

/* --- the heap --------------------------------------------------------------------------------- */

static bool comes_before(const struct source *a, const struct source *b)
{
    const struct list_item *x = source_head(a), *y = source_head(b);
    int order = strcmp(x->name, y->name);
    return order < 0 || (order == 0 && item_wins(x, y));
}

static void heap_swap(struct list_merge *m, size_t i, size_t j)
{
    struct source *moved = m->heap[i];
    m->heap[i] = m->heap[j];
    m->heap[j] = moved;
}

static void heap_add(struct list_merge *m, struct source *s)
{
    size_t i = m->heap_count++;
    m->heap[i] = s;
    for (; i > 0 && comes_before(m->heap[i], m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_swap(m, i, (i - 1) / 2);
}

/* The first source has another item now, or none. */
static void heap_renew_first(struct list_merge *m)
{
    if (source_head(m->heap[0]) == NULL)
        m->heap[0] = m->heap[--m->heap_count];
    for (size_t i = 0, first = 0;; i = first) {
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->heap_count; child++) {
            if (comes_before(m->heap[child], m->heap[first]))
                first = child;
        }
        if (first == i)
            return;
        heap_swap(m, i, first);
    }
}

/* The next item of all; NULL where there is none. */
static const struct list_item *least_head(const struct list_merge *m)
{
    return m->heap_count > 0 ? source_head(m->heap[0]) : NULL;
}

/* --- the result ------------------------------------------------------------------------------- */

/* How far all are known: the least place that a source which waits has reached; NULL: none waits.
 */
static const char *known_to(const struct list_merge *m)
{
    const char *least = NULL;
    for (size_t i = 0; i < m->source_count; i++) {
        const struct source *s = &m->sources[i];
        if (source_waits(s) && (least == NULL || strcmp(source_reached(s), least) < 0))
            least = source_reached(s);
    }
    return least;
}

static void put_item(struct buf *out, const struct list_item *item)
{
    if (out->len > 0)
        buf_putc(out, ',');
    buf_append(out, item->text, item->len);
}

/* *known follows the sources that wait now. */
static void take(struct list_merge *m, const struct list_item *item, const char **known)
{
    if (!item->deleted) {
        put_item(item->is_prefix ? &m->prefixes : &m->entries, item);
        m->taken++;
    }
    replace(&m->last, item->name);
    while ((item = least_head(m)) != NULL && strcmp(item->name, m->last) <= 0) {
        struct source *s = m->heap[0];
        skip_to(s, m->last);
        if (source_waits(s) && (*known == NULL || strcmp(source_reached(s), *known) < 0))
            *known = source_reached(s);
        heap_renew_first(m);
    }
}

static void run(struct list_merge *m)
{
    const struct list_item *item;
    const char *known = known_to(m);
    while (m->taken < m->limit && (item = least_head(m)) != NULL &&
           (known == NULL || strcmp(item->name, known) <= 0))
        take(m, item, &known);
}

/* Each holds about its share of the names; a quarter and a few more make a second question rare.
 * Common prefixes are no shares: all may hold the same ones, so that each question to a source asks
 * for twice as many as the one before. */
static size_t share(const struct list_merge *m, const struct source *s)
{
    size_t left = m->limit - m->taken;
    size_t part = (left / m->source_count + left / (4 * m->source_count) + 16) << s->rounds;
    size_t most = left + 16 < LIST_LIMIT_MAX ? left + 16 : LIST_LIMIT_MAX;
    return part < most ? part : most;
}

bool list_merge_wants(const struct list_merge *m, size_t i, struct list_question *question)
{
    const struct source *s = &m->sources[i];
    if (m->taken == m->limit || !source_waits(s) || s->rounds == LIST_ROUNDS_MAX)
        return false;
    *question = (struct list_question){
        .position = {.after = s->after, .from = s->from},
        .limit = share(m, s),
    };
    return true;
}

int list_merge_feed(struct list_merge *m, size_t i, char *text, size_t len, struct error *err)
{
    struct source *s = &m->sources[i];
    struct error why = ERROR_INIT;
    struct list_page *page;
    if (list_page_read(text, len, &page, &why) != 0)
        return error_set(err, E_CORRUPT, "its list cannot be read: %s", why.message);
    list_page_free(s->page);
    s->page = page;
    s->next = 0;
    s->rounds++;
    skip_to(s, s->after);
    if (!source_advance(s, page, source_head(s) != NULL))
        return error_set(err, E_CORRUPT, "its list does not get on from '%.64s'",
                         source_reached(s));
    skip_to(s, m->last);
    if (source_head(s) != NULL)
        heap_add(m, s);
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
    struct list_question unused;
    for (size_t i = 0; i < m->source_count; i++) {
        if (list_merge_wants(m, i, &unused))
            return false;
    }
    return true;
}

static bool has_more(const struct list_merge *m)
{
    for (size_t i = 0; i < m->source_count; i++) {
        if (source_head(&m->sources[i]) != NULL || m->sources[i].more)
            return true;
    }
    return false;
}

/* Behind what is shown; and, where nobody has anything before it, behind what all have passed. */
static void put_token(const struct list_merge *m, struct buf *out)
{
    const struct list_item *head = least_head(m);
    const char *known = known_to(m);
    bool passed = known != NULL && strcmp(known, m->last) > 0 &&
                  (head == NULL || strcmp(head->name, known) > 0);
    list_token_put(out, &(struct list_position){.after = m->last, .from = passed ? known : ""});
}

void list_merge_page(struct list_merge *m, struct buf *out)
{
    buf_puts(out, "{\"entries\":[");
    buf_append(out, buf_str(&m->entries), m->entries.len);
    buf_puts(out, "],\"prefixes\":[");
    buf_append(out, buf_str(&m->prefixes), m->prefixes.len);
    buf_puts(out, "],\"next\":\"");
    if (has_more(m))
        put_token(m, out);
    buf_puts(out, m->incomplete ? "\",\"incomplete\":true}" : "\",\"incomplete\":false}");
}
