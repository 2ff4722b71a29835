#include "mount/vfs/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define NUMBER_BITS 32
#define NUMBER_MASK UINT32_MAX

void handles_init(struct handles *h, struct ledger *ledger)
{
    *h = (struct handles){.ledger = ledger};
    pthread_mutex_init(&h->lock, NULL);
}

void handles_done(struct handles *h)
{
    for (uint64_t id = 0; id < h->room; id++) {
        if (h->by_number[id] != NULL)
            h->by_number[id]->close(h->by_number[id]);
    }
    free(h->by_number);
    pthread_mutex_destroy(&h->lock);
}

uint64_t handles_number(const struct handle *one)
{
    return one->id & NUMBER_MASK;
}

void handles_restore(struct handles *h, struct handle *one, uint64_t number, uint64_t stamp,
                     void (*close)(struct handle *h))
{
    pthread_mutex_lock(&h->lock);
    if (number >= h->room) {
        uint64_t room = h->room > 0 ? h->room : 64;
        while (room <= number)
            room *= 2;
        h->by_number = xrealloc(h->by_number, room * sizeof *h->by_number);
        memset(h->by_number + h->room, 0, (room - h->room) * sizeof *h->by_number);
        h->room = room;
    }
    *one = (struct handle){.id = stamp << NUMBER_BITS | number, .close = close};
    h->by_number[number] = one;
    pthread_mutex_unlock(&h->lock);
}

int handles_add(struct handles *h, struct handle *one, const struct ledger_record *r,
                void (*close)(struct handle *h))
{
    struct ledger_record record = *r;
    record.inode = ledger_stamp(h->ledger);
    uint64_t number = ledger_add(h->ledger, &record);
    if (number == 0)
        return -ENOMEM;
    handles_restore(h, one, number, record.inode, close);
    return 0;
}

struct handle *handles_of(struct handles *h, uint64_t id)
{
    const uint64_t number = id & NUMBER_MASK;
    pthread_mutex_lock(&h->lock);
    struct handle *one = number < h->room ? h->by_number[number] : NULL;
    pthread_mutex_unlock(&h->lock);
    return one != NULL && one->id == id ? one : NULL;
}

struct handle *handles_find(struct handles *h,
                            bool (*is)(const struct handle *one, const void *wanted),
                            const void *wanted)
{
    struct handle *found = NULL;
    pthread_mutex_lock(&h->lock);
    for (uint64_t i = 0; i < h->room && found == NULL; i++) {
        if (h->by_number[i] != NULL && is(h->by_number[i], wanted))
            found = h->by_number[i];
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

void handles_remove(struct handles *h, struct handle *one)
{
    const uint64_t number = handles_number(one);
    pthread_mutex_lock(&h->lock);
    h->by_number[number] = NULL;
    pthread_mutex_unlock(&h->lock);
    ledger_remove(h->ledger, number);
}
