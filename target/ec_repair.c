#include "target/ec_repair.h"

#include <semaphore.h>
#include <string.h>

#include "cluster/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/bpipe.h"
#include "target/ec.h"
#include "target/ec_manifest.h"
#include "target/ec_mend.h"
#include "target/ec_plan.h"
#include "target/ec_slices.h"
#include "target/ec_source.h"
#include "target/losses.h"
#include "target/target.h"

enum { NAMES_AT_ONCE = 500, PIPE_BYTES = 256 << 10, ROUNDS_MAX = 4 };

/* One slice on its way to its new home. */
struct sending {
    struct bpipe *pipe;
    char *url;
    sem_t over;
    struct error err;
};

static void sent(void *arg, struct http_result *r)
{
    struct sending *g = arg;
    http_result_error(r, g->url, &g->err);
    sem_post(&g->over);
}

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    return bpipe_write(((struct sending *)ctx)->pipe, data, len, err);
}

static int make_slice(const struct ec_reading *r, const struct bucket *b,
                      const struct ec_homes *from, unsigned slice, const struct node *to,
                      ec_mask *damaged, struct error *err)
{
    struct sending g = {.pipe = bpipe_new(PIPE_BYTES), .err = ERROR_INIT};
    struct error why = ERROR_INIT;
    sem_init(&g.over, 0, 0);
    g.url = ec_slice_put_url(to, b, r->manifest.tag, slice, r->name);
    const struct http_call call = {.method = HTTP_PUT,
                                   .url = g.url,
                                   .upload = g.pipe,
                                   .upload_length =
                                       (int64_t)ec_layout_slice_bytes(&r->manifest.layout)};
    http_call_start(r->target->data_client, &call, sent, &g);
    int code = ec_source_rebuild(r, from, slice, take, &g, damaged, &why);
    bpipe_finish(g.pipe, code != 0 ? &why : NULL);
    while (sem_wait(&g.over) != 0)
        ;                  /* EINTR is the only failure of an initialised semaphore */
    if (g.err.code != 0) { /* the call says why it took no more */
        why = g.err;
        code = g.err.code;
    }
    if (code != 0)
        error_set(err, code, "slice %u for target '%s': %s", slice, to->id, why.message);
    sem_destroy(&g.over);
    bpipe_unref(g.pipe);
    free(g.url);
    return code;
}

/* --- one name --------------------------------------------------------------------------------- */

/* Who is there and does not answer may have what seems to be missing. */
static int check_answers(const struct ec_found *found, size_t count, struct error *err)
{
    const struct node *silent = ec_plan_silent(found, count);
    if (silent == NULL)
        return 0;
    return error_set(err, E_NODE_UNREACHABLE, "target '%s' does not say what it has", silent->id);
}

static int drop_surplus(const struct ec_reading *r, const struct ec_found *found, size_t count,
                        struct ec_repaired *done, struct error *err)
{
    int code = 0;
    for (size_t n = 0; n < count && code == 0; n++) {
        for (ec_mask left = found[n].surplus; left != 0 && code == 0; left &= left - 1) {
            code = ec_slice_delete(r->target, found[n].node, r->bucket_id, r->manifest.tag,
                                   (unsigned)__builtin_ctzll(left), err);
            done->dropped += code == 0;
        }
    }
    return code;
}

static int check_stranded(const struct ec_reading *r, const struct ec_mending *m, struct error *err)
{
    if (m->homeless != 0)
        log_debug("slices without a target", lstr("name", r->name), lu64("slices", m->homeless));
    if ((m->homeless & m->leaving) == 0)
        return 0;
    return error_set(err, E_NO_TARGETS,
                     "slices of '%s' are on targets that leave, and no other target can take them",
                     r->name);
}

