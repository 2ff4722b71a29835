#include "target/slices/repair.h"

#include <string.h>

#include "cluster/placement/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "io/bpipe.h"
#include "target/copies/earlier_owners.h"
#include "target/slices/ec.h"
#include "target/slices/find.h"
#include "target/format/ec_manifest.h"
#include "target/slices/plan.h"
#include "target/slices/source.h"
#include "target/disk/index_merge.h"
#include "target/copies/unrecoverable.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 256 << 10, ROUNDS_MAX = 4 };

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

static int make_slice(const struct ec_reading *r, const struct ec_homes *from, unsigned slice,
                      const struct node *to, ec_mask *damaged, struct error *err)
{
    struct sending g = {.pipe = bpipe_new(PIPE_BYTES), .err = ERROR_INIT};
    struct error why = ERROR_INIT;
    sem_init(&g.over, 0, 0);
    g.url = ec_slice_put_url(to, r->bucket_id, r->manifest.tag, slice, r->name, true);
    const struct http_call call = {.method = HTTP_PUT,
                                   .url = g.url,
                                   .node = to->id,
                                   .upload = g.pipe,
                                   .upload_length =
                                       (int64_t)ec_layout_slice_bytes(&r->manifest.layout)};
    http_call_start(r->target->data_client, &call, sent, &g);
    int code = ec_source_rebuild(r, from, slice, take, &g, damaged, &why);
    bpipe_finish(g.pipe, code != 0 ? &why : NULL);
    semaphore_wait(&g.over);
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

/* Who is there and does not answer may have what seems to be missing; before a name is given up all
 * have to say. */
static int check_answers(const struct ec_repair_ask *ask, const struct ec_found *found,
                         size_t count, struct error *err)
{
    const struct node *silent = ec_plan_silent(found, count);
    if (silent != NULL)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s' does not report its slices",
                         silent->id);
    if (ask->former && !ec_all_answered(found, count))
        return error_set(err, E_NODE_UNREACHABLE, "not all targets say what they have");
    return 0;
}

