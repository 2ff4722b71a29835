#include "target/prefetch_job.h"

#include <string.h>

#include "common/mem.h"
#include "io/pool.h"
#include "target/backend/backend.h"
#include "target/cold.h"
#include "target/cold_fresh.h"
#include "target/job_pace.h"
#include "target/objects_job.h"

struct prefetch_job {
    struct objects_job base; /* the first: objects_job_status() */
    struct job_pace pace;
};

static void job_free(void *self)
{
    struct prefetch_job *j = self;
    job_pace_done(&j->pace);
    objects_job_done(&j->base);
    free(j);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct prefetch_job *j = xcalloc(1, sizeof *j);
    int code = objects_job_init(&j->base, host, job, "brought here", err);
    job_pace_init(&j->pace, code == 0 ? j->base.spec->rate_bytes_s : 0, &j->base.stop);
    if (code == 0)
        *self = j;
    else
        job_free(j);
    return code;
}

/* --- one object ---------------------------------------------------------------------------------
 */

enum here { NOT_HERE, HERE, HERE_OLD, HERE_GONE };

/* What is here, as the backend sees it; of what has changed, the version. */
static int look(struct prefetch_job *j, const struct bucket *b, const char *name, enum here *here,
                struct version *old, struct error *err)
{
    struct object o;
    int code = object_head(j->base.target->store, b->id, name, &o, err);
    *here = NOT_HERE;
    if (code == E_OBJECT_NOT_FOUND) {
        struct object_held held;
        *err = ERROR_INIT;
        code = object_look(j->base.target->store, b->id, name, &held, err);
        if (code == 0 && held.pending && !held.visible) /* the backend has still what was deleted */
            *here = HERE_GONE;
        return code;
    }
    if (code != 0)
        return code;
    *old = o.attr.version;
    switch (cold_fresh_now(j->base.target, b, &o.attr, err)) {
    case FRESH:
        *here = HERE;
        break;
    case CHANGED:
        *here = HERE_OLD;
        break;
    case GONE:
        *here = HERE_GONE;
        break;
    case UNKNOWN:
    case REFUSED:
        return err->code;
    }
    *err = ERROR_INIT;
    return 0;
}

static int bring(struct prefetch_job *j, const struct bucket *b, const char *name,
                 const struct version *old, uint64_t *bytes, struct error *err)
{
    const struct cold_wanted wanted = {
        .bucket = b, .name = name, .replaces = *old, .pace = &j->pace};
    return cold_bring(j->base.target->cold, &wanted, bytes, err);
}

static void prefetch_one(struct prefetch_job *j, const struct bucket *b, const char *name)
{
    struct job_tally *tally = j->base.tally;
    struct error err = ERROR_INIT;
    struct version old = {0};
    enum here here;
    uint64_t bytes = 0;
    int code = look(j, b, name, &here, &old, &err);
    if (code == 0 && (here == NOT_HERE || here == HERE_OLD))
        code = bring(j, b, name, &old, &bytes, &err);
    if (j->base.stop.wanted && code != 0)
        return;
    if (code == E_OBJECT_NOT_FOUND || (code == 0 && here == HERE_GONE))
        job_tally_missing(tally);
    else if (code != 0)
        job_tally_fail(tally, name, &err);
    else if (here == HERE)
        job_tally_skipped(tally);
    else
        job_tally_done(tally, bytes);
}

/* --- all of them --------------------------------------------------------------------------------
 */

struct batch {
    struct prefetch_job *job;
    const struct bucket *bucket;
    const char *const *names;
};

static int prefetch_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    struct prefetch_job *j = b->job;
    if (j->base.stop.wanted)
        return error_set(err, E_ABORTED, "job '%s' was stopped", j->base.job->id);
    prefetch_one(j, b->bucket, b->names[i]);
    return job_tally_hopeless(j->base.tally) ? job_tally_end(j->base.tally, err) : 0;
}

static int prefetch_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct prefetch_job *j = ctx;
    uint64_t parallel = j->base.spec->parallel;
    _cleanup_state_ const struct cluster_state *s = state_current(j->base.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, j->base.plan.input_bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    if (parallel == 0)
        parallel = j->base.target->params.prefetch_parallel;
    struct batch batch = {.job = j, .bucket = b, .names = names};
    return parallel_for("prefetch", (unsigned)parallel, n, prefetch_nth, &batch, err);
}

/* --- what the backend lists ---------------------------------------------------------------------
 */

/* Each target asks for all names and takes its own; how many there are is known at the end. */
struct listing {
    struct job_names names; /* whose they are */
    char *after;
    bool more;
};

static int take_page(struct prefetch_job *j, struct listing *l, const struct backend_page *page,
                     struct error *err)
{
    _cleanup_free_ const char **ours = xcalloc(page->entry_count + 1, sizeof *ours);
    _cleanup_state_ const struct cluster_state *s = state_current(j->base.target->state);
    size_t count = 0;
    for (size_t i = 0; i < page->entry_count; i++) {
        const char *name = page->entries[i].name;
        if (strcmp(name, l->after) > 0 && job_names_is_ours(&l->names, s, name))
            ours[count++] = name;
    }
    job_tally_expect(j->base.tally, count);
    return count > 0 ? prefetch_batch(j, ours, count, err) : 0;
}

static int next_page(struct prefetch_job *j, struct listing *l, struct error *err)
{
    _cleanup_(arena_freep)
    struct arena *a = arena_new(64 << 10);
    struct backend_page page = {.arena = a};
    const char *backend = NULL;
    {
        _cleanup_state_ const struct cluster_state *s = state_current(j->base.target->state);
        const struct bucket *b = bmd_bucket_by_id(&s->bmd, j->base.plan.input_bucket_id);
        if (b != NULL && b->props.backend != NULL)
            backend = arena_strdup(a, b->props.backend);
    }
    if (backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    int code = cold_list_names(j->base.target, backend, j->base.spec->prefix, l->after, &page, err);
    if (code == 0)
        code = take_page(j, l, &page, err);
    l->more = page.token != NULL;
    if (page.entry_count > 0) {
        free(l->after);
        l->after = xstrdup(page.entries[page.entry_count - 1].name);
    }
    return code;
}

static int prefetch_listed(struct prefetch_job *j, struct error *err)
{
    struct listing l = {
        .names = {.self = j->base.target->id, .bucket_id = j->base.plan.input_bucket_id},
        .after = xstrdup(""),
        .more = true};
    int code = 0;
    while (code == 0 && l.more && !j->base.stop.wanted)
        code = next_page(j, &l, err);
    free(l.after);
    if (code == 0 && j->base.stop.wanted)
        code = error_set(err, E_ABORTED, "job '%s' was stopped", j->base.job->id);
    return code != 0 ? code : job_tally_end(j->base.tally, err);
}

static int job_run(void *self, struct error *err)
{
    struct prefetch_job *j = self;
    if (j->base.spec->which == OBJECTS_PREFIX)
        return prefetch_listed(j, err);
    return objects_job_run(&j->base, prefetch_batch, j, err);
}

const struct xaction_ops prefetch_xaction =
    XACTION_WORK("prefetch", job_open, job_run, objects_job_stop, objects_job_status, job_free);
