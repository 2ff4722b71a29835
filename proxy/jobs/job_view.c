#include "proxy/jobs/job_view.h"

#include <string.h>

#include "common/error.h"
#include "common/jsonx.h"
#include "proxy/jobs/objects_view.h"
#include "xaction/kinds.h"

/* The sums over all targets' statuses (sort/task/task.h says what they contain). */
struct totals {
    unsigned extracting, merging, creating, done, targets;
    json_int_t extract_shards_done, extract_shards;
    json_int_t create_shards_done, create_shards;
    json_int_t records, records_made;
    json_int_t bytes_in, bytes_made, bytes_to_make;
    json_int_t redone_inputs, redone_shards, redone_bytes;
    double extract_s, create_s;
};

static json_int_t int_at(const json_t *obj, const char *a, const char *b, const char *c)
{
    obj = json_object_get(obj, a);
    if (b != NULL)
        obj = json_object_get(obj, b);
    if (c != NULL)
        obj = json_object_get(obj, c);
    return json_integer_value(obj);
}

static void keep_max(double *max, const json_t *status, const char *phase)
{
    double s = json_number_value(json_object_get(json_object_get(status, "seconds"), phase));
    if (s > *max)
        *max = s;
}

static void totals_add_phase(struct totals *t, const char *phase)
{
    if (phase == NULL || strcmp(phase, "queued") == 0 || strcmp(phase, "extracting") == 0)
        t->extracting++;
    else if (strcmp(phase, "merging") == 0)
        t->merging++;
    else if (strcmp(phase, "creating") == 0)
        t->creating++;
    else
        t->done++;
}

static void totals_add(struct totals *t, const json_t *report)
{
    const json_t *status = json_object_get(report, "status");
    t->targets++;
    totals_add_phase(t, json_string_value(json_object_get(status, "phase")));
    t->extract_shards_done += int_at(status, "extract", "shards", "done");
    t->extract_shards += int_at(status, "extract", "shards", "total");
    t->records += int_at(status, "extract", "records", NULL);
    t->bytes_in += int_at(status, "extract", "bytes", NULL);
    t->create_shards_done += int_at(status, "create", "shards", "done");
    t->create_shards += int_at(status, "create", "shards", "total");
    t->records_made += int_at(status, "create", "records", NULL);
    t->bytes_made += int_at(status, "create", "bytes", "done");
    t->bytes_to_make += int_at(status, "create", "bytes", "total");
    t->redone_inputs += int_at(status, "redone", "inputs", NULL);
    t->redone_shards += int_at(status, "redone", "shards", NULL);
    t->redone_bytes += int_at(status, "redone", "bytes", NULL);
    keep_max(&t->extract_s, status, "extract");
    keep_max(&t->create_s, status, "create");
}

static struct totals totals_of(const json_t *reports)
{
    struct totals t = {0};
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report) totals_add(&t, report);
    return t;
}

static const char *phase_of(const struct totals *t)
{
    if (t->targets == 0 || t->extracting > 0)
        return "extracting";
    /* A target that has sent its table on waits for orders: the cluster still merges. */
    if (t->create_shards == 0 && t->merging > 0)
        return "merging";
    return "creating";
}

static bool is_sort(const struct job *job)
{
    return strcmp(job->kind, "sort") == 0;
}

const char *job_view_state(const struct job *job, const json_t *reports)
{
    switch (job->state) {
    case JOB_QUEUED: /* a job over objects that begins again has been running all the time */
        return job->attempt > 0 && !is_sort(job) ? "running" : "queued";
    case JOB_FINISHED:
    case JOB_FAILED:
    case JOB_ABORTED:
        return job_state_name(job->state);
    case JOB_COMMITTING:
        return is_sort(job) ? "creating" : "running";
    case JOB_RUNNING:
    case JOB_STOPPING:
        break;
    }
    if (!is_sort(job))
        return "running";
    struct totals t = totals_of(reports);
    return phase_of(&t);
}

