#include "target/copies/unrecoverable.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/store/quarantine.h"
#include "target/node/target.h"

enum { AGAIN_MS = 2000 };

struct loss {
    uint64_t bucket_id, slices;
    char *name;
};

struct unrecoverable {
    struct target *target;
    unrecoverable_wanted_fn *wanted;
    bool recalled; /* what lies in quarantine was looked at; the one thread's, as the next */
    uint64_t looked_ms;
    atomic_size_t count; /* written under the lock */
    pthread_mutex_t lock;
    struct loss all[UNRECOVERABLE_MOST];
};

struct unrecoverable *unrecoverable_new(struct target *t, unrecoverable_wanted_fn *wanted)
{
    struct unrecoverable *l = xcalloc(1, sizeof *l);
    l->target = t;
    l->wanted = wanted;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void unrecoverable_free(struct unrecoverable *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->count; i++)
        free(l->all[i].name);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Under the lock. */
static struct loss *find(struct unrecoverable *l, uint64_t bucket_id, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->all[i].bucket_id == bucket_id && strcmp(l->all[i].name, name) == 0)
            return &l->all[i];
    }
    return NULL;
}

void unrecoverable_note(struct unrecoverable *l, uint64_t bucket_id, const char *name,
                        uint64_t slices)
{
    pthread_mutex_lock(&l->lock);
    struct loss *known = find(l, bucket_id, name);
    if (known != NULL) {
        known->slices = slices;
    } else if (l->count < UNRECOVERABLE_MOST) {
        log_error("object is lost: no owner has its bytes", lu64("bucket_id", bucket_id),
                  lstr("name", name));
        l->all[l->count++] =
            (struct loss){.bucket_id = bucket_id, .slices = slices, .name = xstrdup(name)};
    }
    pthread_mutex_unlock(&l->lock);
}

void unrecoverable_forget(struct unrecoverable *l, uint64_t bucket_id, const char *name,
                          uint64_t slices)
{
    if (l->count == 0) /* as nearly always, and each write asks */
        return;
    pthread_mutex_lock(&l->lock);
    struct loss *known = find(l, bucket_id, name);
    if (known != NULL && known->slices == slices) {
        free(known->name);
        *known = l->all[--l->count];
    }
    pthread_mutex_unlock(&l->lock);
}

bool unrecoverable_has(struct unrecoverable *l, uint64_t bucket_id, const char *name)
{
    pthread_mutex_lock(&l->lock);
    bool has = find(l, bucket_id, name) != NULL;
    pthread_mutex_unlock(&l->lock);
    return has;
}

size_t unrecoverable_count(struct unrecoverable *l)
{
    return l->count;
}

size_t unrecoverable_of_bucket(struct unrecoverable *l, uint64_t bucket_id, json_t *names)
{
    size_t count = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->count; i++) {
        if (l->all[i].bucket_id == bucket_id && count++ < UNRECOVERABLE_SHOWN)
            json_array_append_new(names, json_string_escaped(l->all[i].name));
    }
    pthread_mutex_unlock(&l->lock);
    return count;
}

/* --- are they still? -------------------------------------------------------------------------- */

static bool is_still_here(struct unrecoverable *l, const struct bucket *b, const struct loss *loss)
{
    struct object_held held;
    struct error err = ERROR_INIT;
    if (object_look(l->target->store, loss->bucket_id, loss->name, &held, &err) != 0) {
        log_debug("lost object not looked at", lstr("name", loss->name), lerr(&err));
        return true;
    }
    if (held.found && (loss->slices != 0 || held.slices != 0))
        return held.visible && held.slices == loss->slices;
    if (held.found)
        return held.visible && held.damaged;
    if (!bucket_has_copies(b))
        return object_seems_lost(l->target->store, loss->bucket_id, loss->name);
    /* Another owner may have what is left of it: the comparison knows. */
    (void)copies_settle(l->target, loss->bucket_id, loss->name, NULL); /* or the next time */
    return true;
}

static bool is_still(struct unrecoverable *l, const struct loss *loss)
{
    struct owners o;
    _cleanup_state_ const struct cluster_state *s = state_current(l->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, loss->bucket_id);
    if (b == NULL || b->props.backend != NULL)
        return false;
    owners_of(s, b, loss->name, &o);
    bool others = o.acting != NULL && strcmp(o.acting->id, l->target->id) != 0;
    return !others && is_still_here(l, b, loss);
}

static void recall(void *ctx, uint64_t bucket_id, const char *name)
{
    struct unrecoverable *l = ctx;
    struct object_held held;
    int code = object_look(l->target->store, bucket_id, name, &held, NULL);
    if (code != 0 || !held.found || held.damaged) /* no good one has come */
        l->wanted(l->target, bucket_id, name);
}

/* Once, when the buckets are known. */
static void recall_all(struct unrecoverable *l)
{
    struct error err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(l->target->state);
    if (l->recalled || s->version == 0)
        return;
    l->recalled = true;
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(l->target->mountpaths);
    for (size_t i = 0; i < set->count; i++) {
        if (quarantine_names(set->all[i], UNRECOVERABLE_MOST, recall, l, &err) != 0)
            log_warn("quarantine not looked through", lerr(&err));
    }
}

/* A copy of the i-th; false: there are no more. */
static bool copy_of(struct unrecoverable *l, size_t i, struct loss *out)
{
    pthread_mutex_lock(&l->lock);
    bool any = i < l->count;
    if (any) {
        *out = l->all[i];
        out->name = xstrdup(out->name);
    }
    pthread_mutex_unlock(&l->lock);
    return any;
}

void unrecoverable_look_again(struct unrecoverable *l)
{
    struct loss loss;
    uint64_t now_ms = clock_ms();
    recall_all(l);
    if (l->count == 0 || now_ms < l->looked_ms + AGAIN_MS)
        return;
    for (size_t i = l->count; i-- > 0;) { /* backwards: the last one takes a free place */
        if (!copy_of(l, i, &loss))
            continue;
        if (!is_still(l, &loss))
            unrecoverable_forget(l, loss.bucket_id, loss.name, loss.slices);
        free(loss.name);
    }
    l->looked_ms = clock_ms();
}
