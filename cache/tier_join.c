/* Entities of several pieces become one file; of tier.h.
 *
 * The filler does it in steps of a piece, between what comes from the store.  The pieces stay until
 * the whole has its name.  A whole that the scan has found is compared with its sums by the same
 * steps.  What fails is given up: readers have the pieces, or the store.  So is all while the disk
 * fails.
 *
 * A whole that a reader could not read is suspect: it may be one bad sector of many gigabytes, or
 * nothing.  Nobody reads it until it was compared.  If that fails as well it leaves. */
#include <errno.h>
#include <stdlib.h>

#include "cache/tier_parts.h"
#include "common/clock.h"
#include "common/mem.h"

#define JOINS_MOST 64 /* that wait */
#define JOIN_SHARE 4  /* others leave for a whole of at most this part of what is there */
#define JOIN_BYTES (64ull << 30) /* a whole has at most so much: its sums are in memory meanwhile */
#define COMPARE_BYTES (128u << 10)

/* ---- any thread ---- */

static struct join *join_new(const struct cache_entity *e)
{
    struct join *j = xcalloc(1, sizeof *j);
    j->entity =
        (struct cache_entity){.name = xstrdup(e->name), .set = xstrdup(e->set), .size = e->size};
    j->whole = piece_whole(&j->entity);
    return j;
}

static void join_free(struct join *j)
{
    files_join_abandon(j->file);
    free((char *)j->entity.name);
    free((char *)j->entity.set);
    free(j);
}

/* Where it waits, or another may be added.  Under the lock, as the next. */
static struct join **place_of(struct tier *t, const struct piece_id *id)
{
    struct join **at = &t->joins;
    while (*at != NULL && !piece_id_equal(&(*at)->whole.id, id))
        at = &(*at)->next;
    return at;
}

/* NULL: it does not wait. */
static struct join *join_add(struct tier *t, const struct cache_entity *e)
{
    const struct piece whole = piece_whole(e);
    struct join **at = place_of(t, &whole.id);
    if (*at != NULL || t->join_count == JOINS_MOST || e->size > JOIN_BYTES || !t->scanned ||
        t->health.state != HEALTH_GOOD || policy_is_proved(t->policy, &whole.id, clock_ms()))
        return *at;
    *at = join_new(e);
    t->join_count++;
    tier_show(t);
    pthread_cond_signal(&t->work);
    return *at;
}

void tier_join(struct tier *t, const struct cache_entity *e)
{
    pthread_mutex_lock(&t->lock);
    join_add(t, e);
    pthread_mutex_unlock(&t->lock);
}

void tier_suspect(struct tier *t, const struct cache_entity *e)
{
    const struct piece whole = piece_whole(e);
    pthread_mutex_lock(&t->lock);
    policy_doubt(t->policy, &whole.id);
    struct join *j = join_add(t, e);
    if (j != NULL)
        j->suspect = true;
    pthread_mutex_unlock(&t->lock);
    if (j == NULL)
        tier_remove(t, &whole); /* nobody will compare it */
}

bool tier_is_suspect(struct tier *t, const struct piece_id *whole)
{
    pthread_mutex_lock(&t->lock);
    const struct join *j = *place_of(t, whole);
    bool suspect = j != NULL && j->suspect;
    pthread_mutex_unlock(&t->lock);
    return suspect;
}

/* ---- the filler ---- */

static void promise(struct tier *t, struct join *j, uint64_t bytes)
{
    t->promised += bytes;
    t->promised -= j->promised;
    j->promised = bytes;
}

static int join_room(struct tier *t, size_t bytes)
{
    t->joining = bytes;
    if (tier_has_room(t, bytes))
        return 0;
    pthread_mutex_lock(&t->lock);
    const bool may_evict = bytes <= policy_bytes(t->policy) / JOIN_SHARE;
    pthread_mutex_unlock(&t->lock);
    return may_evict ? tier_make_room(t, bytes) : -ENOSPC;
}

static void hold_pieces(struct tier *t, struct join *j, int by)
{
    t->options.source.hold(t->options.source.context, &j->entity, by);
    j->holds = by > 0;
}

