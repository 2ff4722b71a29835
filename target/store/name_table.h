/* A hash table by (bucket id, name).
 *
 * Its user embeds a struct name_entry as the first member of its own struct, so that a pointer to
 * one is a pointer to the other.  The user owns the entries and the text of their names; the table
 * links them.  Several entries may have the same name: the one added last is found first.
 *
 * The table has no lock and never grows.  Calls for names of one slot must come one after another;
 * a user with many threads has one lock for all slots, or one for some (name_table_slot()). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_entry {
    struct name_entry *next; /* in its slot */
    uint64_t bucket_id;
    const char *name;
    size_t slot;
};

struct name_table {
    size_t slots;
    struct name_entry **first; /* by slot */
};

void name_table_init(struct name_table *t, size_t slots);
void name_table_done(struct name_table *t); /* the entries are left alone */

size_t name_table_slot(const struct name_table *t, uint64_t bucket_id, const char *name);

/* NULL: the table has no entry of this name. */
struct name_entry *name_table_find(const struct name_table *t, uint64_t bucket_id,
                                   const char *name);
/* The next entry of the same name; NULL: there is none. */
struct name_entry *name_table_same(const struct name_entry *e);
/* Sets all of *e.  `name` must live as long as the entry is in the table. */
void name_table_add(struct name_table *t, struct name_entry *e, uint64_t bucket_id,
                    const char *name);
/* The entry must be in the table. */
void name_table_remove(struct name_table *t, struct name_entry *e);

/* All entries, in no order: the one behind *e; e NULL: the first; NULL at the end. */
struct name_entry *name_table_next(const struct name_table *t, const struct name_entry *e);
