/* A client's session: begin, heartbeat, end. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/calls.h"
#include "mount/volume/counters.h"
#include "mount/volume/open_files.h"
#include "mount/volume/sessions.h"
#include "mount/volume/takeover.h"
#include "mount/volume/txn.h"

static int64_t machine_clock_ns(void *context)
{
    (void)context;
    return (int64_t)clock_us() * 1000;
}

static void machine_pause_ms(void *context, uint64_t ms)
{
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)context;
    nanosleep(&pause, NULL);
}

void volume_env_init(struct volume_env *env)
{
    *env = (struct volume_env){
        .clock_ns = machine_clock_ns,
        .pause_ms = machine_pause_ms,
        .lanes = 16,
        .tries = 50,
    };
    random_bytes(&env->seed, sizeof env->seed);
}

/* ---- begin ---- */

static int read_next_session(struct meta *m, int64_t *next, struct error *err)
{
    struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET, .key = counters_next_key(IDS_SESSIONS)};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    int rc = m->ops->read(m, &r, err);
    *next = meta_field(&item.value, 0);
    arena_free(arena);
    if (rc == 0 && *next < 1)
        rc = error_set(err, E_CORRUPT, "the number of the next session is missing");
    return rc;
}

/* The id, the session and its lanes in one commit. */
static int commit_session(struct volume *v, int64_t id, int64_t now_ms, struct error *err)
{
    uint8_t beat[SESSION_BYTES], zero[8];
    const size_t head = 4, count = head + v->env.lanes;
    _cleanup_free_ struct meta_step *steps = xcalloc(count, sizeof *steps);
    meta_field_put(beat, 0, now_ms);
    meta_field_put(zero, 0, 0);
    const struct meta_key next = counters_next_key(IDS_SESSIONS);
    const struct meta_key session = meta_key_point(META_SESSION, (uint64_t)id);
    steps[0] = (struct meta_step){.kind = META_EXPECT_EQUAL, .key = next, .number = id};
    steps[1] = (struct meta_step){.kind = META_EXPECT_ABSENT, .key = session};
    steps[2] = (struct meta_step){.kind = META_ADD, .key = next, .number = 1};
    steps[3] =
        (struct meta_step){.kind = META_PUT, .key = session, .data = beat, .size = sizeof beat};
    for (unsigned i = 0; i < v->env.lanes; i++)
        steps[head + i] = (struct meta_step){
            .kind = META_PUT,
            .key = meta_key_number(META_LANE, (uint64_t)id, i),
            .data = zero,
            .size = sizeof zero,
        };
    struct meta_commit c = {.steps = steps, .count = count};
    return v->meta->ops->commit(v->meta, &c, err);
}

/* A commit without a reply may have made a session that is never used; it expires. */
static int begin_session(struct volume *v, struct error *err)
{
    int rc = E_PRECONDITION;
    for (unsigned i = 0; i < v->env.tries && (rc == E_PRECONDITION || rc == E_IN_DOUBT); i++) {
        int64_t id, now_ms;
        rc = read_next_session(v->meta, &id, err);
        if (rc == 0)
            rc = v->meta->ops->now(v->meta, &now_ms, err);
        if (rc != 0)
            return rc;
        rc = commit_session(v, id, now_ms, err);
        v->session = (uint64_t)id;
        v->beat_ms = now_ms;
        v->clock_shift_ns = now_ms * 1000000 - v->env.clock_ns(v->env.context);
        if (rc != 0)
            v->env.pause_ms(v->env.context, 1 + rng_below(&v->rng, 10));
    }
    return rc;
}

static uint64_t session_before(const struct volume *v)
{
    return v->env.memory != NULL ? atomic_load(&v->env.memory->session) : 0;
}

static void remember_session(struct volume *v, uint64_t session)
{
    if (v->env.memory != NULL)
        atomic_store(&v->env.memory->session, session);
}

/* That of the process before, or a new one. */
static int find_session(struct volume *v, struct error *err)
{
    const uint64_t before = session_before(v);
    int rc = before != 0 ? takeover_session(v, before, err) : E_NOT_FOUND;
    if (rc == E_NOT_FOUND) {
        v->fenced = before != 0;
        if (v->fenced)
            log_warn("session over: other clients gave it up; open files cannot be "
                     "written to",
                     lstr("volume", v->format.name), lu64("session", before));
        if (v->fenced)
            calls_settle(v->env.memory);
        rc = begin_session(v, err);
    }
    if (rc == 0)
        remember_session(v, v->session);
    return rc;
}

