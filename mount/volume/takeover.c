#include "mount/volume/takeover.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/volume/calls.h"
#include "mount/volume/locks.h"
#include "mount/volume/sessions.h"

enum { SESSION, LANES, READS };

/* Of one moment. */
static int read_session(struct volume *v, uint64_t session, struct arena *arena,
                        struct meta_item items[READS], struct error *err)
{
    items[SESSION] = (struct meta_item){.key = meta_key_point(META_SESSION, session)};
    items[LANES] = (struct meta_item){
        .ask = META_PAGE,
        .limit = SESSION_LANES_MAX,
        .key = {.kind = META_LANE, .id = session},
    };
    struct meta_read r = {.arena = arena, .items = items, .count = READS};
    int rc = v->meta->ops->read(v->meta, &r, err);
    if (rc != 0)
        return rc;
    if (!items[SESSION].value.found || items[LANES].count < v->env.lanes)
        return error_set(err, E_NOT_FOUND, "other clients gave the session up");
    return 0;
}

/* All lanes at once, with a heartbeat. */
static int commit_barriers(struct volume *v, struct arena *arena,
                           const struct meta_item items[READS], int64_t now_ms, struct error *err)
{
    const size_t lanes = items[LANES].count;
    struct meta_step *steps = arena_alloc(arena, (2 * lanes + 2) * sizeof *steps);
    uint8_t *values = arena_bytes(arena, 8 * lanes);
    size_t count = 0;
    steps[count++] = (struct meta_step){.kind = META_EXPECT_PRESENT, .key = items[SESSION].key};
    for (size_t i = 0; i < lanes; i++)
        steps[count++] = (struct meta_step){
            .kind = META_EXPECT_EQUAL,
            .key = items[LANES].rows[i].key,
            .number = meta_field(&items[LANES].rows[i].value, 0),
        };
    for (size_t i = 0; i < lanes; i++) {
        meta_field_put(values + 8 * i, 0, meta_field(&items[LANES].rows[i].value, 0) + 2);
        steps[count++] = (struct meta_step){
            .kind = META_PUT,
            .key = items[LANES].rows[i].key,
            .data = values + 8 * i,
            .size = 8,
        };
    }
    steps[count++] =
        (struct meta_step){.kind = META_RAISE, .key = items[SESSION].key, .number = now_ms};
    struct meta_commit c = {.steps = steps, .count = count};
    return v->meta->ops->commit(v->meta, &c, err);
}

static int take(struct volume *v, uint64_t session, struct arena *arena, struct error *err)
{
    struct meta_item items[READS];
    int64_t now_ms;
    int rc = read_session(v, session, arena, items, err);
    for (size_t i = 0; i < items[LANES].count && rc == 0; i++)
        calls_judge(v->env.memory, (uint32_t)items[LANES].rows[i].key.sub,
                    meta_field(&items[LANES].rows[i].value, 0));
    if (rc == 0)
        rc = v->meta->ops->now(v->meta, &now_ms, err);
    if (rc == 0)
        rc = commit_barriers(v, arena, items, now_ms, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < items[LANES].count; i++) {
        const struct meta_row *row = &items[LANES].rows[i];
        if (row->key.sub < v->env.lanes)
            v->lanes[row->key.sub].number = meta_field(&row->value, 0) + 2;
    }
    v->session = session;
    v->beat_ms = now_ms;
    v->clock_shift_ns = now_ms * 1000000 - v->env.clock_ns(v->env.context);
    return 0;
}

int takeover_session(struct volume *v, uint64_t session, struct error *err)
{
    struct arena *arena = arena_new(4096);
    int rc = E_PRECONDITION;
    for (unsigned i = 0; i < v->env.tries && (rc == E_PRECONDITION || rc == E_IN_DOUBT); i++) {
        if (i > 0)
            v->env.pause_ms(v->env.context, 1 + rng_below(&v->rng, 10));
        arena_reset(arena);
        rc = take(v, session, arena, err);
    }
    if (rc == 0) {
        calls_settle(v->env.memory);
        rc = locks_recover(v, err);
    }
    arena_free(arena);
    return rc;
}

/* ---- calls ---- */

bool volume_call_begin(struct volume *v, uint64_t id)
{
    struct call *c = v->env.memory != NULL && id != 0 ? calls_take(v->env.memory, id) : NULL;
    calls_set_current(c);
    return calls_is_made(c);
}

void volume_call_end(void)
{
    calls_give(calls_current());
    calls_set_current(NULL);
}
