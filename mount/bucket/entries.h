/* A list's entries become those of a directory: pure.
 *
 * If the bucket has `a` and `a/b`, the directory a is shown and the object a is not.  A list has
 * `a`, `a-x`, `a.txt` and `a/` in this order, so an object is held back until no directory of its
 * name can follow.  All objects that are held back are prefixes of one another: there are at most
 * 255, however long the list is.
 *
 *     for each entry of the list:  entries_push(), then entries_pop() until it has none
 *     at the end:                  entries_end(), then entries_pop() until it has none */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/dfc.h"

struct entry {
    char *name; /* one component */
    bool is_directory;
    bool is_known; /* of a file: what follows is */
    uint64_t size;
    int64_t modified_ms;
    char *version;
};

void entry_done(struct entry *e);

struct entry_list {
    struct entry *items;
    size_t count, room;
};

struct entries {
    struct entry_list held; /* each is a prefix of the next */
    struct entry_list out;
    size_t out_at;
    uint64_t hidden; /* names that are not shown */
};

void entries_done(struct entries *d);
void entries_push(struct entries *d, const char *prefix, const struct dfc_entry *e);
void entries_end(struct entries *d);
/* The next one, the caller's to end; false: none now. */
bool entries_pop(struct entries *d, struct entry *out);