/* *damaged: what is; then what was found to be. */
static int mend_once(const struct ec_repair_ask *ask, const struct ec_reading *r,
                     const struct bucket *b, ec_mask *damaged, struct ec_repaired *done,
                     struct error *err)
{
    const struct ec_layout *l = &r->manifest.layout;
    struct ec_homes from;
    struct ec_mending m;
    _cleanup_free_ struct ec_found *found = NULL;
    size_t count = ec_slices_find(r->target, r->state, r->bucket_id, r->name, r->manifest.tag,
                                  l->k + l->m, &found);
    bool all = ec_all_answered(found, count);
    int code = check_answers(found, count, err);
    if (code == 0)
        code = ec_plan_check(found, count, l->k, l->k + l->m, err);
    ec_plan_read(found, count, l->k + l->m, &from);
    ec_plan_repair(found, count, l->k + l->m, *damaged, &m);
    ec_plan_strike(found, count, &from, *damaged);
    ec_plan_read(found, count, l->k + l->m, &from);
    for (unsigned i = 0; i < from.count; i++) {
        if (ask->present_only && !all && ((*damaged | m.leaving) >> i & 1) == 0)
            m.to.all[i] = NULL;
    }
    *damaged = 0;
    if (code == 0 && ask->endangered_only && ec_plan_may_wait(&from, &m.to, l->k)) {
        done->put_off = true;
        return 0;
    }
    for (unsigned i = 0; i < m.to.count && code == 0 && !ask->stop->wanted; i++) {
        if (m.to.all[i] == NULL)
            continue;
        code = make_slice(r, b, &from, i, m.to.all[i], damaged, err);
        done->made += code == 0;
        done->bytes += code == 0 ? ec_layout_slice_bytes(l) : 0;
    }
    if (code == 0)
        code = drop_surplus(r, found, count, done, err);
    if (code == E_CORRUPT) {
        ec_plan_strike(found, count, &from, *damaged);
        done->lost = ec_plan_check(found, count, l->k, l->k + l->m, NULL) == E_CORRUPT;
    }
    return code != 0 ? code : check_stranded(r, &m, err);
}

/* What is read for one slice may show that another is damaged. */
static int mend(const struct ec_repair_ask *ask, const struct ec_reading *r, const struct bucket *b,
                struct ec_repaired *done, struct error *err)
{
    ec_mask damaged = ask->damaged;
    int code, i = 0;
    done->length = r->manifest.layout.length;
    pthread_mutex_lock(&ask->target->ec->mending);
    while (((code = mend_once(ask, r, b, &damaged, done, err)) == 0 ||
            (code == E_CORRUPT && !done->lost)) &&
           damaged != 0) {
        if (++i == ROUNDS_MAX) {
            code = error_set(err, E_CORRUPT, "slices of '%s' are damaged again and again", r->name);
            break;
        }
    }
    pthread_mutex_unlock(&ask->target->ec->mending);
    return code;
}

/* 1: there is such an object here, in slices. */
static int open_manifest(struct ec_reading *r, struct error *err)
{
    struct object o;
    int code = object_head(r->target->store, r->bucket_id, r->name, &o, err);
    if (code == E_OBJECT_NOT_FOUND || (code == 0 && o.attr.slices == NULL))
        return 0;
    if (code == 0)
        code = ec_manifest_parse(o.attr.slices, &r->manifest, err);
    return code != 0 ? code : 1;
}

static bool acts(const struct target *t, const struct cluster_state *s, const struct bucket *b,
                 const char *name, bool *owns)
{
    struct owners owners;
    owners_of(s, b, name, &owners);
    *owns = owners_has(&owners, t->id);
    return owners.acting != NULL && strcmp(owners.acting->id, t->id) == 0;
}

int ec_repair_name(const struct ec_repair_ask *ask, const struct cluster_state *s,
                   struct ec_repaired *done, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, ask->bucket_id);
    struct ec_reading r = {
        .target = ask->target, .state = s, .bucket_id = ask->bucket_id, .name = ask->name};
    struct error why = ERROR_INIT;
    bool owns;
    *done = (struct ec_repaired){0};
    if (b == NULL || !acts(ask->target, s, b, ask->name, &owns))
        return 0;
    int found = open_manifest(&r, &why);
    int code = found == 1 ? mend(ask, &r, b, done, &why) : found;
    if (code == E_CORRUPT && done->lost)
        losses_note(ask->target->losses, ask->bucket_id, ask->name, r.manifest.tag);
    else if (code == 0)
        losses_forget(ask->target->losses, ask->bucket_id, ask->name, r.manifest.tag);
    return code == 0 ? 0 : error_set(err, code, "%s", why.message);
}

