#include "target/store/name_table.h"

#include <string.h>

#include "common/mem.h"
#include "hrw/hrw.h"

void name_table_init(struct name_table *t, size_t slots)
{
    *t = (struct name_table){.slots = slots, .first = xcalloc(slots, sizeof *t->first)};
}

void name_table_done(struct name_table *t)
{
    free(t->first);
    *t = (struct name_table){0};
}

size_t name_table_slot(const struct name_table *t, uint64_t bucket_id, const char *name)
{
    return hrw_key(bucket_id, name, strlen(name)) % t->slots;
}

static struct name_entry *first_of(struct name_entry *e, uint64_t bucket_id, const char *name)
{
    while (e != NULL && (e->bucket_id != bucket_id || strcmp(e->name, name) != 0))
        e = e->next;
    return e;
}

struct name_entry *name_table_find(const struct name_table *t, uint64_t bucket_id, const char *name)
{
    return first_of(t->first[name_table_slot(t, bucket_id, name)], bucket_id, name);
}

struct name_entry *name_table_same(const struct name_entry *e)
{
    return first_of(e->next, e->bucket_id, e->name);
}

void name_table_add(struct name_table *t, struct name_entry *e, uint64_t bucket_id,
                    const char *name)
{
    size_t slot = name_table_slot(t, bucket_id, name);
    *e = (struct name_entry){
        .next = t->first[slot], .bucket_id = bucket_id, .name = name, .slot = slot};
    t->first[slot] = e;
}

void name_table_remove(struct name_table *t, struct name_entry *e)
{
    struct name_entry **at = &t->first[e->slot];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

struct name_entry *name_table_next(const struct name_table *t, const struct name_entry *e)
{
    if (e != NULL && e->next != NULL)
        return e->next;
    size_t slot = e != NULL ? e->slot + 1 : 0;
    while (slot < t->slots && t->first[slot] == NULL)
        slot++;
    return slot < t->slots ? t->first[slot] : NULL;
}
