#include "mount/vfs/room.h"

#include <errno.h>

#include "common/clock.h"

void room_init(struct room *r, int (*ask)(void *context, struct tree_room *room), void *context)
{
    *r = (struct room){.ask = ask, .context = context};
    pthread_mutex_init(&r->lock, NULL);
}

void room_done(struct room *r)
{
    pthread_mutex_destroy(&r->lock);
}

/* What the answer changes; the lock is held. */
static void room_told(struct room *r, int rc, const struct tree_room *told)
{
    r->is_asked = false;
    if (rc == -EINTR) /* the next call asks */
        return;
    r->next_ms = clock_ms() + (rc == 0 ? ROOM_KEEP_MS : ROOM_FAILED_MS);
    r->error = rc;
    if (rc == 0) {
        r->is_known = true;
        r->last = *told;
    }
}

int room_get(struct room *r, struct tree_room *out)
{
    int rc = 0;
    struct tree_room told;
    pthread_mutex_lock(&r->lock);
    if (!r->is_asked && clock_ms() >= r->next_ms) {
        r->is_asked = true;
        pthread_mutex_unlock(&r->lock);
        rc = r->ask(r->context, &told);
        pthread_mutex_lock(&r->lock);
        room_told(r, rc, &told);
    }
    if (rc != -EINTR)
        rc = r->is_known ? 0 : r->error;
    *out = r->last;
    pthread_mutex_unlock(&r->lock);
    return rc;
}