static int drop_surplus(const struct ec_reading *r, const struct ec_found *found, size_t count,
                        struct ec_repaired *done, struct error *err)
{
    int code = 0;
    for (size_t n = 0; n < count && code == 0; n++) {
        for (ec_mask left = found[n].surplus; left != 0 && code == 0; left &= left - 1) {
            code = ec_slice_delete(r->target, r->state, found[n].node, r->bucket_id,
                                   r->manifest.tag, (unsigned)__builtin_ctzll(left), err);
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

/* What there is, and what is to be done. */
struct task {
    struct ec_found *found;
    size_t count;
    struct ec_homes from;
    struct ec_mending todo;
};

static void look(const struct ec_reading *r, struct task *t)
{
    const struct ec_layout *l = &r->manifest.layout;
    const struct ec_find what = {.bucket_id = r->bucket_id,
                                 .name = r->name,
                                 .tag = r->manifest.tag,
                                 .slices = l->k + l->m,
                                 .removes = true};
    t->count = ec_slices_find(r->target, r->state, &what, &t->found);
}

static void plan(const struct ec_repair_ask *ask, unsigned slices, ec_mask damaged, struct task *t)
{
    bool all = ec_all_answered(t->found, t->count);
    ec_plan_repair(t->found, t->count, slices, damaged, &t->todo);
    if (ask->moves && ec_homes_mask(&t->todo.to) == 0)
        ec_plan_move(t->found, t->count, slices, &t->todo.to);
    ec_plan_read(t->found, t->count, slices, &t->from);
    ec_plan_pass_over(t->found, t->count, &t->from, damaged);
    ec_plan_read(t->found, t->count, slices, &t->from);
    t->from.doubted |= damaged;
    for (unsigned i = 0; i < slices; i++) {
        if (ask->present_only && !all && ((damaged | t->todo.leaving) >> i & 1) == 0)
            t->todo.to.all[i] = NULL;
    }
}

/* It is good, wherever it was damaged before; others are made out of it. */
static void take_made(struct task *t, unsigned slice, ec_mask *damaged)
{
    const ec_mask bit = (ec_mask)1 << slice;
    t->from.all[slice] = t->todo.to.all[slice];
    t->from.doubted &= ~bit;
    t->from.left &= ~bit;
    *damaged &= ~bit;
}

static int make_all(const struct ec_repair_ask *ask, const struct ec_reading *r, struct task *t,
                    ec_mask *damaged, struct ec_repaired *done, struct error *err)
{
    int code = 0;
    for (unsigned i = 0; i < t->todo.to.count && code == 0 && !ask->stop->wanted; i++) {
        if (t->todo.to.all[i] == NULL)
            continue;
        t->from.doubted |= *damaged;
        code = make_slice(r, &t->from, i, t->todo.to.all[i], damaged, err);
        if (code == 0)
            take_made(t, i, damaged);
        done->made += code == 0;
        done->bytes += code == 0 ? ec_layout_slice_bytes(&r->manifest.layout) : 0;
    }
    return code;
}

/* *damaged: what is; then what was found to be. */
static int mend_once(const struct ec_repair_ask *ask, const struct ec_reading *r, struct task *t,
                     ec_mask *damaged, struct ec_repaired *done, struct error *err)
{
    const unsigned k = r->manifest.layout.k, slices = k + r->manifest.layout.m;
    int code = check_answers(ask, t->found, t->count, err);
    if (code == 0)
        code = ec_plan_check(t->found, t->count, k, slices, err);
    plan(ask, slices, *damaged, t);
    *damaged = 0;
    if (code == 0 && ask->endangered_only && ec_plan_may_wait(&t->from, &t->todo.to, k)) {
        done->put_off = true;
        return 0;
    }
    if (code == 0)
        code = make_all(ask, r, t, damaged, done, err);
    if (code == 0)
        code = drop_surplus(r, t->found, t->count, done, err);
    if (code == E_CORRUPT) {
        ec_plan_strike(t->found, t->count, &t->from, *damaged);
        done->lost = ec_plan_check(t->found, t->count, k, slices, NULL) == E_CORRUPT;
    }
    return code != 0 ? code : check_stranded(r, &t->todo, err);
}

/* Again where what was read for one slice has shown that another is damaged, and where slices were
 * copied to their places: then they are there twice. */
static int mend(const struct ec_repair_ask *ask, const struct ec_reading *r,
                struct ec_repaired *done, struct error *err)
{
    ec_mask damaged = ask->damaged;
    bool again = true;
    int code = 0;
    done->length = r->manifest.layout.length;
    pthread_mutex_lock(&ask->target->ec->mending);
    for (int i = 0; i < ROUNDS_MAX && again; i++) {
        struct task t;
        unsigned made = done->made;
        look(r, &t);
        code = mend_once(ask, r, &t, &damaged, done, err);
        free(t.found);
        again = damaged != 0 ? code == 0 || (code == E_CORRUPT && !done->lost)
                             : code == 0 && ask->moves && done->made > made;
    }
    pthread_mutex_unlock(&ask->target->ec->mending);
    if (code == 0 && damaged != 0)
        return error_set(err, E_CORRUPT, "slices of '%s' are damaged again and again", r->name);
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
                 const char *name)
{
    struct owners owners;
    owners_of(s, b, name, &owners);
    return owners.acting != NULL && strcmp(owners.acting->id, t->id) == 0;
}

/* By the owner that acts. */
static void note_loss(const struct ec_repair_ask *ask, uint64_t tag, int code, bool lost)
{
    if (ask->former)
        return;
    if (code == E_CORRUPT && lost)
        unrecoverable_note(ask->target->unrecoverable, ask->bucket_id, ask->name, tag);
    else if (code == 0)
        unrecoverable_forget(ask->target->unrecoverable, ask->bucket_id, ask->name, tag);
}

int ec_repair_name(const struct ec_repair_ask *ask, const struct cluster_state *s,
                   struct ec_repaired *done, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, ask->bucket_id);
    struct ec_reading r = {
        .target = ask->target, .state = s, .bucket_id = ask->bucket_id, .name = ask->name};
    struct error why = ERROR_INIT;
    *done = (struct ec_repaired){0};
    if (b == NULL || (!ask->former && !acts(ask->target, s, b, ask->name)))
        return 0;
    int found = open_manifest(&r, &why);
    int code = found == 1 ? mend(ask, &r, done, &why) : found;
    note_loss(ask, r.manifest.tag, code, done->lost);
    return code == 0 ? 0 : error_set(err, code, "%s", why.message);
}

/* --- for the jobs ----------------------------------------------------------------------------- */

static void count_name(const struct antientropy *s, const char *name,
                       const struct ec_repaired *done, const struct error *err)
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

static int mend_name(const struct antientropy *s, uint64_t bucket_id, const char *name,
                     struct ec_walk *walk, struct error *err)
{
    struct ec_repaired done;
    struct error why = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    int code = s->check(s->ctx, state, err);
    const struct bucket *b = bmd_bucket_by_id(&state->bmd, bucket_id);
    if (code != 0 || b == NULL || !acts(s->target, state, b, name))
        return code;
    const struct ec_repair_ask ask = {.target = s->target,
                                      .stop = s->stop,
                                      .bucket_id = bucket_id,
                                      .name = name,
                                      .endangered_only = s->put_off != NULL,
                                      .moves = s->strange != NULL};
    (void)ec_repair_name(&ask, state, &done, &why);
    walk->made = walk->made || done.made > 0;
    if (done.put_off)
        *s->put_off = true;
    count_name(s, name, &done, &why);
    (void)job_pace_wait(s->pace, done.bytes);
    return 0;
}

/* 1: it is in slices, and what is here is what the owner that acts has, too; 0: no. */
static int is_current(const struct antientropy *s, const struct cluster_state *state,
                      const struct bucket *b, const char *name, struct error *err)
{
    struct ec_reading r = {.target = s->target, .state = state, .bucket_id = b->id, .name = name};
    struct owners owners;
    struct object_held held;
    int found = open_manifest(&r, err);
    if (found != 1)
        return found;
    owners_of(state, b, name, &owners);
    if (owners.acting == NULL)
        return error_set(err, E_NODE_UNREACHABLE, "it has no leader");
    int code = earlier_ask_node(s->target, state, owners.acting, b->id, name, &held, err);
    return code != 0 ? code : held.slices == r.manifest.tag;
}

bool ec_repair_before_it_goes(const struct antientropy *s, uint64_t bucket_id, const char *name)
{
    struct ec_repaired done = {0};
    struct error why = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    const struct bucket *b = bmd_bucket_by_id(&state->bmd, bucket_id);
    const struct ec_repair_ask ask = {.target = s->target,
                                      .stop = s->stop,
                                      .bucket_id = bucket_id,
                                      .name = name,
                                      .moves = true,
                                      .former = true};
    if (s->check(s->ctx, state, NULL) != 0)
        return false;
    int code = b != NULL ? is_current(s, state, b, name, &why) : 0;
    if (code == 1)
        code = ec_repair_name(&ask, state, &done, &why);
    if (code == 0)
        why = ERROR_INIT;
    count_name(s, name, &done, &why);
    (void)job_pace_wait(s->pace, done.bytes);
    return code == 0;
}

/* --- the names -------------------------------------------------------------------------------- */

static bool has_bytes(const void *ctx, const char *name, const struct index_record *rec)
{
    (void)ctx, (void)name;
    return !rec->tombstone && rec->job == NULL && rec->size > 0;
}

int ec_repair_bucket(const struct antientropy *s, struct mountpath *mp, uint64_t bucket_id,
                     struct ec_walk *walk, struct error *err)
{
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(bucket_id, &s->stop->wanted, has_bytes, NULL);
    int code = 0;
    while (code == 0 && b->walk.more && !s->stop->wanted) {
        code = index_merge_fill(s->target->mountpaths, mp, b, err);
        for (size_t i = 0; i < b->count && code == 0 && !s->stop->wanted; i++)
            code = mend_name(s, bucket_id, b->names[i], walk, err);
    }
    if (code == 0 && s->stop->wanted)
        return error_set(err, E_ABORTED, "the job was stopped");
    return code;
}