/* --- for the jobs ----------------------------------------------------------------------------- */

/* Of a name that this target is to give up: are all its slices where they stay? */
static int look_after(const struct spread *s, const struct cluster_state *state,
                      const struct bucket *b, const char *name, struct ec_walk *walk)
{
    struct ec_reading r = {.target = s->target, .state = state, .bucket_id = b->id, .name = name};
    struct error err = ERROR_INIT;
    int code = open_manifest(&r, &err);
    if (code != 1)
        return code; /* what is damaged is spread.h's to tell */
    unsigned slices = r.manifest.layout.k + r.manifest.layout.m;
    _cleanup_free_ struct ec_found *found = NULL;
    size_t count = ec_slices_find(s->target, state, b->id, name, r.manifest.tag, slices, &found);
    if (ec_plan_may_go(found, count, slices))
        return 0;
    walk->waits = true;
    ec_mend_want(s->target, b->id, name, 0);
    return 0;
}

static void count_name(const struct spread *s, const char *name, const struct ec_repaired *done,
                       const struct error *err)
{
    if (err->code != 0 || done->made > 0)
        job_tally_expect(s->tally, 1);
    if (err->code == 0 && done->made > 0)
        job_tally_done(s->tally, done->length);
    if (err->code == 0)
        return;
    log_error("slices not repaired", lstr("name", name), lerr(err));
    job_tally_fail(s->tally, name, err);
}

static int mend_name(const struct spread *s, uint64_t bucket_id, const char *name,
                     struct ec_walk *walk, struct error *err)
{
    struct ec_repaired done;
    struct error why = ERROR_INIT;
    bool owns;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    int code = s->check(s->ctx, state, err);
    const struct bucket *b = bmd_bucket_by_id(&state->bmd, bucket_id);
    if (code != 0 || b == NULL)
        return code;
    if (!acts(s->target, state, b, name, &owns))
        return owns || s->strange == NULL ? 0 : look_after(s, state, b, name, walk);
    const struct ec_repair_ask ask = {.target = s->target,
                                      .stop = s->stop,
                                      .bucket_id = bucket_id,
                                      .name = name,
                                      .endangered_only = s->put_off != NULL};
    (void)ec_repair_name(&ask, state, &done, &why);
    walk->made = walk->made || done.made > 0;
    if (done.put_off)
        *s->put_off = true;
    count_name(s, name, &done, &why);
    (void)job_pace_wait(s->pace, done.bytes);
    return 0;
}

/* --- the names -------------------------------------------------------------------------------- */

struct batch {
    struct arena *arena;
    const char *names[NAMES_AT_ONCE];
    size_t count;
    char last[ATTR_NAME_MAX + 1];
    bool more;
};

static int collect(struct batch *b, struct mountpath *mp, uint64_t bucket_id, struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int found = index_cursor_open(mp->index, &c, err);
    if (found == 0)
        found = index_cursor_seek(c, bucket_id, b->last, *b->last != '\0', err);
    b->count = 0;
    size_t steps = 0;
    for (; found == 1 && b->count < NAMES_AT_ONCE && steps++ < INDEX_STEPS_MAX;
         found = index_cursor_next(c, err)) {
        const struct index_record *rec = index_cursor_record(c);
        snprintf(b->last, sizeof b->last, "%s", index_cursor_name(c));
        if (!rec->tombstone && rec->job == NULL && rec->size > 0)
            b->names[b->count++] = arena_strdup(b->arena, b->last);
    }
    b->more = found == 1;
    return found < 0 ? found : 0;
}

int ec_repair_bucket(const struct spread *s, struct mountpath *mp, uint64_t bucket_id,
                     struct ec_walk *walk, struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){.arena = arena_new(64 * 1024), .more = true};
    int code = 0;
    while (code == 0 && b->more && !s->stop->wanted) {
        arena_reset(b->arena);
        code = collect(b, mp, bucket_id, err);
        for (size_t i = 0; i < b->count && code == 0 && !s->stop->wanted; i++)
            code = mend_name(s, bucket_id, b->names[i], walk, err);
    }
    arena_free(b->arena);
    free(b);
    if (code == 0 && s->stop->wanted)
        return error_set(err, E_ABORTED, "the job was stopped");
    return code;
}
