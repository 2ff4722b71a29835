/* A client's engine: the one of the world, behind faults. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "mount/meta/memory.h"
#include "mount/volume/ids.h"
#include "mount/volume/trash.h"
#include "mount/volume/testing/sim.h"

enum { ANY = -1 };

static const struct {
    const char *name;
    int op; /* enum op_kind */
    enum meta_step_kind step;
    enum meta_kind key;
    int offset;
} mutants[] = {
#define MUTANT(name_, op_, step_, key_, offset_, meaning_) \
    {#name_, op_, META_##step_, META_##key_, offset_},
#include "mount/volume/testing/mutants.def"
#undef MUTANT
};

static struct client *client_of(struct meta *m)
{
    assert(m->ops == &sim_engine_ops);
    return (struct client *)m;
}

/* ---- what a commit means ---- */

static bool is_of_model(enum meta_kind kind)
{
    return kind == META_ATTR || kind == META_ENTRY || kind == META_CHUNK || kind == META_XATTR ||
           kind == META_QUOTA;
}

static void note_garbage(struct world *w, uint64_t slice)
{
    if (w->garbage_count == w->garbage_room) {
        w->garbage_room = 2 * w->garbage_room + 64;
        w->garbage = xrealloc(w->garbage, w->garbage_room * sizeof *w->garbage);
    }
    w->garbage[w->garbage_count++] = slice;
}

/* Open, on a client whose heartbeat was in time? */
static bool is_open(const struct world *w, uint64_t ino)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        const struct client *c = &w->clients[i];
        bool in_time = !c->crashed && c->v != NULL && w->now_ms - c->beat_ms < SIM_SESSION_MS / 2;
        for (size_t k = 0; in_time && k < c->open_count; k++) {
            if (c->open[k] == ino)
                return true;
        }
    }
    return false;
}

static void note_freed(struct world *w, uint64_t ino)
{
    const struct model_inode *i = model_find(&w->model, ino);
    if (i == NULL || model_nlink(&w->model, i) != 0)
        sim_fail(w, "inode %llu is freed, and has a name", (unsigned long long)ino);
    else if (is_open(w, ino))
        sim_fail(w, "inode %llu is freed, and is open", (unsigned long long)ino);
    else
        model_free_inode(&w->model, ino);
}

/* A session that was alive is never ended by others. */
static void note_ended(struct world *w, const struct attempt *a, uint64_t session)
{
    for (unsigned i = 0; a != NULL && a->op.kind == OP_CLEAN && i < SIM_CLIENTS; i++) {
        const struct client *c = &w->clients[i];
        bool in_time = !c->crashed && c->v != NULL && w->now_ms - c->beat_ms < SIM_SESSION_MS / 2;
        if (in_time && volume_session(c->v) == session)
            sim_fail(w, "session %llu is ended, and is alive", (unsigned long long)session);
    }
}

static bool has(struct world *w, struct meta_key key)
{
    struct arena *arena = arena_new(256);
    struct meta_item item = {.ask = META_GET, .key = key};
    struct meta_read r = {.arena = arena, .items = &item, .count = 1};
    bool found = w->real->ops->read(w->real, &r, NULL) == 0 && item.value.found;
    arena_free(arena);
    return found;
}

/* A lease is not taken from a session that is there before its time. */
static void note_lease(struct world *w, const struct meta_step *s)
{
    const struct meta_value value = {.found = true, .data = s->data, .size = s->size};
    const int64_t session = meta_field(&value, 0);
    bool living = has(w, meta_key_point(META_SESSION, (uint64_t)w->lease_session));
    if (living && w->lease_session != session && w->now_ms < w->lease_until_ms)
        sim_fail(w, "session %lld took the lease of session %lld", (long long)session,
                 (long long)w->lease_session);
    w->lease_session = session;
    w->lease_until_ms = meta_field(&value, 8);
}

/* A slice that is named was, until now, in a range of a session: a tool that looks for garbage lets
 * it be. */
