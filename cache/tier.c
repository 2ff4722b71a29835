#include "cache/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/tier_parts.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"

#define PROOF_MS (24ull * 3600 * 1000) /* disks are not trusted for longer */

/* ---- metrics ---- */

static char *labels_of(const char *directory, const char *more)
{
    _cleanup_free_ char *name = xstrdup(directory);
    for (char *at = name; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at == '\n')
            *at = '_';
    }
    return xprintf("directory=\"%s\"%s", name, more);
}

static metric_t *metric_of(const struct tier *t, enum metric_id id, const char *more)
{
    _cleanup_free_ char *labels = labels_of(t->directory, more);
    return metric_get(id, labels);
}

static void metrics_init(struct tier *t)
{
    t->metrics = (struct tier_metrics){
        .read = metric_of(t, M_cache_read_bytes_total, ""),
        .written = metric_of(t, M_cache_written_bytes_total, ""),
        .evicted = metric_of(t, M_cache_evicted_bytes_total, ""),
        .damaged = metric_of(t, M_cache_damaged_total, ""),
        .refused = metric_of(t, M_cache_dropped_bytes_total, ",why=\"policy\""),
        .no_memory = metric_of(t, M_cache_dropped_bytes_total, ",why=\"memory\""),
        .no_room = metric_of(t, M_cache_dropped_bytes_total, ",why=\"room\""),
        .failed = metric_of(t, M_cache_dropped_bytes_total, ",why=\"disk\""),
        .used = metric_of(t, M_cache_used_bytes, ""),
        .pieces = metric_of(t, M_cache_pieces, ""),
        .passed_by = metric_of(t, M_cache_passed_by, ""),
        .state = metric_of(t, M_cache_disk_state, ""),
        .joined = metric_of(t, M_cache_joined_total, ""),
        .joins = metric_of(t, M_cache_joins, ""),
    };
    metric_set(metric_of(t, M_cache_limit_bytes, ""), (int64_t)t->options.limit_bytes);
}

void tier_show(struct tier *t)
{
    metric_set(t->metrics.used, (int64_t)policy_bytes(t->policy));
    metric_set(t->metrics.pieces, (int64_t)policy_count(t->policy));
    metric_set(t->metrics.passed_by, t->pace.passed_by);
    metric_set(t->metrics.joins, t->join_count);
    metric_set(t->metrics.state, (int64_t)t->health.state);
}

/* ---- health ---- */

/* A full disk is no sick one. */
static bool is_failure(int rc)
{
    return rc != 0 && rc != -ENOENT && rc != -ENOSPC && rc != -EDQUOT && rc != -EBADMSG;
}

void tier_note(struct tier *t, const char *what, int rc)
{
    pthread_mutex_lock(&t->lock);
    bool changed = health_note(&t->health, is_failure(rc), clock_ms());
    enum health_state state = t->health.state;
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    if (is_failure(rc))
        log_warn("cache directory failed", lstr("directory", t->directory), lstr("at", what),
                 lstr("error", strerror(-rc)));
    if (changed)
        log_warn("cache directory changed", lstr("directory", t->directory),
                 lstr("state", health_name(state)));
}

/* ---- its life ---- */

int tier_open(const struct tier_options *options, struct tier **out, struct error *err)
{
    struct files *files;
    int rc = files_open(options->directory, &files, err);
    if (rc != 0)
        return rc;
    _cleanup_(tier_closep)
    struct tier *t = xcalloc(1, sizeof *t);
    const struct policy_options policy = {
        .limit_bytes = options->limit_bytes,
        .idle_ms = options->idle_ms,
        .proof_ms = PROOF_MS,
        .seed = clock_us(),
    };
    t->options = *options;
    t->files = files;
    t->directory = xstrdup(options->directory);
    t->policy = policy_new(&policy);
    t->last = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->news, NULL);
    metrics_init(t);
    rc = thread_start("cache-fill", tier_filler, t, &t->filler, err);
    if (rc != 0)
        return rc;
    t->has_filler = true;
    *out = steal(t);
    return 0;
}

