/* Where the record of a name is: an index of each directory that was asked for.
 *
 * A lookup in a directory of a million names reads one record, not all of them.  An index has 16
 * bytes a name.  All indexes together have at most `limit` names; the one that was used longest ago
 * leaves first.  Of several threads that need one index, one makes it.  Any thread may call. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "vdisc/iso_read.h"

#define PLACES_LIMIT (8u << 20) /* names: 128 MiB */
#define PLACES_SLOTS 1024

struct places_index;

struct places {
    const struct iso_reader *reader;
    size_t limit, used; /* names */
    pthread_mutex_t lock;
    pthread_cond_t made;
    struct places_index *slots[PLACES_SLOTS];
    uint64_t turn;
};

void places_init(struct places *p, const struct iso_reader *reader, size_t limit);
void places_done(struct places *p);

/* The entry `name` of the directory: 0, E_NOT_FOUND, or what the reader says. */
int places_find(struct places *p, const struct iso_found *directory, const char *name,
                struct iso_found *out, struct error *err);
