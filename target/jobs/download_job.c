/* The job `download` (xaction/download_spec.h): http(s) URLs become objects of a bucket, each
 * fetched and stored by the target that owns its name, as a cold read would be (cold.h): whole and
 * checked, or not at all, and what breaks off goes on where it ended.
 *
 * What was put under the name since the job began stays, which is also how the job passes over what
 * it has done before a restart.  What is older and came from the same URL is asked about first
 * (304: it is passed over); any other is replaced.  A URL that leads nowhere counts as missing. */
#include <string.h>

#include "common/mem.h"
#include "io/pool.h"
#include "target/cold/cold.h"
#include "target/cold/fresh.h"
#include "target/copies/copies.h"
#include "target/jobs/job_base.h"
#include "target/jobs/job_send.h"
#include "target/node/quotas.h"
#include "target/store/job_pace.h"
#include "xaction/download_spec.h"

enum { BATCH = 1000 };

struct download_job {
    struct job_base base;
    struct download_spec *spec;
    struct job_pace pace; /* while it runs */
};

/* --- one object ------------------------------------------------------------------------------- */

static const char *source_of(const struct attr *a)
{
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        if (strcmp(name, OBJECT_SOURCE) == 0)
            return value;
    }
    return "";
}

/* --- of several copies: what has come is brought to all owners (copies.h) --------------------- */

struct keeping {
    struct download_job *job;
    const struct bucket *bucket;
    const char *name;
    bool stays; /* what is there is the same, or was put after the job */
};

static int keep(void *ctx, struct object_put *put, struct error *err)
{
    struct keeping *k = ctx;
    const struct job_base *j = &k->job->base;
    const struct object_copy copy = {.bucket_id = k->bucket->id,
                                     .name = k->name,
                                     .has_rule = true,
                                     .term = j->plan.term,
                                     .version = j->plan.version,
                                     .is_new = true};
    int code = job_send(&k->job->base, put, &copy, err);
    k->stays = code == E_NOT_MODIFIED || code == E_PRECONDITION;
    return error_forgive(err, error_forgive(err, code, E_NOT_MODIFIED), E_PRECONDITION);
}

/* What is there: is it to stay?  *old: what is to be replaced. */
static int look(struct download_job *j, const struct cold_wanted *w, bool *stays,
                struct version *old, struct error *err)
{
    struct object o;
    *stays = false;
    int code = object_head(j->base.target->store, w->bucket->id, w->name, &o, err);
    if (code == E_OBJECT_NOT_FOUND || (bucket_has_copies(w->bucket) &&
                                       !copies_suffice_here(j->base.target, w->bucket, w->name))) {
        *err = ERROR_INIT; /* not there, or not known: who acts decides */
        return 0;
    }
    if (code != 0)
        return code;
    *old = o.attr.version;
    *stays = version_is_after(old, j->base.plan.term, j->base.plan.version);
    if (*stays || strcmp(source_of(&o.attr), w->source) != 0)
        return 0;
    struct error why = ERROR_INIT; /* who cannot be asked is asked for the bytes next */
    *stays = cold_fresh_of_url(j->base.target, w->url, &o.attr, &why) == FRESH;
    return 0;
}

static void count(struct download_job *j, const char *name, bool stays, uint64_t bytes, int code,
                  const struct error *err)
{
    if (code == E_OBJECT_NOT_FOUND)
        job_tally_missed(j->base.tally, name, "its URL is not found (404)");
    else if (code != 0)
        job_tally_fail(j->base.tally, name, err);
    else if (stays)
        job_tally_skipped(j->base.tally);
    else
        job_tally_done(j->base.tally, bytes);
}