void tier_stop(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    if (t->has_filler)
        pthread_join(t->filler, NULL);
    t->has_filler = false;
}

void tier_close(struct tier *t)
{
    if (t == NULL)
        return;
    tier_stop(t);
    policy_free(t->policy);
    files_close(t->files);
    pthread_cond_destroy(&t->news);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    free(t->directory);
    free(t);
}

/* ---- reading ---- */

bool tier_may_read(struct tier *t, const struct pace_side *store)
{
    const uint64_t now_ms = clock_ms();
    pthread_mutex_lock(&t->lock);
    bool may = health_may(&t->health, now_ms) && !pace_passes_by(&t->pace, store, now_ms);
    pthread_mutex_unlock(&t->lock);
    return may;
}

bool tier_is_good(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool good = t->health.state == HEALTH_GOOD;
    pthread_mutex_unlock(&t->lock);
    return good;
}

bool tier_may_copy(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool may = t->health.state == HEALTH_GOOD && !t->pace.passed_by;
    pthread_mutex_unlock(&t->lock);
    return may;
}

bool tier_near_begin(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool may = t->health.state == HEALTH_GOOD && pace_near_begin(&t->pace, clock_ms());
    pthread_mutex_unlock(&t->lock);
    return may;
}

void tier_near_end(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    pace_near_end(&t->pace, clock_ms());
    pthread_mutex_unlock(&t->lock);
}

static void forget(struct tier *t, const struct piece_id *id)
{
    pthread_mutex_lock(&t->lock);
    policy_remove(t->policy, id);
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
}

int tier_remove(struct tier *t, const struct piece *p)
{
    int rc = files_remove(t->files, &p->id, p->set);
    if (rc == 0 || rc == -ENOENT)
        forget(t, &p->id);
    return rc;
}

/* Of several readers that find it one tells. */
static int remove_damaged(struct tier *t, const struct piece *p)
{
    int rc = tier_remove(t, p);
    if (rc == 0) {
        metric_add(t->metrics.damaged, 1);
        log_warn("damaged piece", lstr("directory", t->directory), lstr("of", p->entity->name),
                 lu64("piece", p->id.index));
    }
    return rc;
}

/* What cannot be used is not there any more: the store's bytes take its place.  On a disk that
 * fails it stays: the disk may be what is bad, and may come back.  What makes it a failing one
 * leaves: the tries of the disk would meet it again. */
static void read_failed(struct tier *t, const struct piece *p, int rc)
{
    const bool was_good = tier_is_good(t);
    if (rc == -ENOENT)
        forget(t, &p->id);
    tier_note(t, "read", rc == -EBADMSG ? remove_damaged(t, p) : rc);
    if (!health_is_of_disk(rc) || !was_good)
        return;
    if (p->id.index == PIECE_WHOLE)
        tier_suspect(t, p->entity);
    else
        tier_remove(t, p); /* the error was noted, whatever comes of it */
}

void tier_damaged(struct tier *t, const struct piece *p)
{
    read_failed(t, p, -EBADMSG);
}

static void note_hit(struct tier *t, const struct piece_id *id)
{
    pthread_mutex_lock(&t->lock);
    policy_hit(t->policy, id, clock_ms());
    pthread_mutex_unlock(&t->lock);
}

/* find: of files.h, in a file of `in`.  What is known and not there may have come meanwhile. */
static int find_in(struct tier *t, const struct piece *in, const struct piece *p,
                   int (*find)(struct files *f, const struct piece *p, struct files_piece *out),
                   struct files_piece *found)
{
    int rc = find(t->files, p, found);
    const bool is_known = rc != -ENOENT || tier_knows(t, &in->id);
    if (rc == -ENOENT && is_known)
        rc = find(t->files, p, found);
    if (rc == 0)
        note_hit(t, &in->id);
    else if (is_known)
        read_failed(t, in, rc);
    else
        tier_note(t, "read", rc);
    return rc;
}

