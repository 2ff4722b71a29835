#include "target/uploads/upload_sweep.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/param.h"
#include "target/node/expiry.h"
#include "target/node/target.h"
#include "target/uploads/uploads.h"

struct upload_sweep {
    struct target *target;
    struct uploads *all;
    struct loop_timer *timer;
    atomic_bool busy;
};

bool upload_is_swept(const struct upload_age *age)
{
    if (age->is_destroyed)
        return true;
    if (!age->is_whole)
        return age->since_begun_ms > UPLOAD_CUT_MS;
    if (age->is_done)
        return age->since_done_ms > age->keep_ms;
    return age->is_aborted || age->since_begun_ms > age->expire_ms;
}

struct look {
    struct upload_sweep *sweep;
    const struct cluster_state *state;
    const struct mountpath *mp;
    uint64_t removed;
};

static uint64_t since(int64_t then_ms)
{
    int64_t now_ms = clock_wall_ms();
    return now_ms > then_ms ? (uint64_t)(now_ms - then_ms) : 0;
}

static bool is_aborted(const struct look *l, const struct upload_about *about, int64_t begun_ms)
{
    const struct bucket *b = bmd_bucket_by_id(&l->state->bmd, about->bucket_id);
    const struct s3_lifecycle_now now = expiry_now(l->state);
    return b != NULL && expiry_aborts(b, about->object, begun_ms, &now);
}

static void look_at(const struct look *l, const char *id, struct upload_about *about,
                    struct upload_age *age)
{
    struct upload_id parsed;
    struct stat st;
    _cleanup_free_ char *done = upload_dir_file(l->mp, id, "done.json");
    const struct target_params *p = &l->sweep->target->params;
    *age = (struct upload_age){.expire_ms = p->uploads_expire, .keep_ms = p->uploads_keep};
    int code = upload_dir_read(l->mp, id, about, NULL);
    age->is_whole = code != E_NOT_FOUND;
    age->is_destroyed = code == 0 && state_bucket_is_gone(l->state, about->bucket_id);
    age->is_done = stat(done, &st) == 0;
    age->since_done_ms = age->is_done ? since((int64_t)st.st_mtime * 1000) : 0;
    if (upload_id_parse(id, &parsed, NULL) != 0)
        return;
    age->since_begun_ms = since((int64_t)parsed.time_ms);
    age->is_aborted = code == 0 && is_aborted(l, about, (int64_t)parsed.time_ms);
}

/* One that is open goes as by an abort, so that who works on it sees that it is over.  On one that
 * cannot be opened nobody works; its body may be an object, too, which stays. */
static int remove_one(const struct look *l, const char *id, const struct upload_about *about,
                      const struct upload_age *age, struct error *err)
{
    _cleanup_(upload_unrefp)
    struct upload *u = NULL;
    if (age->is_whole && !age->is_done && about->object != NULL &&
        uploads_get(l->sweep->all, id, about->bucket_id, about->object, &u, NULL) == 0)
        return upload_abort(u, err);
    return uploads_remove(l->sweep->all, l->mp, id, err);
}

static bool look_and_remove(void *ctx, const char *id)
{
    struct look *l = ctx;
    struct upload_about about;
    struct upload_age age;
    struct error err = ERROR_INIT;
    look_at(l, id, &about, &age);
    if (upload_is_swept(&age)) {
        int code = remove_one(l, id, &about, &age, &err);
        l->removed += code == 0;
        if (code != 0 && code != E_NOT_FOUND && code != E_NOT_READY)
            log_warn("upload not removed", lstr("mountpath", l->mp->path), lstr("id", id),
                     lerr(&err));
    }
    upload_about_clear(&about);
    return !uploads_stopped(l->sweep->all);
}

static void sweep(void *arg)
{
    struct upload_sweep *s = arg;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(s->target->mountpaths);
    struct look l = {.sweep = s, .state = state};
    for (size_t i = 0; i < set->count; i++) {
        struct error err = ERROR_INIT;
        l.mp = set->all[i];
        if (upload_dir_each(l.mp, look_and_remove, &l, &err) != 0)
            log_warn("uploads not swept", lerr(&err));
    }
    if (l.removed > 0)
        log_info("uploads removed", lu64("count", l.removed));
    atomic_store(&s->busy, false);
}

static void tick(void *arg)
{
    struct upload_sweep *s = arg;
    if (!atomic_exchange(&s->busy, true) && uploads_run(s->all, sweep, s, NULL) != 0)
        atomic_store(&s->busy, false); /* the next tick asks again */
}

static void start_timer(void *arg)
{
    struct upload_sweep *s = arg;
    uint64_t interval_ms = s->target->params.uploads_sweep;
    s->timer = loop_timer_new(s->target->control, tick, s);
    loop_timer_start(s->timer, interval_ms, interval_ms);
}

static void stop_timer(void *arg)
{
    struct upload_sweep *s = arg;
    loop_timer_free(s->timer);
}

struct upload_sweep *upload_sweep_new(struct target *t)
{
    struct upload_sweep *s = xcalloc(1, sizeof *s);
    s->target = t;
    s->all = t->uploads;
    loop_call(t->control, start_timer, s);
    return s;
}

void upload_sweep_stop(struct upload_sweep *s)
{
    loop_call(s->target->control, stop_timer, s);
}

void upload_sweep_free(struct upload_sweep *s)
{
    free(s);
}