bool job_view_is_state(const char *word)
{
    static const char *const words[] = {"queued",   "running",  "extracting", "merging",
                                        "creating", "finished", "failed",     "aborted"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

/* Scanning headers and merging take little beside copying the bytes: the bar follows the copy. */
enum { PERCENT_EXTRACT = 15, PERCENT_MERGE = 20 };

static json_int_t percent_of(const struct job *job, const struct totals *t, const char *phase)
{
    if (job->state == JOB_FINISHED)
        return 100;
    if (job->state == JOB_QUEUED)
        return 0;
    if (strcmp(phase, "extracting") == 0)
        return t->extract_shards > 0 ? PERCENT_EXTRACT * t->extract_shards_done / t->extract_shards
                                     : 0;
    if (strcmp(phase, "merging") == 0)
        return PERCENT_EXTRACT;
    if (t->bytes_to_make == 0)
        return PERCENT_MERGE;
    return PERCENT_MERGE + (99 - PERCENT_MERGE) * t->bytes_made / t->bytes_to_make;
}

static json_t *progress_of(const struct job *job, const struct totals *t, const char *phase)
{
    bool making = strcmp(phase, "creating") == 0 || job->state == JOB_FINISHED;
    double seconds = making ? t->create_s : t->extract_s;
    json_int_t done = making ? t->bytes_made : t->bytes_in;
    json_int_t rate = seconds > 0 ? (json_int_t)((double)done / seconds) : 0;
    json_int_t left = making ? t->bytes_to_make - t->bytes_made : 0;
    json_t *p = json_pack("{s:I, s:s, s:{s:I, s:I}, s:I, s:{s:I, s:I}, s:I}", "percent",
                          percent_of(job, t, phase), "phase", phase, "shards", "done",
                          making ? t->create_shards_done : t->extract_shards_done, "total",
                          making ? t->create_shards : t->extract_shards, "records",
                          making ? t->records_made : t->records, "bytes", "done", done, "total",
                          making ? t->bytes_to_make : t->bytes_in, "rate_bytes_s", rate);
    json_object_set_new(p, "eta_s",
                        making && rate > 0 && !job_ended(job->state) ? json_integer(left / rate)
                                                                     : json_null());
    return p;
}

/* What an end before the end means for this kind. */
static void warn_of_rest(const struct job *job, json_t *all)
{
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    if (kind != NULL && *kind->undone != '\0' &&
        (job->state == JOB_ABORTED || job->state == JOB_FAILED))
        json_array_append_new(all, json_string(kind->undone));
}

static json_t *warnings_of(const struct job *job, const json_t *reports)
{
    json_t *all = json_array();
    warn_of_rest(job, all);
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
    {
        size_t i;
        json_t *warning;
        json_array_foreach(json_object_get(json_object_get(report, "status"), "warnings"), i,
                           warning)
        {
            json_array_append_new(all, json_sprintf("%s: %s", id, json_string_value(warning)));
        }
    }
    return all;
}

static json_t *without_of(const struct job *job)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < job->without_count; i++)
        json_array_append_new(ids, json_string(job->without[i]));
    return ids;
}

static json_t *errors_of(const struct job *job)
{
    json_t *errors = json_array();
    const char *message = job->error_message != NULL ? job->error_message : "";
    if (job->error_code != NULL) /* whose message is cut at a length in bytes */
        json_array_append_new(errors, json_pack("{s:s, s:o}", "code", job->error_code, "message",
                                                json_string_escaped(message)));
    return errors;
}

/* The last target of the arrangement made the plan; nobody else's status has one. */
static json_t *plan_of(const json_t *reports)
{
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
    {
        json_t *plan = json_object_get(json_object_get(report, "status"), "plan");
        if (plan != NULL)
            return plan;
    }
    return NULL;
}

static void view_add_detail(json_t *view, const struct job *job, const json_t *reports)
{
    json_t *targets = json_object();
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
        json_object_set_new(targets, id, json_deep_copy(report));
    json_object_set_new(view, "targets", targets);
    json_object_set_new(view, "spec", json_deep_copy(job->spec));
}

json_t *job_view(const struct job *job, const json_t *reports, bool brief)
{
    struct totals t = totals_of(reports);
    const char *phase = phase_of(&t);
    json_t *view = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "id", job->id, "kind",
                             job->kind, "state", job_view_state(job, reports), "description",
                             job->description != NULL ? job->description : "", "created_ms",
                             (json_int_t)job->created_ms, "started_ms", (json_int_t)job->started_ms,
                             "ended_ms", (json_int_t)job->ended_ms);
    if (job->state == JOB_STOPPING)
        json_object_set_new(view, "stopping", json_true());
    json_object_set_new(view, "progress",
                        is_sort(job) ? progress_of(job, &t, phase)
                                     : objects_view_progress(job, reports));
    json_object_set_new(view, "redone",
                        json_pack("{s:I, s:I, s:I, s:I}", "attempts", (json_int_t)job->attempt,
                                  "inputs", t.redone_inputs, "shards", t.redone_shards, "bytes",
                                  t.redone_bytes));
    json_object_set_new(view, "without", without_of(job));
    json_t *warnings = warnings_of(job, reports);
    if (objects_view_falls_short(job, reports, warnings))
        json_object_set_new(view, "partial", json_true());
    json_object_set_new(view, "warnings", warnings);
    json_object_set_new(view, "errors", errors_of(job));
    json_t *plan = plan_of(reports);
    if (plan != NULL)
        json_object_set_new(view, "plan", json_deep_copy(plan));
    if (!brief)
        view_add_detail(view, job, reports);
    return view;
}

json_t *job_view_waits(const struct job *job, const struct cluster_state *s)
{
    json_t *ids = json_array();
    bool waits = !job_ended(job->state) && job->state != JOB_STOPPING;
    for (size_t i = 0; waits && i < job->participant_count; i++) {
        const struct node *n = smap_node(&s->smap, job->participants[i]);
        if (n != NULL && n->state != NODE_ACTIVE && !node_is_present(n) &&
            !job_leaves_out(job, n->id))
            json_array_append_new(ids, json_string(n->id));
    }
    return ids;
}