int tier_find(struct tier *t, const struct piece *p, struct files_piece *found)
{
    return find_in(t, p, p, files_find, found);
}

int tier_find_within(struct tier *t, const struct piece *p, struct files_piece *found)
{
    const struct piece whole = piece_whole(p->entity);
    return tier_is_suspect(t, &whole.id) ? -ENOENT : tier_find_whole(t, p, found);
}

int tier_find_whole(struct tier *t, const struct piece *p, struct files_piece *found)
{
    const struct piece whole = piece_whole(p->entity);
    return find_in(t, &whole, p, files_find_within, found);
}

int tier_read(struct tier *t, const struct files_piece *found, const struct piece *p, size_t offset,
              size_t size, void *to)
{
    int rc = files_read(found, p, offset, size, to);
    const struct piece of = found->is_whole ? piece_whole(p->entity) : *p;
    if (rc != 0)
        read_failed(t, &of, rc);
    return rc;
}

void tier_count(struct tier *t, uint64_t bytes)
{
    metric_add(t->metrics.read, bytes);
}

void tier_found_close(struct tier *t, struct files_piece *found, const struct pace_side *store,
                      uint64_t us)
{
    const uint64_t now_ms = clock_ms();
    files_found_close(found);
    pthread_mutex_lock(&t->lock);
    bool before = t->pace.passed_by;
    pace_read(&t->pace, store, us, now_ms);
    bool now = t->pace.passed_by;
    if (t->health.state == HEALTH_SICK)
        health_note(&t->health, false, now_ms);
    tier_show(t);
    pthread_mutex_unlock(&t->lock);
    if (before != now)
        log_info(now ? "cache directory is slower than the cluster: reads pass it by"
                     : "cache directory is used again",
                 lstr("directory", t->directory));
}

/* ---- wholes ---- */

int tier_whole(struct tier *t, const struct piece *whole, bool *known)
{
    pthread_mutex_lock(&t->lock);
    *known = policy_has(t->policy, &whole->id);
    const bool is_proved = policy_is_proved(t->policy, &whole->id, clock_ms());
    pthread_mutex_unlock(&t->lock);
    int fd = is_proved ? files_open_whole(t->files, whole) : -1;
    if (fd >= 0)
        note_hit(t, &whole->id);
    else if (is_proved)
        read_failed(t, whole, fd);
    return fd >= 0 ? fd : -1;
}

void tier_hold(struct tier *t, const struct piece_id *id, int by)
{
    pthread_mutex_lock(&t->lock);
    policy_hold(t->policy, id, by);
    pthread_mutex_unlock(&t->lock);
}

void tier_drop(struct tier *t, const struct piece *p)
{
    int rc = tier_remove(t, p);
    if (rc != 0 && rc != -ENOENT)
        tier_note(t, "remove", rc);
}

/* ---- looking ---- */

bool tier_is_out(struct tier *t)
{
    pthread_mutex_lock(&t->lock);
    bool out = t->health.state == HEALTH_OUT;
    pthread_mutex_unlock(&t->lock);
    return out;
}

bool tier_knows(struct tier *t, const struct piece_id *id)
{
    pthread_mutex_lock(&t->lock);
    bool knows = policy_has(t->policy, id);
    pthread_mutex_unlock(&t->lock);
    return knows;
}

bool tier_may_have(struct tier *t, const struct piece_id *id)
{
    pthread_mutex_lock(&t->lock);
    bool may = !t->scanned || policy_has(t->policy, id);
    pthread_mutex_unlock(&t->lock);
    return may;
}

bool tier_has(struct tier *t, const struct piece_id *id)
{
    pthread_mutex_lock(&t->lock);
    while (!t->scanned)
        pthread_cond_wait(&t->news, &t->lock);
    bool has = policy_has(t->policy, id);
    pthread_mutex_unlock(&t->lock);
    return has;
}
