#include "target/ring/producers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct entry {
    uint64_t producer, sequence, used;
    struct push_done done;
};

struct producers {
    uint64_t clock;
    struct entry rows[PRODUCERS_ROWS][PRODUCERS_WAYS];
};

struct producers *producers_new(void)
{
    return xcalloc(1, sizeof(struct producers));
}

void producers_free(struct producers *p)
{
    free(p);
}

static const struct entry *find(const struct producers *p, uint64_t producer)
{
    const struct entry *row = p->rows[producer % PRODUCERS_ROWS];
    for (unsigned i = 0; i < PRODUCERS_WAYS; i++) {
        if (row[i].producer == producer)
            return &row[i];
    }
    return NULL;
}

bool producers_find(const struct producers *p, uint64_t producer, uint64_t sequence,
                    struct push_done *out)
{
    const struct entry *e = producer != 0 ? find(p, producer) : NULL;
    if (e == NULL || e->sequence != sequence)
        return false;
    *out = e->done;
    return true;
}

/* The producer's entry, or the one that was used longest ago. */
static struct entry *place(struct producers *p, uint64_t producer)
{
    struct entry *row = p->rows[producer % PRODUCERS_ROWS], *best = &row[0];
    for (unsigned i = 0; i < PRODUCERS_WAYS; i++) {
        if (row[i].producer == producer)
            return &row[i];
        if (row[i].used < best->used)
            best = &row[i];
    }
    return best;
}

void producers_note(struct producers *p, uint64_t producer, uint64_t sequence,
                    const struct push_done *done)
{
    if (producer == 0)
        return;
    *place(p, producer) = (struct entry){
        .producer = producer, .sequence = sequence, .used = ++p->clock, .done = *done};
}

/* Lanes are read in any order: of one lane the ordinals say which push is newer, of two the numbers
 * of the pushes. */
static bool is_older(const struct entry *e, uint64_t sequence, const char *lane, uint64_t ordinal)
{
    return strcmp(e->done.lane, lane) == 0 ? ordinal < e->done.first : sequence < e->sequence;
}

void producers_see(struct producers *p, uint64_t producer, uint64_t sequence, const char *lane,
                   uint64_t ordinal)
{
    struct push_done done;
    const struct entry *e = find(p, producer);
    if (producer == 0 || (e != NULL && is_older(e, sequence, lane, ordinal)))
        return;
    if (producers_find(p, producer, sequence, &done) && strcmp(done.lane, lane) == 0 &&
        done.first + done.count == ordinal) {
        done.count++;
    } else {
        done = (struct push_done){.first = ordinal, .count = 1};
        snprintf(done.lane, sizeof done.lane, "%s", lane);
    }
    producers_note(p, producer, sequence, &done);
}