static void note_write(struct world *w, const struct attempt *a)
{
    struct arena *arena = arena_new(256);
    struct meta_item sessions = {.ask = META_PAGE, .key.kind = META_SESSION, .limit = 100};
    struct meta_read r = {.arena = arena, .items = &sessions, .count = 1};
    bool found = w->real->ops->read(w->real, &r, NULL) != 0;
    for (size_t i = 0; i < sessions.count && !found; i++) {
        struct meta_item ranges = {.ask = META_PAGE, .limit = 100};
        ranges.key = (struct meta_key){.kind = META_RANGE, .id = sessions.rows[i].key.id};
        r.items = &ranges;
        found = w->real->ops->read(w->real, &r, NULL) != 0;
        for (size_t k = 0; k < ranges.count; k++)
            found |= a->op.slice >= ranges.rows[k].key.sub &&
                     a->op.slice < ranges.rows[k].key.sub + IDS_SLICE_RANGE;
    }
    if (!found)
        sim_fail(w, "slice %llu is named, and was in no session's range",
                 (unsigned long long)a->op.slice);
    arena_free(arena);
}

/* What may be returned now by calls that have not committed. */
static void note_running(struct world *w)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct attempt *a = w->clients[i].now;
        if (a == NULL || a->commits > 0 || a->op.kind >= OP_CHANGES_END)
            continue;
        struct op_result r = model_do(&w->model, &a->op, false, 0);
        sim_note(a, &r);
    }
}

static void take_effect(struct world *w, struct attempt *a, uint64_t made)
{
    if (!a->running && !a->in_doubt)
        sim_fail(w, "%s: its commit was made after it had returned", op_name(a->op.kind));
    else if (a->settled)
        sim_fail(w, "%s: its commit was made after a takeover", op_name(a->op.kind));
    else if (a->commits++ > 0)
        sim_fail(w, "%s: committed twice", op_name(a->op.kind));
    else
        a->committed = model_do(&w->model, &a->op, true, made);
    if (a->committed.rc != 0)
        sim_fail(w, "%s: committed, and the model says %d", op_name(a->op.kind), a->committed.rc);
}

static bool is_of_trash(const struct meta_key *key)
{
    return trash_has(key->id) && (key->kind == META_ATTR || key->kind == META_ENTRY);
}

/* The number of its quota that a commit gives an inode. */
static void note_quota(struct world *w, uint64_t ino, const struct meta_step *steps, size_t count)
{
    struct model_inode *i = model_find(&w->model, ino);
    for (size_t k = 0; k < count && i != NULL; k++) {
        const struct meta_step *s = &steps[k];
        const struct meta_value value = {.found = true, .data = s->data, .size = s->size};
        const size_t at = attr_quota_at(i->mode);
        if (s->key.kind != META_ATTR || s->key.id != ino)
            continue;
        if (s->kind == META_PUT)
            i->quota = (uint64_t)meta_field(&value, at);
        else if (s->kind == META_SET && s->offset == at)
            i->quota = (uint64_t)meta_field(&value, 0);
    }
}

/* A commit of a restoration before its last one, or after it was refused: the inode gets another
 * quota in the trash. */
static bool note_restore(struct world *w, struct attempt *a, const struct meta_step *steps,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (steps[i].key.kind == META_ENTRY && steps[i].kind == META_PUT)
            return false;
    }
    note_quota(w, a->op.ino, steps, count);
    return true;
}

/* Commits of a clone before its last one; made: an inode, or 0.  True: this is one. */
static bool note_clone(struct world *w, struct attempt *a, const struct meta_step *steps,
                       size_t count, uint64_t made)
{
    bool places = false, removes = false;
    for (size_t i = 0; i < count; i++) {
        const bool of_entry = steps[i].key.kind == META_ENTRY;
        places |= of_entry && steps[i].kind == META_PUT && !trash_has(steps[i].key.id);
        removes |= of_entry && steps[i].kind == META_DELETE;
    }
    if (made != 0) {
        a->built = made;
        model_build(&w->model, a->op.ino, made);
        note_quota(w, made, steps, count);
    } else if (removes && !places) {
        model_find(&w->model, a->built)->nlink = 0;
        note_quota(w, a->built, steps, count);
    }
    return !places;
}

