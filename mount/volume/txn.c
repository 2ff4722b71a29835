#include "mount/volume/txn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/backoff.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/lanes.h"

int txn_engine_error(const char *what, const struct error *err)
{
    log_warn("metadata engine failed", lstr("at", what), lerr(err));
    return err->code == E_NO_SPACE ? -ENOSPC : -EIO;
}

/* ---- reads ---- */

int txn_read(struct txn *t, struct meta_item *items, size_t count)
{
    struct error err = ERROR_INIT;
    struct meta_read r = {.arena = t->arena, .items = items, .count = count};
    int rc = t->v->meta->ops->read(t->v->meta, &r, &err);
    return rc == 0 ? 0 : txn_engine_error("read", &err);
}

int txn_get(struct txn *t, const struct meta_key *key, struct meta_value *value)
{
    struct meta_item item = {.ask = META_GET, .key = *key};
    int rc = txn_read(t, &item, 1);
    *value = item.value;
    return rc;
}

/* ---- steps ---- */

static struct meta_step *add_step(struct txn *t, enum meta_step_kind kind,
                                  const struct meta_key *key)
{
    if (t->count == t->room) {
        t->room = t->room > 0 ? 2 * t->room : 32;
        t->steps = xrealloc(t->steps, t->room * sizeof *t->steps);
    }
    struct meta_step *s = &t->steps[t->count++];
    *s = (struct meta_step){.kind = kind, .key = *key};
    if (key->name != NULL)
        s->key.name = arena_strndup(t->arena, key->name, key->name_size);
    t->changes |= kind >= META_PUT;
    return s;
}

