/* What comes from the store is written; of tier.h.
 *
 *     tier_fill_begin -> memory, if the piece is wanted          (a fetcher)
 *     tier_fill_end   -> the queue
 *     tier_filler     -> room on the disk, write, publish        (the filler)
 *
 * A piece comes in parts, in any order, mixed with those of others: until it is whole it is a
 * partial, with a file in new/.  Partials that were not added to for longest are given up. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cache/tier_parts.h"
#include "common/clock.h"
#include "common/mem.h"

#define PARTIALS_SHARE 4  /* partials take at most this part of the limit */
#define PARTIALS_MS 60000 /* nothing came for so long: it is given up */

/* ---- partials; under the lock ---- */

static void partial_list(struct tier *t, struct partial *p)
{
    p->newer = NULL;
    p->older = t->newest;
    p->used_ms = clock_ms();
    *(t->newest != NULL ? &t->newest->newer : &t->oldest) = p;
    t->newest = p;
}

static void partial_unlist(struct tier *t, struct partial *p)
{
    *(p->newer != NULL ? &p->newer->older : &t->newest) = p->older;
    *(p->older != NULL ? &p->older->newer : &t->oldest) = p->newer;
}

static struct partial *partial_find(struct tier *t, const struct piece_id *id)
{
    struct partial *p = t->newest;
    while (p != NULL && !piece_id_equal(&p->id, id))
        p = p->older;
    return p;
}

static struct partial *partial_new(struct tier *t, const struct piece *piece)
{
    struct partial *p = xcalloc(1, sizeof *p);
    p->id = piece->id;
    p->size = piece->size;
    t->partial_bytes += p->size;
    partial_list(t, p);
    return p;
}

/* The writer is the caller's. */
static struct files_writer *partial_free(struct tier *t, struct partial *p)
{
    struct files_writer *writer = p->writer;
    assert(p->fills == 0);
    partial_unlist(t, p);
    t->partial_bytes -= p->size;
    t->promised -= p->promised;
    free(p);
    return writer;
}

/* ---- fetchers ---- */

/* New pieces take half of the memory: those that have begun are to end.  There are as many partials
 * as their share of the limit allows, if none of them can be given up. */
static bool has_memory(const struct tier *t, const struct partial *p, const struct piece *piece,
                       size_t size)
{
    const uint64_t memory = t->options.fill_bytes;
    if (t->memory == 0)
        return true;
    if (p != NULL)
        return t->memory + size <= memory;
    return t->memory + size <= memory / 2 &&
           (t->partial_bytes + piece->size <= t->options.limit_bytes / PARTIALS_SHARE ||
            t->oldest->fills == 0);
}

/* Why these bytes are not wanted: a counter, or NULL where it is nothing to count. */
static bool is_wanted(struct tier *t, const struct piece *piece, size_t size, bool insist,
                      metric_t **why)
{
    const struct partial *p = partial_find(t, &piece->id);
    *why = NULL;
    if (policy_has(t->policy, &piece->id))
        return false;
    *why = t->metrics.failed;
    if ((p != NULL && p->failed) || t->health.state != HEALTH_GOOD)
        return false;
    *why = t->metrics.refused;
    if (p == NULL && !policy_admits(t->policy, &piece->id, size) && !insist)
        return false;
    *why = t->metrics.no_memory;
    return insist || has_memory(t, p, piece, size);
}

static struct fill *fill_new(const struct piece *piece, size_t offset, size_t size)
{
    void *data = malloc(size);
    if (data == NULL)
        return NULL;
    struct fill *f = xcalloc(1, sizeof *f);
    *f = (struct fill){
        .is = {.data = data, .size = size},
        .entity = {.name = xstrdup(piece->entity->name), .set = "", .size = piece->entity->size},
        .piece = *piece,
        .offset = offset,
    };
    f->piece.entity = &f->entity;
    return f;
}

static void fill_free(struct fill *f)
{
    free(f->is.data);
    free((char *)f->entity.name);
    free(f);
}

struct tier_fill *tier_fill_begin(struct tier *t, const struct piece *piece, size_t offset,
                                  size_t size, bool insist)
{
    metric_t *why;
    struct fill *f = NULL;
    pthread_mutex_lock(&t->lock);
    bool wanted = is_wanted(t, piece, size, insist, &why);
    while (wanted && !has_memory(t, partial_find(t, &piece->id), piece, size))
        pthread_cond_wait(&t->news, &t->lock);
    if (wanted)
        f = fill_new(piece, offset, size);
    if (f != NULL) {
        f->partial = partial_find(t, &piece->id);
        if (f->partial == NULL)
            f->partial = partial_new(t, piece);
        f->partial->fills++;
        t->memory += size;
    }
    pthread_mutex_unlock(&t->lock);
    if (f == NULL && why != NULL)
        metric_add(why, size);
    return f != NULL ? &f->is : NULL;
}