static void committed(struct world *w, struct attempt *a, const struct meta_step *steps,
                      size_t count)
{
    uint64_t made = 0, quota = 0;
    bool touched = false, seen;
    for (size_t i = 0; i < count && !sim_failed(w); i++) {
        const struct meta_step *s = &steps[i];
        if (s->kind < META_PUT)
            continue;
        touched |= is_of_model(s->key.kind) && !is_of_trash(&s->key);
        if (s->kind == META_PUT && s->key.kind == META_QUOTA)
            quota = s->key.id;
        if (s->kind == META_PUT && s->key.kind == META_ATTR && !trash_has(s->key.id))
            made = s->key.id;
        if (s->kind == META_PUT && s->key.kind == META_GARBAGE)
            note_garbage(w, s->key.sub);
        if (s->kind == META_PUT && s->key.kind == META_LEASE)
            note_lease(w, s);
        if (s->kind == META_DELETE && s->key.kind == META_ATTR && !trash_has(s->key.id))
            note_freed(w, s->key.id);
        if (s->kind == META_DELETE && s->key.kind == META_SESSION)
            note_ended(w, a, s->key.id);
    }
    if (made != 0 && model_find(&w->model, made) != NULL)
        sim_fail(w, "inode %llu is made twice", (unsigned long long)made);
    if (sim_failed(w))
        return;
    seen = touched; /* a clone that is built counts already */
    if (a != NULL && a->op.kind == OP_CLONE)
        touched &= !note_clone(w, a, steps, count, made);
    if (a != NULL && a->op.kind == OP_RESTORE && touched)
        touched = !note_restore(w, a, steps, count);
    if (touched && a != NULL && a->op.kind < OP_CHANGES_END)
        take_effect(w, a, a->op.kind == OP_CLONE ? a->built : quota != 0 ? quota : made);
    if (touched && a != NULL &&
        (a->op.kind == OP_WRITE || a->op.kind == OP_APPEND || a->op.kind == OP_COMPACT))
        note_write(w, a);
    if (seen && !sim_failed(w))
        note_running(w);
}

/* ---- commits ---- */

static bool is_left_out(const struct world *w, const struct attempt *a, const struct meta_step *s)
{
    for (size_t i = 0; w->options.mutant != NULL && i < sizeof mutants / sizeof *mutants; i++) {
        bool of_op = mutants[i].op == ANY || (a != NULL && (int)a->op.kind == mutants[i].op);
        if (of_op && strcmp(mutants[i].name, w->options.mutant) == 0 &&
            s->kind == mutants[i].step &&
            (mutants[i].key == META_KINDS || s->key.kind == mutants[i].key) &&
            (mutants[i].offset == ANY || (size_t)mutants[i].offset == s->offset))
            return true;
    }
    return false;
}

static int make(struct world *w, struct attempt *a, struct meta_commit *c, struct error *err)
{
    _cleanup_free_ struct meta_step *steps = xcalloc(c->count + 1, sizeof *steps);
    _cleanup_free_ size_t *place = xcalloc(c->count + 1, sizeof *place);
    struct meta_commit own = {.steps = steps};
    for (size_t i = 0; i < c->count; i++) {
        place[own.count] = i;
        if (!is_left_out(w, a, &c->steps[i]))
            steps[own.count++] = c->steps[i];
    }
    int rc = w->real->ops->commit(w->real, &own, err);
    c->conflict = rc == E_PRECONDITION ? place[own.conflict] : 0;
    w->commits += rc == 0;
    w->conflicts += rc == E_PRECONDITION;
    if (rc == 0)
        committed(w, a, c->steps, c->count);
    return rc;
}

