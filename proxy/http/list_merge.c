#include "proxy/http/list_merge.h"

#include <string.h>

#include "common/mem.h"
#include "proxy/http/list_page.h"

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

/* The next item of all; NULL where there is none. */
static const struct list_item *least_head(const struct list_merge *m)
{
    const struct list_item *least = NULL;
    for (size_t i = 0; i < m->source_count; i++) {
        const struct list_item *head = source_head(&m->sources[i]);
        if (head == NULL)
            continue;
        int order = least != NULL ? strcmp(head->name, least->name) : -1;
        if (order < 0 || (order == 0 && item_wins(head, least)))
            least = head;
    }
    return least;
}

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

static void take(struct list_merge *m, const struct list_item *item)
{
    if (!item->deleted) {
        put_item(item->is_prefix ? &m->prefixes : &m->entries, item);
        m->taken++;
    }
    replace(&m->last, item->name);
    for (size_t i = 0; i < m->source_count; i++)
        skip_to(&m->sources[i], m->last);
}

static void run(struct list_merge *m)
{
    const struct list_item *item;
    while (m->taken < m->limit && (item = least_head(m)) != NULL) {
        const char *known = known_to(m);
        if (known != NULL && strcmp(item->name, known) > 0)
            break;
        take(m, item);
    }
}

/* Each holds about its share of the names; a quarter and a few more make a second question rare. */
static size_t share(const struct list_merge *m)
{
    size_t left = m->limit - m->taken;
    size_t part = left / m->source_count + left / (4 * m->source_count) + 16;
    return part < left + 16 ? part : left + 16;
}

bool list_merge_wants(const struct list_merge *m, size_t i, struct list_question *question)
{
    const struct source *s = &m->sources[i];
    if (m->taken == m->limit || !source_waits(s) || s->rounds == LIST_ROUNDS_MAX)
        return false;
    *question = (struct list_question){
        .position = {.after = s->after, .from = s->from},
        .limit = share(m) < LIST_LIMIT_MAX ? share(m) : LIST_LIMIT_MAX,
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
