#include "mount/bucket/entries.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/bucket/names.h"

void entry_done(struct entry *e)
{
    free(e->name);
    free(e->version);
    *e = (struct entry){0};
}

static void list_add(struct entry_list *l, struct entry e)
{
    if (l->count == l->room) {
        l->room = l->room > 0 ? 2 * l->room : 16;
        l->items = xrealloc(l->items, l->room * sizeof *l->items);
    }
    l->items[l->count++] = e;
}

void entries_done(struct entries *d)
{
    for (size_t i = 0; i < d->held.count; i++)
        entry_done(&d->held.items[i]);
    for (size_t i = d->out_at; i < d->out.count; i++)
        entry_done(&d->out.items[i]);
    free(d->held.items);
    free(d->out.items);
    *d = (struct entries){0};
}

/* May a directory of this name still follow `text`?  The list is in bytewise order. */
static bool is_undecided(const struct entry *held, const char *text)
{
    size_t len = strlen(held->name);
    return strncmp(text, held->name, len) == 0 && text[len] != '\0' && text[len] < '/' &&
           text[len] > 0;
}

static bool is_of_name(const struct entry *held, const struct name_part *part)
{
    return strlen(held->name) == part->len && memcmp(held->name, part->text, part->len) == 0;
}

static void decide(struct entries *d, const struct name_part *part)
{
    while (d->held.count > 0) {
        struct entry *top = &d->held.items[d->held.count - 1];
        if (is_undecided(top, part->text))
            return;
        if (part->kind == NAME_DIRECTORY && is_of_name(top, part)) {
            d->hidden++;
            entry_done(top);
        } else {
            list_add(&d->out, *top);
        }
        d->held.count--;
    }
}

void entries_push(struct entries *d, const char *prefix, const struct dfc_entry *e)
{
    struct name_part part = name_in(prefix, e->name);
    if (part.kind == NAME_ITSELF)
        return;
    if (part.kind == NAME_HIDDEN) {
        d->hidden++;
        return;
    }
    decide(d, &part);
    struct entry entry = {
        .name = xstrndup(part.text, part.len),
        .is_directory = part.kind == NAME_DIRECTORY,
        .is_known = !e->cold && e->version[0] != '\0',
        .size = e->size,
        .modified_ms = e->modified_ms,
        .version = xstrdup(e->version),
    };
    list_add(entry.is_directory ? &d->out : &d->held, entry);
}

void entries_end(struct entries *d)
{
    while (d->held.count > 0)
        list_add(&d->out, d->held.items[--d->held.count]);
}

bool entries_pop(struct entries *d, struct entry *out)
{
    if (d->out_at == d->out.count) {
        d->out_at = d->out.count = 0;
        return false;
    }
    *out = d->out.items[d->out_at++];
    return true;
}