static void free_volume(struct volume *v)
{
    pthread_mutex_destroy(&v->lock);
    pthread_mutex_destroy(&v->ids_lock);
    pthread_cond_destroy(&v->free_lane);
    free(v->lanes);
    free(v->open);
    free(v->locked);
    free(v);
}

int volume_open(struct meta *m, const struct volume_env *env, struct volume **out,
                struct error *err)
{
    struct volume_format format;
    int rc = format_read(m, &format, err);
    if (rc != 0)
        return rc;
    struct volume *v = xcalloc(1, sizeof *v);
    v->meta = m;
    v->env = *env;
    v->format = format;
    atomic_init(&v->trash_days, (int64_t)format.trash_days);
    v->lanes = xcalloc(env->lanes, sizeof *v->lanes);
    rng_seed(&v->rng, env->seed);
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->ids_lock, NULL);
    condition_init(&v->free_lane);
    rc = find_session(v, err);
    if (rc != 0) {
        free_volume(v);
        return error_wrap(err, "session of volume '%s'", format.name);
    }
    *out = v;
    return 0;
}

const struct volume_format *volume_format(const struct volume *v)
{
    return &v->format;
}

uint64_t volume_session(const struct volume *v)
{
    return v->session;
}

bool volume_is_fenced(const struct volume *v)
{
    return v->fenced;
}

/* ---- heartbeat ---- */

/* What `fs config` may have changed. */
static void read_format(struct volume *v)
{
    struct volume_format format;
    struct error err = ERROR_INIT;
    if (format_read(v->meta, &format, &err) == 0)
        atomic_store(&v->trash_days, (int64_t)format.trash_days);
    else
        log_info("format not read: the one before stays in force", lstr("volume", v->format.name),
                 lerr(&err));
}

static int beat(struct volume *v, struct error *err)
{
    int64_t now_ms;
    int rc = v->meta->ops->now(v->meta, &now_ms, err);
    if (rc != 0)
        return rc;
    const int64_t shift_ns = now_ms * 1000000 - v->env.clock_ns(v->env.context);
    const struct meta_step raise = {
        .kind = META_RAISE,
        .key = meta_key_point(META_SESSION, v->session),
        .number = now_ms,
    };
    struct meta_commit c = {.steps = &raise, .count = 1};
    rc = v->meta->ops->commit(v->meta, &c, err);
    pthread_mutex_lock(&v->lock);
    v->clock_shift_ns = shift_ns;
    if (rc == 0) {
        if (now_ms - v->beat_ms > (int64_t)v->format.session_ms / 2)
            v->patient_ms = now_ms + (int64_t)v->format.session_ms;
        v->beat_ms = now_ms;
    }
    v->over |= rc == E_PRECONDITION;
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static int beat_once(struct volume *v)
{
    struct error err = ERROR_INIT;
    int rc = beat(v, &err);
    if (rc == E_PRECONDITION)
        log_error("session over: other clients gave it up; mount the volume again",
                  lstr("volume", v->format.name), lu64("session", v->session));
    if (rc != 0)
        return rc == E_PRECONDITION ? -EIO : txn_engine_error("heartbeat", &err);
    return 0;
}

static int beat_if_due(struct volume *v)
{
    const int64_t now_ms = volume_now(v) / 1000000;
    pthread_mutex_lock(&v->lock);
    const bool is_due = now_ms - v->beat_ms >= (int64_t)v->format.session_ms / BEATS_IN_SESSION;
    pthread_mutex_unlock(&v->lock);
    return is_due ? beat_once(v) : 0;
}

int volume_beat(struct volume *v)
{
    pthread_mutex_lock(&v->lock);
    const bool was_over = v->over; /* and was told */
    pthread_mutex_unlock(&v->lock);
    if (was_over)
        return -EIO;
    int rc = beat_once(v);
    if (rc != 0)
        return rc;
    read_format(v);
    return open_files_keep(v, beat_if_due);
}

/* ---- end ---- */

void volume_close(struct volume *v)
{
    struct error err = ERROR_INIT;
    if (v == NULL)
        return;
    if (!v->over && sessions_end(v->meta, v->session, NULL, &err) != 0)
        log_warn("session not ended: it expires", lu64("session", v->session), lerr(&err));
    remember_session(v, 0);
    free_volume(v);
}

void volume_leave(struct volume *v)
{
    free_volume(v);
}
