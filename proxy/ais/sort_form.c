#include "proxy/ais/sort_form.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/ais/job_form.h"

/* --- the request ------------------------------------------------------------------------------ */

static void rename_field(json_t *doc, const char *from, const char *to)
{
    json_t *value = json_object_get(doc, from);
    if (value != NULL && json_object_get(doc, to) == NULL)
        json_object_set(doc, to, value);
    json_object_del(doc, from);
}

/* "BUCKET/OBJECT?…" of the URL of an object of this cluster, or NULL. */
static const char *path_of(const char *url, const char *const *hosts)
{
    static const char objects[] = "/v1/objects/";
    const char *scheme = strstr(url, "://");
    for (; scheme != NULL && *hosts != NULL; hosts++) {
        const char *at = scheme + 3;
        size_t len = strlen(*hosts);
        if (strncmp(at, *hosts, len) == 0 && strncmp(at + len, objects, sizeof objects - 1) == 0)
            return at + len + sizeof objects - 1;
    }
    return NULL;
}

static int take_key_map(json_t *doc, const char *const *hosts, struct error *err)
{
    const char *url = json_string_value(json_object_get(doc, "ekm_file"));
    const char *path = url != NULL ? path_of(url, hosts) : NULL;
    if (path == NULL)
        return 0;
    size_t len = strcspn(path, "?#");
    _cleanup_free_ char *name = xmalloc(len + 1);
    int64_t got = parse_url_unescape(path, len, name, err);
    if (got < 0)
        return error_wrap(err, "field 'ekm_file'");
    json_t *value = json_sprintf("dfc://%.*s", (int)got, name);
    if (value == NULL)
        return error_set(err, E_INVALID, "field 'ekm_file': the object's name is no UTF-8 text");
    json_object_set_new(doc, "ekm_file", value);
    return 0;
}

int sort_form_request(json_t *request, const char *const *hosts, struct error *err)
{
    const json_t *output = json_object_get(request, "output_format");
    rename_field(request, "ekm_sep", "ekm_file_sep");
    if (json_is_string(output) && json_string_length(output) == 0)
        json_object_del(request, "output_format");
    return take_key_map(request, hosts, err);
}

/* --- how it stands ---------------------------------------------------------------------------- */

static json_t *count_of(const json_t *part, const char *a, const char *b)
{
    const json_t *value = json_object_get(part, a);
    return job_form_number(json_integer_value(b != NULL ? json_object_get(value, b) : value));
}

/* The fields of every phase.  Times of a phase are not kept: those of the job stand for them. */
static json_t *phase_of(const struct job *job, const json_t *status, const char *name, bool running,
                        bool finished)
{
    const json_t *seconds = json_object_get(json_object_get(status, "seconds"), name);
    return json_pack("{s:o, s:o, s:I, s:b, s:b}", "started_time", job_form_time(job->started_ms),
                     "end_time", job_form_time(finished ? job->ended_ms : 0), "elapsed",
                     (json_int_t)json_number_value(seconds), "running", running, "finished",
                     finished);
}

static bool is_phase(const json_t *status, const char *name)
{
    const char *phase = json_string_value(json_object_get(status, "phase"));
    return phase != NULL && strcmp(phase, name) == 0;
}

static json_t *extraction_of(const struct job *job, const json_t *status, bool finished)
{
    const json_t *extract = json_object_get(status, "extract");
    json_t *info =
        phase_of(job, status, "extract", !finished && is_phase(status, "extracting"), finished);
    json_object_set_new(info, "total_count", count_of(extract, "shards", "total"));
    json_object_set_new(info, "extracted_count", count_of(extract, "shards", "done"));
    json_object_set_new(info, "extracted_size", count_of(extract, "bytes", NULL));
    json_object_set_new(info, "extracted_record_count", count_of(extract, "records", NULL));
    json_object_set_new(info, "extracted_to_disk_count", job_form_number(0));
    json_object_set_new(info, "extracted_to_disk_size", count_of(extract, "spilled_bytes", NULL));
    return info;
}

static json_t *creation_of(const struct job *job, const json_t *status, bool finished)
{
    const json_t *create = json_object_get(status, "create");
    json_t *info =
        phase_of(job, status, "create", !finished && is_phase(status, "creating"), finished);
    json_object_set_new(info, "to_create", count_of(create, "shards", "total"));
    json_object_set_new(info, "created_count", count_of(create, "shards", "done"));
    json_object_set_new(info, "moved_shard_count", job_form_number(0));
    return info;
}

static json_t *errors_of(const struct job *job)
{
    json_t *errors = json_array();
    bool is_bad = job->state == JOB_FAILED || job->state == JOB_ABORTED;
    if (is_bad && job->error_message != NULL)
        json_array_append_new(errors, json_string_escaped(job->error_message));
    return errors;
}

static json_t *metrics_of(const struct job *job, const json_t *status, bool aborted)
{
    bool finished = job->state == JOB_FINISHED;
    const json_t *warnings = json_object_get(status, "warnings");
    return json_pack(
        "{s:o, s:o, s:o, s:b, s:b, s:s, s:o, s:o}", "local_extraction",
        extraction_of(job, status, finished), "meta_sorting",
        phase_of(job, status, "merge", !finished && is_phase(status, "merging"), finished),
        "shard_creation", creation_of(job, status, finished), "aborted", aborted, "archived",
        job_ended(job->state), "description", job->description != NULL ? job->description : "",
        "warnings", warnings != NULL ? json_deep_copy(warnings) : json_array(), "errors",
        errors_of(job));
}

/* The texts are the spec's: also of a bucket that is gone. */
static json_t *bucket_of(const struct job *job, const char *field)
{
    const json_t *bucket = json_object_get(job->spec, field);
    const char *name = json_string_value(json_object_get(bucket, "name"));
    return json_pack("{s:s, s:s}", "name", name != NULL ? name : "", "provider", "ais");
}

json_t *sort_form_info(const struct job *job, const json_t *report)
{
    const json_t *status = json_object_get(report, "status");
    const json_t *create = json_object_get(status, "create");
    bool aborted = job->state == JOB_FAILED || job->state == JOB_ABORTED;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "id", job->id, "src-bck",
                     bucket_of(job, "input_bck"), "dst-bck", bucket_of(job, "output_bck"),
                     "started_time", job_form_time(job->started_ms), "finish_time",
                     job_form_time(job_ended(job->state) ? job->ended_ms : 0), "loc-objs",
                     count_of(create, "shards", "done"), "loc-bytes",
                     count_of(create, "bytes", "done"), "aborted", aborted, "archived",
                     job_ended(job->state), "Metrics", metrics_of(job, status, aborted));
}
