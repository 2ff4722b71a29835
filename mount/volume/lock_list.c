#include "mount/volume/lock_list.h"

#include <string.h>

#include "mount/meta/meta.h"

/* Five numbers of 64 bits; the last one has the process, the type and the family. */
enum { SESSION = 0, OWNER = 8, START = 16, END = 24, REST = 32 };
enum { TYPE_SHIFT = 32, FLOCK_SHIFT = 40 };

bool lock_list_decode(struct arena *arena, const uint8_t *data, size_t size, struct lock_list *out)
{
    out->locks = arena_alloc(arena, 2 * (LOCKS_MAX + 1) * sizeof *out->locks);
    out->count = 0;
    if (size % LOCK_BYTES != 0 || size / LOCK_BYTES > LOCKS_MAX)
        return false;
    for (; out->count < size / LOCK_BYTES; out->count++) {
        const struct meta_value one = {.data = data + out->count * LOCK_BYTES, .size = LOCK_BYTES};
        const uint64_t rest = (uint64_t)meta_field(&one, REST);
        struct held_lock *held = &out->locks[out->count];
        *held = (struct held_lock){
            .session = (uint64_t)meta_field(&one, SESSION),
            .lock = {.type = (enum volume_lock_type)(rest >> TYPE_SHIFT & 0xff),
                     .flock = (rest >> FLOCK_SHIFT & 1) != 0,
                     .pid = (uint32_t)rest,
                     .owner = (uint64_t)meta_field(&one, OWNER),
                     .start = meta_field(&one, START),
                     .end = meta_field(&one, END)},
        };
        if ((held->lock.type != VOLUME_LOCK_SHARED && held->lock.type != VOLUME_LOCK_EXCLUSIVE) ||
            held->lock.start < 0 || held->lock.end < held->lock.start)
            return false;
    }
    return true;
}

const uint8_t *lock_list_encode(struct arena *arena, const struct lock_list *list)
{
    uint8_t *bytes = arena_bytes(arena, list->count * LOCK_BYTES + 1);
    for (size_t i = 0; i < list->count; i++) {
        const struct volume_lock *l = &list->locks[i].lock;
        uint8_t *at = bytes + i * LOCK_BYTES;
        const uint64_t rest =
            (uint64_t)l->pid | (uint64_t)l->type << TYPE_SHIFT | (uint64_t)l->flock << FLOCK_SHIFT;
        meta_field_put(at, SESSION, (int64_t)list->locks[i].session);
        meta_field_put(at, OWNER, (int64_t)l->owner);
        meta_field_put(at, START, l->start);
        meta_field_put(at, END, l->end);
        meta_field_put(at, REST, (int64_t)rest);
    }
    return bytes;
}

static bool same_holder(const struct held_lock *a, const struct held_lock *b)
{
    return a->lock.flock == b->lock.flock && a->session == b->session &&
           a->lock.owner == b->lock.owner;
}

static bool overlap(const struct volume_lock *a, const struct volume_lock *b)
{
    return a->start <= b->end && b->start <= a->end;
}

const struct held_lock *lock_list_conflict(const struct lock_list *list,
                                           const struct held_lock *wanted)
{
    if (wanted->lock.type == VOLUME_LOCK_NONE)
        return NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct held_lock *held = &list->locks[i];
        if (held->lock.flock == wanted->lock.flock && !same_holder(held, wanted) &&
            overlap(&held->lock, &wanted->lock) &&
            (held->lock.type == VOLUME_LOCK_EXCLUSIVE ||
             wanted->lock.type == VOLUME_LOCK_EXCLUSIVE))
            return held;
    }
    return NULL;
}

static void add(struct lock_list *to, const struct held_lock *held, int64_t start, int64_t end)
{
    struct held_lock *one = &to->locks[to->count++];
    *one = *held;
    one->lock.start = start;
    one->lock.end = end;
}

/* What is left of `held` before and behind `cut`. */
static void add_rest(struct lock_list *to, const struct held_lock *held,
                     const struct volume_lock *cut)
{
    const struct volume_lock *l = &held->lock;
    if (!overlap(l, cut)) {
        add(to, held, l->start, l->end);
        return;
    }
    if (l->start < cut->start)
        add(to, held, l->start, cut->start - 1);
    if (l->end > cut->end)
        add(to, held, cut->end + 1, l->end);
}

/* Locks of one holder and type that touch become one. */
static void merge(struct lock_list *list, struct held_lock *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct held_lock held = list->locks[i];
        const struct volume_lock *l = &held.lock;
        const bool touches = (l->end != INT64_MAX && l->end + 1 == wanted->lock.start) ||
                             (wanted->lock.end != INT64_MAX && wanted->lock.end + 1 == l->start);
        if (touches && same_holder(&held, wanted) && l->type == wanted->lock.type) {
            wanted->lock.start = l->start < wanted->lock.start ? l->start : wanted->lock.start;
            wanted->lock.end = l->end > wanted->lock.end ? l->end : wanted->lock.end;
        } else {
            list->locks[kept++] = held;
        }
    }
    list->count = kept;
}

bool lock_list_set(struct lock_list *list, const struct held_lock *wanted)
{
    struct held_lock before[LOCKS_MAX];
    const size_t count = list->count;
    struct held_lock set = *wanted;
    bool changed = wanted->lock.type != VOLUME_LOCK_NONE;
    memcpy(before, list->locks, count * sizeof *before);
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (same_holder(&before[i], wanted)) {
            changed |= overlap(&before[i].lock, &wanted->lock);
            add_rest(list, &before[i], &wanted->lock);
        } else {
            add(list, &before[i], before[i].lock.start, before[i].lock.end);
        }
    }
    if (wanted->lock.type != VOLUME_LOCK_NONE) {
        merge(list, &set);
        add(list, &set, set.lock.start, set.lock.end);
    }
    return changed;
}

void lock_list_drop_session(struct lock_list *list, uint64_t session)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->locks[i].session != session)
            list->locks[kept++] = list->locks[i];
    }
    list->count = kept;
}

bool lock_list_has_session(const struct lock_list *list, uint64_t session)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->locks[i].session == session)
            return true;
    }
    return false;
}
