#include "target/ec_repair.h"

#include <semaphore.h>
#include <string.h>

#include "cluster/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/bpipe.h"
#include "target/ec_manifest.h"
#include "target/ec_plan.h"
#include "target/ec_slices.h"
#include "target/ec_source.h"
#include "target/target.h"

enum { NAMES_AT_ONCE = 500, PIPE_BYTES = 256 << 10 };

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
                      struct error *err)
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
    int code = ec_source_rebuild(r, from, slice, take, &g, &why);
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

/* Who is there and does not answer may have what seems to be missing. */
static int check_answers(const struct ec_found *found, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!found[i].answered && found[i].node->state != NODE_UNREACHABLE)
            return error_set(err, E_NODE_UNREACHABLE, "target '%s' does not say what it has",
                             found[i].node->id);
    }
    return 0;
}

static int mend(const struct spread *s, const struct ec_reading *r, const struct bucket *b,
                bool *mended, struct error *err)
{
    const struct ec_layout *l = &r->manifest.layout;
    struct ec_homes from, to;
    unsigned homeless;
    _cleanup_free_ struct ec_found *found = NULL;
    size_t count = ec_slices_find(r->target, r->state, r->bucket_id, r->name, r->manifest.tag,
                                  l->k + l->m, &found);
    int code = check_answers(found, count, err);
    if (code == 0)
        code = ec_plan_check(found, count, l->k, l->k + l->m, err);
    ec_plan_read(found, count, l->k + l->m, &from);
    ec_plan_repair(found, count, l->k + l->m, &to, &homeless);
    if (code == 0 && homeless > 0)
        log_debug("slices without a target", lstr("name", r->name), lu64("count", homeless));
    for (unsigned i = 0; i < to.count && code == 0 && !s->stop->wanted; i++) {
        if (to.all[i] == NULL)
            continue;
        *mended = true;
        code = make_slice(r, b, &from, i, to.all[i], err);
    }
    return code;
}

/* 1: it is in slices, and this target acts for it. */
static int open_name(const struct spread *s, const struct cluster_state *state,
                     const struct bucket *b, struct ec_reading *r, struct error *err)
{
    struct owners owners;
    struct object o;
    owners_of(state, b, r->name, &owners);
    if (owners.acting == NULL || strcmp(owners.acting->id, s->target->id) != 0)
        return 0;
    int code = object_head(s->target->store, b->id, r->name, &o, err);
    if (code == E_OBJECT_NOT_FOUND || (code == 0 && o.attr.slices == NULL))
        return 0;
    if (code == 0)
        code = ec_manifest_parse(o.attr.slices, &r->manifest, err);
    return code != 0 ? code : 1;
}

static int mend_name(const struct spread *s, uint64_t bucket_id, const char *name,
                     struct error *err)
{
    bool mended = false;
    struct error why = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *state = state_current(s->target->state);
    int code = s->check(s->ctx, state, err);
    const struct bucket *b = bmd_bucket_by_id(&state->bmd, bucket_id);
    if (code != 0 || b == NULL)
        return code;
    struct ec_reading r = {
        .target = s->target, .state = state, .bucket_id = bucket_id, .name = name};
    int found = open_name(s, state, b, &r, &why);
    if (found == 0)
        return 0;
    code = found < 0 ? found : mend(s, &r, b, &mended, &why);
    if (code != 0 || mended)
        job_tally_expect(s->tally, 1);
    if (code == 0 && mended)
        job_tally_done(s->tally, r.manifest.layout.length);
    if (code == 0)
        return 0;
    log_error("slices not repaired", lstr("name", name), lerr(&why));
    job_tally_fail(s->tally, name, &why);
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
                     struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){.arena = arena_new(64 * 1024), .more = true};
    int code = 0;
    while (code == 0 && b->more && !s->stop->wanted) {
        arena_reset(b->arena);
        code = collect(b, mp, bucket_id, err);
        for (size_t i = 0; i < b->count && code == 0 && !s->stop->wanted; i++)
            code = mend_name(s, bucket_id, b->names[i], err);
    }
    arena_free(b->arena);
    free(b);
    if (code == 0 && s->stop->wanted)
        return error_set(err, E_ABORTED, "the job was stopped");
    return code;
}
