#include "proxy/primary/read_choice.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "hrw/hrw.h"

enum { SECONDS_MOST = 31 };

static atomic_uint *reads_of(struct read_choice *c, const struct node *n)
{
    return &c->reads[hrw_key(0, n->id, strlen(n->id)) % READ_CHOICE_SLOTS];
}

/* One of the threads that see a new second halves all. */
static void forget(struct read_choice *c, uint64_t second)
{
    unsigned long long before = atomic_load(&c->second);
    if (second <= before || !atomic_compare_exchange_strong(&c->second, &before, second))
        return;
    uint64_t passed = second - before < SECONDS_MOST ? second - before : SECONDS_MOST;
    for (size_t i = 0; i < READ_CHOICE_SLOTS; i++)
        atomic_store(&c->reads[i], atomic_load(&c->reads[i]) >> passed);
}

const struct node *read_choice_pick(struct read_choice *c, const struct node *const *readers,
                                    size_t count, uint64_t spread, uint64_t now_ms)
{
    forget(c, now_ms / 1000);
    size_t least = 0;
    for (size_t i = 1; i < count; i++) {
        if (atomic_load(reads_of(c, readers[i])) < atomic_load(reads_of(c, readers[least])))
            least = i;
    }
    uint64_t acting = atomic_load(reads_of(c, readers[0]));
    uint64_t fewest = atomic_load(reads_of(c, readers[least]));
    size_t picked = acting > fewest + fewest * spread / 100 + spread ? least : 0;
    atomic_fetch_add(reads_of(c, readers[picked]), 1);
    return readers[picked];
}
