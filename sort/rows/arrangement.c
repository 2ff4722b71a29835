/* The positions that are left after r rounds are those that end a group of 2^r positions, and the
 * very last one.  So a position's part in a round follows from its number alone: no lists. */
#include "sort/rows/arrangement.h"

#include <assert.h>
#include "common/mem.h"

struct ticket {
    uint64_t hash;
    unsigned target;
};

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static int compare_tickets(const void *left, const void *right)
{
    const struct ticket *a = left;
    const struct ticket *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->target < b->target ? -1 : a->target > b->target;
}

static unsigned count_rounds(unsigned count)
{
    unsigned rounds = 0;
    while ((1U << rounds) < count)
        rounds++;
    return rounds;
}

struct arrangement *arrangement_new(unsigned participants, const bool *absent, uint64_t salt)
{
    assert(participants > 0 && participants <= ARRANGEMENT_MAX);
    struct arrangement *a = xmalloc(sizeof *a);
    *a = (struct arrangement){
        .order = xcalloc(participants, sizeof *a->order),
        .participants = participants,
        .position = xcalloc(participants, sizeof *a->position),
    };
    _cleanup_free_ struct ticket *tickets = xcalloc(participants, sizeof *tickets);
    for (unsigned i = 0; i < participants; i++) {
        a->position[i] = ARRANGEMENT_MAX;
        if (absent == NULL || !absent[i])
            tickets[a->count++] = (struct ticket){.hash = mix(salt + mix(i + 1)), .target = i};
    }
    assert(a->count > 0);
    a->rounds = count_rounds(a->count);
    qsort(tickets, a->count, sizeof *tickets, compare_tickets);
    for (unsigned i = 0; i < a->count; i++) {
        a->order[i] = tickets[i].target;
        a->position[tickets[i].target] = i;
    }
    return a;
}

bool arrangement_has(const struct arrangement *a, unsigned target)
{
    return target < a->participants && a->position[target] != ARRANGEMENT_MAX;
}

void arrangement_free(struct arrangement *a)
{
    if (a == NULL)
        return;
    free(a->order);
    free(a->position);
    free(a);
}

unsigned arrangement_last(const struct arrangement *a)
{
    return a->order[a->count - 1];
}

/* The position that stands for group `group` of 2^round positions. */
static unsigned group_end(const struct arrangement *a, unsigned round, unsigned group)
{
    unsigned end = ((group + 1) << round) - 1;
    return end < a->count ? end : a->count - 1;
}

struct arrangement_step arrangement_step(const struct arrangement *a, unsigned self, unsigned round)
{
    assert(arrangement_has(a, self) && round < a->rounds);
    unsigned position = a->position[self];
    unsigned group = position >> round;
    if (group_end(a, round, group) != position)
        return (struct arrangement_step){.move = ARRANGEMENT_GONE};
    unsigned groups = ((a->count - 1) >> round) + 1;
    if (group % 2 == 1)
        return (struct arrangement_step){
            .move = ARRANGEMENT_RECEIVE,
            .peer = a->order[group_end(a, round, group - 1)],
        };
    if (group + 1 < groups)
        return (struct arrangement_step){
            .move = ARRANGEMENT_SEND,
            .peer = a->order[group_end(a, round, group + 1)],
        };
    return (struct arrangement_step){.move = ARRANGEMENT_PASS};
}