static void delay(struct client *c, const struct meta_commit *commit)
{
    struct delayed *d = xcalloc(1, sizeof *d);
    *d = (struct delayed){
        .next = c->w->delayed,
        .client = c,
        .attempt = c->now,
        .count = commit->count,
        .arena = arena_new(1024),
    };
    d->steps = arena_alloc(d->arena, (d->count + 1) * sizeof *d->steps);
    for (size_t i = 0; i < d->count; i++) {
        struct meta_step *s = &d->steps[i];
        *s = commit->steps[i];
        if (s->key.name != NULL)
            s->key.name = arena_strndup(d->arena, s->key.name, s->key.name_size);
        void *data = arena_alloc(d->arena, s->size + 1);
        if (s->size > 0)
            memcpy(data, s->data, s->size);
        s->data = data;
    }
    c->w->delayed = d;
}

static void make_delayed(struct world *w)
{
    struct delayed *d = w->delayed;
    struct meta_commit c = {.steps = d->steps, .count = d->count};
    w->delayed = d->next;
    make(w, d->attempt, &c, NULL);
    arena_free(d->arena);
    free(d);
}

void sim_flush_delayed(struct world *w)
{
    while (w->delayed != NULL)
        make_delayed(w);
}

static int engine_commit(struct meta *m, struct meta_commit *commit, struct error *err)
{
    struct client *c = client_of(m);
    struct world *w = c->w;
    sim_yield(c);
    if (w->delayed != NULL && rng_below(&w->rng, 4) == 0)
        make_delayed(w);
    if (c->crashed)
        return error_set(err, E_NET, "crashed");
    if (w->calm || rng_below(&w->rng, 1000) >= w->doubt)
        return make(w, c->now, commit, err);
    c->troubled = true;
    w->doubts++;
    switch (rng_below(&w->rng, 3)) {
    case 0: /* the reply is lost */
        make(w, c->now, commit, NULL);
        break;
    case 1: /* the request is on its way */
        delay(c, commit);
        break;
    default: /* the request is lost */
        break;
    }
    if (w->crash > 0 && rng_below(&w->rng, 8) == 0) /* before the doubt is cleared */
        sim_crash(c);
    return error_set(err, E_IN_DOUBT, "no reply");
}

/* ---- the other calls ---- */

static int pass(struct client *c, struct error *err)
{
    struct world *w = c->w;
    sim_yield(c);
    if (c->crashed)
        return error_set(err, E_NET, "crashed");
    if (w->calm || rng_below(&w->rng, 1000) >= w->failure)
        return 0;
    c->troubled = true;
    return error_set(err, E_NET, "away");
}

static int engine_read(struct meta *m, struct meta_read *r, struct error *err)
{
    struct client *c = client_of(m);
    int rc = pass(c, err);
    return rc != 0 ? rc : c->w->real->ops->read(c->w->real, r, err);
}

static int engine_queue(struct meta *m, struct arena *arena, struct meta_item *item, uint64_t until,
                        struct error *err)
{
    struct client *c = client_of(m);
    int rc = pass(c, err);
    return rc != 0 ? rc : c->w->real->ops->queue(c->w->real, arena, item, until, err);
}

static int engine_now(struct meta *m, int64_t *unix_ms, struct error *err)
{
    struct client *c = client_of(m);
    int rc = pass(c, err);
    *unix_ms = c->w->now_ms;
    return rc;
}

static void engine_close(struct meta *m)
{
    (void)m;
}

static int engine_open(const char *where, bool make, struct meta **out, struct error *err)
{
    (void)out;
    (void)make;
    return error_set(err, E_UNSUPPORTED, "sim://%s: a client has its engine", where);
}

const struct meta_ops sim_engine_ops = {
    .scheme = "sim",
    .open = engine_open,
    .close = engine_close,
    .read = engine_read,
    .commit = engine_commit,
    .queue = engine_queue,
    .now = engine_now,
};