static const void *copy(struct txn *t, const void *data, size_t size)
{
    void *bytes = arena_bytes(t->arena, size + 1);
    if (size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

void txn_expect(struct txn *t, const struct meta_key *key, const struct meta_value *value)
{
    struct meta_step *s = add_step(t, value->found ? META_EXPECT_STAMP : META_EXPECT_ABSENT, key);
    s->stamp = value->stamp;
}

static void add_number(struct txn *t, enum meta_step_kind kind, const struct meta_key *key,
                       size_t offset, int64_t number)
{
    struct meta_step *s = add_step(t, kind, key);
    s->offset = offset;
    s->number = number;
}

void txn_expect_equal(struct txn *t, const struct meta_key *key, size_t offset, int64_t number)
{
    add_number(t, META_EXPECT_EQUAL, key, offset, number);
}

void txn_expect_at_least(struct txn *t, const struct meta_key *key, size_t offset, int64_t number)
{
    add_number(t, META_EXPECT_AT_LEAST, key, offset, number);
}

void txn_put(struct txn *t, const struct meta_key *key, const void *data, size_t size)
{
    struct meta_step *s = add_step(t, META_PUT, key);
    s->data = copy(t, data, size);
    s->size = size;
}

void txn_delete(struct txn *t, const struct meta_key *key)
{
    add_step(t, META_DELETE, key);
}

void txn_set(struct txn *t, const struct meta_key *key, size_t offset, const void *data,
             size_t size)
{
    struct meta_step *s = add_step(t, META_SET, key);
    s->offset = offset;
    s->data = copy(t, data, size);
    s->size = size;
}

void txn_set_number(struct txn *t, const struct meta_key *key, size_t offset, int64_t number)
{
    uint8_t bytes[8];
    meta_field_put(bytes, 0, number);
    txn_set(t, key, offset, bytes, sizeof bytes);
}

void txn_add(struct txn *t, const struct meta_key *key, size_t offset, int64_t number)
{
    add_number(t, META_ADD, key, offset, number);
}

void txn_raise(struct txn *t, const struct meta_key *key, size_t offset, int64_t number)
{
    add_number(t, META_RAISE, key, offset, number);
}

int txn_fail(struct txn *t, int error)
{
    t->failed = error;
    return 0;
}

/* ---- the loop ---- */

/* Only looks: nothing is changed, so that neither session nor lane matter. */
static enum lane_result look(struct txn *t, struct error *err)
{
    struct meta_commit c = {
        .steps = t->steps + LANE_STEPS,
        .count = t->count - LANE_STEPS,
    };
    if (c.count == 0)
        return LANE_MADE;
    int rc = t->v->meta->ops->commit(t->v->meta, &c, err);
    return rc == 0 ? LANE_MADE : rc == E_PRECONDITION ? LANE_CONFLICT : LANE_FAILED;
}

/* Only the expectations are left of a transaction that fails. */
static void drop_changes(struct txn *t)
{
    size_t kept = LANE_STEPS;
    for (size_t i = LANE_STEPS; i < t->count; i++) {
        if (t->steps[i].kind < META_PUT)
            t->steps[kept++] = t->steps[i];
    }
    t->count = kept;
    t->changes = false;
}

/* Also after an error: the commit may have been made. */
static void note_changes(struct txn *t)
{
    struct volume *v = t->v;
    pthread_mutex_lock(&v->lock);
    v->changes++;
    for (size_t i = 0; i < t->count; i++) {
        const struct meta_step *s = &t->steps[i];
        if (s->kind >= META_PUT && s->key.kind == META_ATTR)
            v->changed[s->key.id % CHANGED_ROWS] = v->changes;
    }
    pthread_mutex_unlock(&v->lock);
}

static enum lane_result commit(struct txn *t, struct error *err)
{
    enum lane_result result = lane_commit(t->v, t->call, t->steps, t->count, err);
    note_changes(t);
    return result;
}

uint64_t volume_changes(struct volume *v)
{
    pthread_mutex_lock(&v->lock);
    const uint64_t changes = v->changes;
    pthread_mutex_unlock(&v->lock);
    return changes;
}

bool volume_is_changed(struct volume *v, uint64_t ino, uint64_t since)
{
    pthread_mutex_lock(&v->lock);
    const bool is = v->changed[ino % CHANGED_ROWS] > since;
    pthread_mutex_unlock(&v->lock);
    return is;
}

void volume_note_changed(struct volume *v, uint64_t ino)
{
    pthread_mutex_lock(&v->lock);
    v->changed[ino % CHANGED_ROWS] = ++v->changes;
    pthread_mutex_unlock(&v->lock);
}

/* True: it is over, with *rc. */
static bool run_once(struct txn *t, txn_decide *decide, void *op, int *rc)
{
    static const struct meta_key none;
    struct error err = ERROR_INIT;
    arena_reset(t->arena);
    t->count = 0;
    t->failed = 0;
    for (unsigned i = 0; i < LANE_STEPS; i++)
        add_step(t, META_EXPECT_PRESENT, &none);
    t->changes = false;
    *rc = decide(t, op);
    if (*rc != 0)
        return true;
    if (t->failed != 0)
        drop_changes(t);
    *rc = t->failed;
    switch (t->changes ? commit(t, &err) : look(t, &err)) {
    case LANE_MADE:
        return true;
    case LANE_CONFLICT:
        return false;
    case LANE_OVER:
        *rc = -EIO;
        return true;
    case LANE_FAILED:
        *rc = txn_engine_error("commit", &err);
        return true;
    }
    return true;
}

static void pause_before(struct volume *v, unsigned again)
{
    static const struct backoff pauses = {.first_ms = 1, .max_ms = 100};
    pthread_mutex_lock(&v->lock);
    uint64_t luck = rng_next(&v->rng);
    pthread_mutex_unlock(&v->lock);
    v->env.pause_ms(v->env.context, backoff_jitter(backoff_ms(&pauses, again), luck));
}

int64_t volume_now(struct volume *v)
{
    pthread_mutex_lock(&v->lock);
    const int64_t now_ns = v->env.clock_ns(v->env.context) + v->clock_shift_ns;
    pthread_mutex_unlock(&v->lock);
    return now_ns;
}

static int run(struct volume *v, struct call *call, txn_decide *decide, void *op)
{
    struct txn t = {.v = v, .arena = arena_new(4096), .call = call};
    int rc = 0;
    unsigned tries = 0;
    do {
        t.now_ns = volume_now(v);
        if (run_once(&t, decide, op, &rc))
            break;
        pause_before(v, ++tries);
    } while (tries < v->env.tries);
    if (tries == v->env.tries) {
        log_warn("transaction given up: other clients were always first",
                 lstr("volume", v->format.name), lu64("tries", tries));
        rc = -EIO;
    }
    arena_free(t.arena);
    free(t.steps);
    return rc;
}

int txn_run(struct volume *v, txn_decide *decide, void *op)
{
    return run(v, NULL, decide, op);
}

int txn_run_call(struct volume *v, txn_decide *decide, void *op)
{
    return run(v, calls_current(), decide, op);
}
