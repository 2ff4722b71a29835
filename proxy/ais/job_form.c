#include "proxy/ais/job_form.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "xaction/kinds.h"

/* --- kinds ------------------------------------------------------------------------------------ */

/* What AIStore calls by another name.  The first row of a kind that fits the job is its name. */
static const struct {
    const char *name, *native;
    bool named; /* of a job whose objects are listed or made by a template */
} kinds[] = {
    {"dsort", "sort", false},
    {"delete-listrange", "delete", false},
    {"copy-listrange", "copy", true},
    {"copy-bck", "copy", false},
    {"prefetch-listrange", "prefetch", false},
    {"evict-listrange", "evict", false},
    {"cleanup-store", "cleanup", false},
    {"make-n-copies", "mirror", false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool has_names(const struct job *job)
{
    return json_object_get(job->spec, "list") != NULL ||
           json_object_get(job->spec, "template") != NULL;
}

const char *job_form_kind(const struct job *job)
{
    const struct xaction_kind *own = xaction_kind_find(job->kind);
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].native, job->kind) == 0 && (!kinds[i].named || has_names(job)))
            return kinds[i].name;
    }
    return own != NULL ? own->shown : job->kind;
}

const char *job_form_bare(const char *kind)
{
    const struct xaction_kind *own = xaction_kind_asked(kind);
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].name, kind) == 0)
            own = xaction_kind_find(kinds[i].native);
    }
    return own != NULL && own->bare ? own->name : NULL;
}

bool job_form_is_of(const struct job *job, const char *kind)
{
    const struct xaction_kind *own = xaction_kind_asked(kind);
    return kind[0] == '\0' || strcmp(job_form_kind(job), kind) == 0 ||
           (own != NULL && strcmp(own->name, job->kind) == 0);
}

/* --- how it stands ---------------------------------------------------------------------------- */

static int64_t end_ms(const struct job *job)
{
    return job_ended(job->state) ? job->ended_ms : 0;
}

static json_t *why(const struct job *job)
{
    bool is_bad = job->state == JOB_FAILED || job->state == JOB_ABORTED;
    return json_string_escaped(is_bad && job->error_message != NULL ? job->error_message : "");
}

json_t *job_form_status(const struct job *job)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:b}", "uuid", job->id, "kind", job_form_kind(job),
                     "err", why(job), "end_time", (json_int_t)end_ms(job) * 1000000, "aborted",
                     job->state == JOB_ABORTED);
}

/* --- of one target ---------------------------------------------------------------------------- */

json_t *job_form_time(int64_t ms)
{
    char text[32];
    return json_string(ms == 0 ? "0001-01-01T00:00:00Z" : clock_format_rfc3339(ms, text));
}

json_t *job_form_number(json_int_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, value);
    return json_string(text);
}

static json_int_t count_at(const json_t *status, const char *part, const char *field)
{
    return json_integer_value(json_object_get(json_object_get(status, part), field));
}

/* A sort counts the shards that it makes. */
static json_t *stats_of(const json_t *report)
{
    const json_t *status = json_object_get(report, "status");
    const json_t *create = json_object_get(status, "create");
    bool is_sort = json_is_object(create);
    json_int_t objects =
        is_sort ? count_at(create, "shards", "done") : count_at(status, "objects", "done");
    json_int_t bytes = is_sort ? count_at(create, "bytes", "done")
                               : json_integer_value(json_object_get(status, "bytes"));
    return json_pack("{s:o, s:o}", "loc-objs", job_form_number(objects), "loc-bytes",
                     job_form_number(bytes));
}

/* Without, where the job is of none or the bucket is gone. */
static void add_bucket(json_t *snapshot, const char *field, const json_t *plan, const char *id,
                       const struct bmd *bmd)
{
    json_int_t wanted = json_integer_value(json_object_get(plan, id));
    const struct bucket *b = wanted > 0 ? bmd_bucket_by_id(bmd, (uint64_t)wanted) : NULL;
    if (b != NULL)
        json_object_set_new(snapshot, field,
                            json_pack("{s:s, s:s}", "name", b->name, "provider", "ais"));
}

json_t *job_form_snapshot(const struct job *job, const json_t *report, const struct bmd *bmd)
{
    bool ended = job_ended(job->state);
    json_t *snapshot = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:b}", "id", job->id, "kind", job_form_kind(job),
        "start-time", job_form_time(job->started_ms != 0 ? job->started_ms : job->created_ms),
        "end-time", job_form_time(end_ms(job)), "stats", stats_of(report), "aborted",
        job->state == JOB_ABORTED, "abort-err", why(job), "is_idle", ended);
    bool has_output = json_integer_value(json_object_get(job->plan, "output_bucket_id")) > 0;
    add_bucket(snapshot, has_output ? "src-bck" : "bck", job->plan, "input_bucket_id", bmd);
    add_bucket(snapshot, "dst-bck", job->plan, "output_bucket_id", bmd);
    return snapshot;
}
