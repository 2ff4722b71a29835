#include "cluster/documents/jobs.h"

#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* What the arena of a jobs document cannot release by itself: its references. */
struct job_refs {
    size_t count;
    struct job **jobs;
};

static void job_refs_drop(void *arg)
{
    struct job_refs *refs = arg;
    for (size_t i = 0; i < refs->count; i++)
        job_unref(refs->jobs[i]);
}

static size_t jobs_index(const struct jobs *j, const char *id)
{
    for (size_t i = 0; i < j->count; i++) {
        if (strcmp(j->jobs[i]->id, id) == 0)
            return i;
    }
    return j->count;
}

const struct job *jobs_find(const struct jobs *j, const char *id)
{
    size_t i = jobs_index(j, id);
    return i < j->count ? j->jobs[i] : NULL;
}

/* Returns the list of references, to which jobs_append() adds. */
static struct job_refs *jobs_begin(struct jobs *j, uint64_t version, size_t capacity)
{
    *j = (struct jobs){.version = version, .memory = document_new()};
    struct arena *a = document_arena(j->memory);
    struct job_refs *refs = arena_alloc(a, sizeof *refs);
    j->jobs = arena_alloc(a, capacity * sizeof j->jobs[0]);
    refs->jobs = j->jobs;
    document_on_free(j->memory, job_refs_drop, refs);
    return refs;
}

/* Takes the reference. */
static void jobs_append(struct jobs *j, struct job_refs *refs, struct job *job)
{
    j->jobs[j->count++] = job;
    refs->count = j->count;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The place of a sorted id, or `count`. */
static size_t id_find(const char *const *ids, size_t count, const char *id)
{
    const char *const *at = count > 0 ? bsearch(&id, ids, count, sizeof ids[0], compare_ids) : NULL;
    return at != NULL ? (size_t)(at - ids) : count;
}

/* The jobs of `put`, sorted by id, and whether they have found their places. */
struct placing {
    size_t count;
    const struct job **jobs;
    const char **ids;
    bool *placed;
};

static int compare_jobs(const void *a, const void *b)
{
    return strcmp((*(const struct job *const *)a)->id, (*(const struct job *const *)b)->id);
}

static struct placing placing_new(struct arena *a, const struct job *const *put, size_t count)
{
    struct placing p = {.count = count,
                        .jobs = arena_alloc(a, count * sizeof p.jobs[0]),
                        .ids = arena_alloc(a, count * sizeof p.ids[0]),
                        .placed = arena_alloc(a, count * sizeof p.placed[0])};
    for (size_t i = 0; i < count; i++)
        p.jobs[i] = put[i];
    if (count > 0)
        qsort(p.jobs, count, sizeof p.jobs[0], compare_jobs);
    for (size_t i = 0; i < count; i++) {
        p.ids[i] = p.jobs[i]->id;
        p.placed[i] = false;
    }
    return p;
}

/* The known jobs that stay, those of `put` in their places.  Returns how many left. */
static size_t jobs_keep(const struct jobs *old, struct placing *p, const char *const *drop,
                        size_t drop_count, struct jobs *next, struct job_refs *refs)
{
    size_t left = 0;
    for (size_t i = 0; i < old->count; i++) {
        const struct job *job = old->jobs[i];
        if (id_find(drop, drop_count, job->id) < drop_count) {
            left++;
            continue;
        }
        size_t at = id_find(p->ids, p->count, job->id);
        if (at < p->count) {
            p->placed[at] = true;
            job = p->jobs[at];
        }
        jobs_append(next, refs, job_ref(job));
    }
    return left;
}

bool jobs_changed(const struct jobs *old, const struct jobs_change *c, struct jobs *next)
{
    struct job_refs *refs = jobs_begin(next, old->version + 1, old->count + c->put_count);
    struct arena *scratch = arena_new(512);
    struct placing p = placing_new(scratch, c->put, c->put_count);
    size_t left = jobs_keep(old, &p, c->drop, c->drop_count, next, refs);
    for (size_t i = 0; i < c->put_count; i++) {
        size_t at = id_find(p.ids, p.count, c->put[i]->id);
        if (!p.placed[at])
            jobs_append(next, refs, job_ref(c->put[i]));
    }
    arena_free(scratch);
    return left == c->drop_count;
}

void jobs_with(const struct jobs *old, const struct job *job, struct jobs *next)
{
    const struct jobs_change c = {.put = &job, .put_count = 1};
    (void)jobs_changed(old, &c, next);
}

void jobs_without(const struct jobs *old, const char *id, struct jobs *next)
{
    const struct jobs_change c = {.drop = &id, .drop_count = 1};
    (void)jobs_changed(old, &c, next);
}

json_t *jobs_to_json(const struct jobs *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->count; i++)
        json_array_append_new(list, job_to_json(j->jobs[i]));
    return json_pack("{s:I, s:o}", "version", (json_int_t)j->version, "jobs", list);
}

static int jobs_unique(const struct jobs *j, struct error *err)
{
    _cleanup_free_ const char **ids = xcalloc(j->count, sizeof ids[0]);
    for (size_t i = 0; i < j->count; i++)
        ids[i] = j->jobs[i]->id;
    qsort(ids, j->count, sizeof ids[0], compare_ids);
    for (size_t i = 1; i < j->count; i++) {
        if (strcmp(ids[i - 1], ids[i]) == 0)
            return error_set(err, E_JSON, "field 'jobs.jobs' has job '%s' twice", ids[i]);
    }
    return 0;
}

int jobs_from_json(json_t *doc, struct jobs *out, struct error *err)
{
    json_t *list = NULL;
    uint64_t version;
    int r;
    if ((r = json_need_u64(doc, "jobs", "version", &version, err)) != 0 ||
        (r = json_get_array(doc, "jobs", "jobs", &list, err)) != 0 ||
        (r = json_present(list, "jobs", "jobs", err)) != 0)
        return r;
    struct job_refs *refs = jobs_begin(out, version, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char path[64];
        json_t *item;
        struct job *job;
        if ((r = json_item(list, "jobs.jobs", i, &item, path, err)) != 0)
            return r;
        if ((r = job_from_json(item, &job, err)) != 0) {
            error_wrap(err, "%s", path);
            return r;
        }
        jobs_append(out, refs, job);
    }
    return jobs_unique(out, err);
}
