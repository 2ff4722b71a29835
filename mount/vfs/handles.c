#include "mount/vfs/handles.h"

#include <stddef.h>

void handles_init(struct handles *h)
{
    pthread_mutex_init(&h->lock, NULL);
    h->first = NULL;
}

void handles_done(struct handles *h)
{
    for (struct handle *one = h->first, *next; one != NULL; one = next) {
        next = one->next;
        one->close(one);
    }
    pthread_mutex_destroy(&h->lock);
}

void handles_add(struct handles *h, struct handle *one, void (*close)(struct handle *h))
{
    pthread_mutex_lock(&h->lock);
    *one = (struct handle){.next = h->first, .close = close};
    if (h->first != NULL)
        h->first->previous = one;
    h->first = one;
    pthread_mutex_unlock(&h->lock);
}

void handles_remove(struct handles *h, struct handle *one)
{
    pthread_mutex_lock(&h->lock);
    if (one->previous != NULL)
        one->previous->next = one->next;
    else
        h->first = one->next;
    if (one->next != NULL)
        one->next->previous = one->previous;
    pthread_mutex_unlock(&h->lock);
}
