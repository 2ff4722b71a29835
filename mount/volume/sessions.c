#include "mount/volume/sessions.h"

#include "common/log.h"

enum { PAGE = 100 };

/* Lanes and ranges as they are at one moment. */
static int read_all(struct meta *m, uint64_t session, struct arena *arena,
                    struct meta_item items[static 2], struct error *err)
{
    items[0] = (struct meta_item){.ask = META_PAGE, .limit = SESSION_LANES_MAX};
    items[1] = (struct meta_item){.ask = META_PAGE, .limit = SESSION_RANGES_MAX};
    items[0].key = (struct meta_key){.kind = META_LANE, .id = session};
    items[1].key = (struct meta_key){.kind = META_RANGE, .id = session};
    struct meta_read r = {.arena = arena, .items = items, .count = 2};
    return m->ops->read(m, &r, err);
}

/* A commit of the session that comes between, such as one that takes a range, changes a lane. */
static int end_with(struct meta *m, uint64_t session, const int64_t *beat, struct arena *arena,
                    struct error *err)
{
    struct meta_item items[2];
    const struct meta_key key = meta_key_point(META_SESSION, session);
    size_t count = 0;
    int rc = read_all(m, session, arena, items, err);
    if (rc != 0)
        return rc;
    struct meta_step *steps =
        arena_alloc(arena, (2 + 2 * items[0].count + items[1].count) * sizeof *steps);
    if (beat != NULL)
        steps[count++] = (struct meta_step){.kind = META_EXPECT_EQUAL, .key = key, .number = *beat};
    for (size_t i = 0; i < items[0].count; i++)
        steps[count++] = (struct meta_step){
            .kind = META_EXPECT_EQUAL,
            .key = items[0].rows[i].key,
            .number = meta_field(&items[0].rows[i].value, 0),
        };
    steps[count++] = (struct meta_step){.kind = META_DELETE, .key = key};
    for (unsigned k = 0; k < 2; k++) {
        for (size_t i = 0; i < items[k].count; i++)
            steps[count++] = (struct meta_step){.kind = META_DELETE, .key = items[k].rows[i].key};
    }
    struct meta_commit c = {.steps = steps, .count = count};
    return m->ops->commit(m, &c, err);
}

int sessions_end(struct meta *m, uint64_t session, const int64_t *beat, struct error *err)
{
    struct arena *arena = arena_new(4096);
    int rc = end_with(m, session, beat, arena, err);
    arena_free(arena);
    return rc;
}

/* A commit without a reply is tried again by the next cleaning. */
static int expire_one(struct volume *v, const struct meta_row *row)
{
    struct error err = ERROR_INIT;
    const int64_t beat = meta_field(&row->value, 0);
    int rc = sessions_end(v->meta, row->key.id, &beat, &err);
    if (rc == 0)
        log_warn("session ended: no heartbeat", lstr("volume", v->format.name),
                 lu64("session", row->key.id), li64("last_ms", beat));
    bool done = rc == 0 || rc == E_PRECONDITION || rc == E_IN_DOUBT;
    return done ? 0 : txn_engine_error("end of a session", &err);
}

static int expire_page(struct volume *v, struct arena *arena, struct meta_item *page,
                       int64_t now_ms)
{
    struct error err = ERROR_INIT;
    struct meta_read r = {.arena = arena, .items = page, .count = 1};
    if (v->meta->ops->read(v->meta, &r, &err) != 0)
        return txn_engine_error("sessions", &err);
    int rc = 0;
    for (size_t i = 0; i < page->count && rc == 0; i++) {
        const struct meta_row *row = &page->rows[i];
        page->key = row->key;
        page->after = true;
        if (row->key.id != v->session &&
            meta_field(&row->value, 0) < now_ms - (int64_t)v->format.session_ms)
            rc = expire_one(v, row);
    }
    return rc;
}

/* A client that was cut off itself, with the engine or the machine, gives the others the time to
 * say that they live. */
static bool is_patient(struct volume *v, int64_t now_ms)
{
    pthread_mutex_lock(&v->lock);
    bool patient =
        now_ms < v->patient_ms || now_ms - v->beat_ms > (int64_t)v->format.session_ms / 2;
    pthread_mutex_unlock(&v->lock);
    return patient;
}

int sessions_expire(struct volume *v)
{
    struct error err = ERROR_INIT;
    struct arena *arena = arena_new(4096);
    struct meta_item page = {.ask = META_PAGE, .key.kind = META_SESSION, .limit = PAGE};
    int64_t now_ms;
    int rc = v->meta->ops->now(v->meta, &now_ms, &err);
    if (rc != 0)
        rc = txn_engine_error("clock", &err);
    page.more = rc == 0 && !is_patient(v, now_ms);
    while (rc == 0 && page.more)
        rc = expire_page(v, arena, &page, now_ms);
    arena_free(arena);
    return rc;
}