static void download_one(struct download_job *j, const struct bucket *b, const char *url,
                         const char *name)
{
    struct error err = ERROR_INIT;
    bool stays = false;
    uint64_t bytes = 0;
    _cleanup_(buf_done)
    struct buf source = BUF_INIT;
    download_source(url, &source);
    struct keeping keeping = {.job = j, .bucket = b, .name = name};
    struct cold_wanted wanted = {.bucket = b,
                                 .name = name,
                                 .url = url,
                                 .source = buf_str(&source),
                                 .pace = &j->pace,
                                 .keep = bucket_has_copies(b) ? keep : NULL,
                                 .ctx = &keeping};
    int code = look(j, &wanted, &stays, &wanted.replaces, &err);
    if (code == 0 && !stays && !bucket_has_copies(b)) /* else its leader looks */
        code = quota_take(j->base.target->quotas, b, name, OBJECT_SIZE_UNKNOWN, &err);
    if (code == 0 && !stays)
        code = cold_bring(j->base.target->cold, &wanted, &bytes, &err);
    if (!j->base.stop.wanted || code == 0)
        count(j, name, stays || keeping.stays, bytes, code, &err);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct batch {
    struct download_job *job;
    const struct bucket *bucket;
    uint64_t items[BATCH];
    size_t count;
};

static bool is_ours(const struct download_job *j, const struct cluster_state *s, const char *name)
{
    const struct node *owner;
    return smap_owners(&s->smap, j->base.plan.input_bucket_id, name, 1, &owner) == 1 &&
           strcmp(owner->id, j->base.target->id) == 0;
}

static int download_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    struct download_job *j = b->job;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int code = job_base_check(&j->base, err);
    if (code == 0)
        code = download_spec_item(j->spec, b->items[i], &url, &name, err);
    if (code != 0)
        return code;
    download_one(j, b->bucket, buf_str(&url), buf_str(&name));
    return job_tally_hopeless(j->base.tally) ? job_tally_end(j->base.tally, err) : 0;
}

/* The next items of ours from *at on; a batch that is not full is the last. */
static int fill(struct download_job *j, const struct cluster_state *s, uint64_t *at,
                struct batch *b, struct error *err)
{
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf name = BUF_INIT;
    int code = 0;
    b->count = 0;
    for (; code == 0 && *at < download_spec_count(j->spec) && b->count < BATCH; ++*at) {
        code = job_base_check(&j->base, err);
        if (code == 0)
            code = download_spec_item(j->spec, *at, &url, &name, err);
        if (code == 0 && is_ours(j, s, buf_str(&name)))
            b->items[b->count++] = *at;
    }
    return code;
}

/* fn() for batch after batch. */
static int each_batch(struct download_job *j, int (*fn)(struct batch *b, struct error *err),
                      struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    uint64_t at = 0;
    int code;
    b->job = j;
    do {
        _cleanup_state_ const struct cluster_state *s = state_current(j->base.target->state);
        b->bucket = bmd_bucket_by_id(&s->bmd, j->base.plan.input_bucket_id);
        code = b->bucket != NULL
                   ? fill(j, s, &at, b, err)
                   : error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
        if (code == 0 && b->count > 0)
            code = fn(b, err);
    } while (code == 0 && b->count == BATCH);
    free(b);
    return code;
}

static int count_batch(struct batch *b, struct error *err)
{
    (void)err;
    job_tally_expect(b->job->base.tally, b->count);
    return 0;
}

static int download_batch(struct batch *b, struct error *err)
{
    struct download_job *j = b->job;
    uint64_t parallel = j->spec->parallel;
    if (parallel == 0)
        parallel = param_live(j->base.target->params.prefetch_parallel);
    return parallel_for("download", (unsigned)parallel, b->count, download_nth, b, err);
}

static int run(void *self, struct error *err)
{
    struct download_job *j = self;
    job_pace_init(&j->pace, j->spec->rate_bytes_s, &j->base.stop);
    int code = each_batch(j, count_batch, err);
    if (code == 0)
        code = each_batch(j, download_batch, err);
    if (code == 0)
        job_tally_close(j->base.tally);
    job_pace_done(&j->pace);
    return code;
}

static int begin(void *self, struct error *err)
{
    struct download_job *j = self;
    int code = download_spec_parse(j->base.job->spec, &j->spec, err);
    return code == 0 ? objects_plan_parse(j->base.job->plan, &j->base.plan, err) : code;
}

static void end(void *self)
{
    struct download_job *j = self;
    download_spec_free(j->spec);
}

const struct xaction_ops download_xaction =
    JOB_WORK("download", .size = sizeof(struct download_job), .done_word = "downloaded",
             .sends = true, .begin = begin, .run = run, .end = end);