static void join_end(struct tier *t, struct join *j)
{
    promise(t, j, 0);
    if (j->holds)
        hold_pieces(t, j, -1);
    t->joining = 0;
    pthread_mutex_lock(&t->lock);
    t->joins = j->next;
    t->join_count--;
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    join_free(j);
}

static int join_begin(struct tier *t, struct join *j)
{
    const size_t bytes = j->whole.size + piece_foot_size(&j->whole);
    j->begun = true;
    if (tier_knows(t, &j->whole.id))
        return 0; /* it is there, to be compared */
    if (tier_is_suspect(t, &j->whole.id))
        return -ENOENT;   /* it has left */
    hold_pieces(t, j, 1); /* so none of them makes room for it */
    int rc = join_room(t, bytes);
    if (rc != 0)
        return rc;
    j->file = files_join_begin(t->files, &j->whole);
    promise(t, j, bytes);
    return 0;
}

static int join_take(void *context, const void *data, size_t size)
{
    struct join *j = context;
    return files_join_write(j->file, data, size);
}

static int join_piece(struct tier *t, struct join *j)
{
    const struct tier_source *source = &t->options.source;
    const size_t size = piece_of(&j->entity, j->index).size;
    int64_t n = source->read(source->context, &j->entity, j->index, join_take, j);
    promise(t, j, j->promised > size ? j->promised - size : 0);
    j->index++;
    return n < 0 ? (int)n : (size_t)n == size ? 0 : -ENOENT;
}

/* A piece of the whole that is there, and of nothing else. */
static int compare_piece(struct tier *t, const struct join *j)
{
    struct files_piece found;
    char data[COMPARE_BYTES];
    const struct piece p = piece_of(&j->entity, j->index);
    int rc = tier_find_whole(t, &p, &found);
    if (rc != 0)
        return rc;
    for (size_t at = 0; rc == 0 && at < p.size; at += sizeof data)
        rc = tier_read(t, &found, &p, at, p.size - at < sizeof data ? p.size - at : sizeof data,
                       data);
    files_found_close(&found);
    return rc;
}

/* What cannot be read twice leaves. */
static int compare_next(struct tier *t, struct join *j)
{
    const bool suspect = tier_is_suspect(t, &j->whole.id);
    const int rc = compare_piece(t, j);
    j->index += rc == 0;
    if (!health_is_of_disk(rc))
        return rc == 0 ? 0 : -ENOENT; /* the read has noted it */
    if (suspect && tier_is_good(t))
        tier_remove(t, &j->whole);
    return suspect ? -ENOENT : 0;
}

static void prove(struct tier *t, const struct join *j)
{
    pthread_mutex_lock(&t->lock);
    policy_prove(t->policy, &j->whole.id, clock_ms());
    pthread_mutex_unlock(&t->lock);
}

static int join_publish(struct tier *t, struct join *j)
{
    size_t bytes;
    int rc = files_join_publish(steal(j->file), &bytes);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&t->lock);
    policy_join(t->policy, &j->whole.id, j->whole.set, bytes, clock_ms());
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    prove(t, j);
    metric_add(t->metrics.joined, 1);
    hold_pieces(t, j, -1);
    t->options.source.drop(t->options.source.context, &j->entity);
    return 0;
}

static struct join *join_first(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    struct join *j = t->joins;
    pthread_mutex_unlock(&t->lock);
    return j;
}

/* 0: it goes on, or has ended.  -ENOENT: it is given up, and nothing is to be noted. */
static int step(struct tier *t, struct join *j, bool *ended)
{
    *ended = false;
    if (!tier_is_good(t))
        return -ENOENT;
    if (!j->begun)
        return join_begin(t, j);
    if (j->index < piece_count(j->entity.size))
        return j->file != NULL ? join_piece(t, j) : compare_next(t, j);
    *ended = true;
    if (j->file != NULL)
        return join_publish(t, j);
    files_prove_whole(t->files, &j->whole);
    prove(t, j);
    return 0;
}

void tier_join_step(struct tier *t)
{
    bool ended;
    struct join *j = join_first(t);
    int rc = step(t, j, &ended);
    if (rc != 0 && rc != -ENOENT)
        tier_note(t, "join", rc);
    if (rc != 0 || ended)
        join_end(t, j);
}

void tier_joins_drop(struct tier *t)
{
    for (struct join *j; (j = join_first(t)) != NULL;)
        join_end(t, j);
}
