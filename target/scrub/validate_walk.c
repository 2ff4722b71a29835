#include "target/scrub/validate_walk.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/meter.h"

enum { YIELD_MS = 10, YIELD_MAX_MS = 100 };

/* A scrub lets the set go when another one is in force: it goes on under that. */
bool walk_shall_end(const struct walk *w)
{
    return w->stop->wanted || (w->scrub != NULL && !mountpath_set_is_current(w->set));
}

void walk_found(const struct walk *w, enum validate_finding what, const char *name,
                const char *detail)
{
    if (what != VALIDATE_not_indexed && what != VALIDATE_not_looked_at)
        mountpath_failed(w->mp, E_CORRUPT);
    validate_part_add(w->part, what, w->bucket_id, name, detail);
    if (w->scrub != NULL) {
        _cleanup_free_ char *labels = xprintf("what=\"%s\"", validate_finding_name(what));
        metric_add(metric_get(M_scrub_found_total, labels), 1);
    }
}

bool walk_bucket_lives(const struct walk *w)
{
    return w->config->bucket_lives(w->config->ctx, w->bucket_id);
}

void walk_save(struct walk *w)
{
    struct error err = ERROR_INIT;
    if (w->scrub == NULL)
        return;
    w->saved_ms = clock_ms();
    if (scrub_cursor_save(&w->at, w->mp, w->scrub->job_id, w->part, &err) != 0)
        log_warn("where a scrub is was not saved", lstr("mountpath", w->mp->path), lerr(&err));
}

void walk_save_now_and_then(struct walk *w)
{
    if (w->scrub != NULL && clock_ms() - w->saved_ms >= w->scrub->save_ms)
        walk_save(w);
}

int walk_lock_name(const struct walk *w, struct object_place *p, const char *name,
                   struct error *err)
{
    int code = object_place_set(p, w->config->store, w->bucket_id, name, err);
    if (code != 0 && code != E_MOUNTPATH_DISABLED) /* the lock is the name's, whatever its place */
        return code;
    object_lock(p);
    return 0;
}

void walk_yield(struct walk *w, size_t bytes)
{
    w->since_yield += bytes;
    if (w->scrub == NULL || w->since_yield < WALK_PIECE)
        return;
    w->since_yield = 0;
    for (int ms = 0; ms < YIELD_MAX_MS && meter_queue(w->mp->meter) > 0; ms += YIELD_MS)
        (void)job_stop_pause(w->stop, YIELD_MS);
}