/* Under the lock. */
static void fill_ended(struct tier *t, struct fill *f)
{
    f->partial->fills--;
    t->memory -= f->is.size;
    pthread_cond_broadcast(&t->news);
}

void tier_fill_end(struct tier *t, struct tier_fill *fill, bool good)
{
    struct fill *f = (struct fill *)fill;
    pthread_mutex_lock(&t->lock);
    if (good) {
        *t->last = f;
        t->last = &f->next;
        t->handed++;
        pthread_cond_signal(&t->work);
    } else {
        fill_ended(t, f);
    }
    pthread_mutex_unlock(&t->lock);
    if (!good)
        fill_free(f);
}

void tier_flush(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    const uint64_t handed = t->handed;
    while (t->ended < handed)
        pthread_cond_wait(&t->news, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the filler: room ---- */

/* False: there is nothing left that could leave. */
static bool evict_one(struct tier *t)
{
    struct policy_piece victim;
    pthread_mutex_lock(&t->lock);
    bool found = policy_evict(t->policy, clock_ms(), &victim);
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    if (!found)
        return false;
    metric_add(t->metrics.evicted, victim.bytes);
    int rc = files_remove(t->files, &victim.id, victim.set);
    if (rc != 0 && rc != -ENOENT)
        tier_note(t, "remove", rc);
    return true;
}

/* Each partial counts as if all of it were there, and so does the join. */
static bool is_over_limit(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool over = policy_bytes(t->policy) + t->partial_bytes + t->joining > t->options.limit_bytes;
    pthread_mutex_unlock(&t->lock);
    return over;
}

static bool is_disk_full(struct tier *t, size_t more)
{
    struct files_room room;
    if (files_room(t->files, &room) != 0)
        return false; /* the write says what is wrong */
    uint64_t least = room.total_bytes / 100 * t->options.free_percent;
    return room.free_bytes < least + t->promised + more;
}

bool tier_has_room(struct tier *t, size_t more)
{
    return !is_over_limit(t) && !is_disk_full(t, more);
}

int tier_make_room(struct tier *t, size_t more)
{
    while (!tier_has_room(t, more)) {
        if (!evict_one(t))
            return -ENOSPC;
    }
    return 0;
}

static bool is_trimmed(const struct tier *t, const struct partial *p, uint64_t now_ms)
{
    uint64_t most = t->options.limit_bytes / PARTIALS_SHARE;
    if (p->fills > 0)
        return false;
    return p->failed || now_ms - p->used_ms >= PARTIALS_MS ||
           (t->partial_bytes > most && p->newer != NULL);
}

/* Partials that nothing is coming for, the oldest first. */
static void trim_partials(struct tier *t)
{
    const uint64_t now_ms = clock_ms();
    pthread_mutex_lock(&t->lock);
    for (struct partial *p = t->oldest; p != NULL;) {
        if (!is_trimmed(t, p, now_ms)) {
            p = p->newer;
            continue;
        }
        struct files_writer *writer = partial_free(t, p);
        pthread_mutex_unlock(&t->lock);
        files_abandon(writer);
        pthread_mutex_lock(&t->lock);
        p = t->oldest; /* the list may have changed */
    }
    pthread_cond_broadcast(&t->news);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the filler: writing ---- */

static int publish(struct tier *t, struct fill *f)
{
    size_t bytes;
    struct partial *p = f->partial;
    int rc = files_publish(steal(p->writer), &bytes);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&t->lock);
    policy_add(t->policy, &p->id, f->piece.set, bytes, clock_ms());
    p->failed = true; /* nothing follows: it leaves the table */
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    metric_add(t->metrics.written, f->piece.size);
    return 0;
}

/* The partial will take so much more. */
static void promise(struct tier *t, struct partial *p, size_t bytes)
{
    t->promised += bytes;
    t->promised -= p->promised;
    p->promised = bytes;
}

static int fill_write(struct tier *t, struct fill *f)
{
    struct partial *p = f->partial;
    if (p->failed)
        return 0;
    if (p->writer == NULL) {
        int rc = tier_make_room(t, f->piece.size + piece_foot_size(&f->piece));
        if (rc != 0)
            return rc;
        p->writer = files_begin(t->files, &f->piece);
        promise(t, p, f->piece.size);
    }
    int rc = files_write(p->writer, f->offset, f->is.data, f->is.size);
    promise(t, p, p->promised > f->is.size ? p->promised - f->is.size : 0);
    return rc == 0 && files_is_whole(p->writer) ? publish(t, f) : rc;
}

static void fill_run(struct tier *t, struct fill *f)
{
    int rc = fill_write(t, f);
    struct files_writer *writer = rc != 0 ? steal(f->partial->writer) : NULL;
    files_abandon(writer);
    if (rc != 0)
        metric_add(rc == -ENOSPC || rc == -EDQUOT ? t->metrics.no_room : t->metrics.failed,
                   f->is.size);
    tier_note(t, "write", rc);
    pthread_mutex_lock(&t->lock);
    if (rc != 0)
        f->partial->failed = true;
    partial_unlist(t, f->partial);
    partial_list(t, f->partial);
    fill_ended(t, f);
    pthread_mutex_unlock(&t->lock);
    fill_free(f);
    trim_partials(t);
    pthread_mutex_lock(&t->lock);
    t->ended++; /* who has flushed may begin a piece anew that failed */
    pthread_cond_broadcast(&t->news);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the filler: its life ---- */

/* Under the lock. */
static void whole_seen(struct tier *t, const struct files_seen *s)
{
    const uint64_t now_ms = clock_ms();
    const int64_t age_ms = clock_wall_ms() - s->proved_ms;
    policy_join(t->policy, &s->id, s->set, s->bytes, now_ms);
    if (s->proved_ms != 0 && age_ms >= 0 && (uint64_t)age_ms <= now_ms)
        policy_prove(t->policy, &s->id, now_ms - (uint64_t)age_ms);
}

struct scanning {
    struct tier *tier;
    unsigned errors;
};

static void scan_seen(void *context, const struct files_seen *s)
{
    struct tier *t = ((struct scanning *)context)->tier;
    pthread_mutex_lock(&t->lock);
    if (s->id.index == PIECE_WHOLE)
        whole_seen(t, s);
    else
        policy_add(t->policy, &s->id, s->set, s->bytes, clock_ms());
    pthread_mutex_unlock(&t->lock);
}

/* Each error of a bad disk may take minutes: after those that make it sick the scan ends. */
static bool scan_goes_on(void *context, int rc)
{
    struct scanning *s = context;
    if (rc != 0) {
        s->errors++;
        tier_note(s->tier, "scan", rc);
    }
    pthread_mutex_lock(&s->tier->lock);
    const bool stop = s->tier->stop;
    pthread_mutex_unlock(&s->tier->lock);
    return !stop && s->errors < HEALTH_ERRORS;
}

static void scan(struct tier *t)
{
    struct scanning s = {.tier = t};
    const struct files_scanner scanner = {&s, scan_seen, scan_goes_on};
    files_scan(t->files, &scanner);
    while (is_over_limit(t) && evict_one(t))
        ;
    pthread_mutex_lock(&t->lock);
    t->scanned = true;
    tier_show(t);
    pthread_cond_broadcast(&t->news);
    pthread_mutex_unlock(&t->lock);
}

/* Waits for something to do.  NULL: no fill. */
static struct fill *fill_next(struct tier *t, bool *stop)
{
    pthread_mutex_lock(&t->lock);
    while (t->first == NULL && t->joins == NULL && !t->stop)
        pthread_cond_wait(&t->work, &t->lock);
    struct fill *f = t->first;
    *stop = f == NULL && t->stop;
    if (f != NULL) {
        t->first = f->next;
        if (t->first == NULL)
            t->last = &t->first;
    }
    pthread_mutex_unlock(&t->lock);
    return f;
}

/* Fills go first: fetchers wait for their memory. */
void *tier_filler(void *tier)
{
    struct tier *t = tier;
    bool stop = false;
    scan(t);
    while (!stop) {
        struct fill *f = fill_next(t, &stop);
        if (f != NULL)
            fill_run(t, f);
        else if (!stop)
            tier_join_step(t);
    }
    tier_joins_drop(t);
    while (t->oldest != NULL)
        files_abandon(partial_free(t, t->oldest));
    return NULL;
}
