#include "proxy/jobs/objects_view.h"

#include "proxy/jobs/job_kind.h"

static const char *const counters[] = {"done", "skipped", "missing", "failed", "total"};
enum { DONE, SKIPPED, MISSING, FAILED, TOTAL, COUNTERS };

struct sums {
    json_int_t objects[COUNTERS];
    json_int_t compared, passed; /* names */
    json_int_t bytes;
    double seconds; /* of the target that has worked for the longest time */
    bool resumed;   /* a target counts only what an earlier run of it has left */
    const json_t *first_failure;
};

static void sums_add(struct sums *s, const json_t *status)
{
    const json_t *objects = json_object_get(status, "objects");
    for (size_t i = 0; i < COUNTERS; i++)
        s->objects[i] += json_integer_value(json_object_get(objects, counters[i]));
    const json_t *names = json_object_get(status, "names");
    s->compared += json_integer_value(json_object_get(names, "compared"));
    s->passed += json_integer_value(json_object_get(names, "passed"));
    s->bytes += json_integer_value(json_object_get(status, "bytes"));
    double seconds = json_number_value(json_object_get(status, "seconds"));
    if (seconds > s->seconds)
        s->seconds = seconds;
    s->resumed |= json_is_true(json_object_get(status, "resumed"));
    if (s->first_failure == NULL)
        s->first_failure = json_object_get(status, "first_failure");
}

static struct sums sums_of(const json_t *reports)
{
    struct sums s = {0};
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
        sums_add(&s, json_object_get(report, "status"));
    return s;
}

static json_int_t handled(const struct sums *s)
{
    return s->objects[DONE] + s->objects[SKIPPED] + s->objects[MISSING] + s->objects[FAILED];
}

static json_int_t percent_of(const struct job *job, const struct sums *s)
{
    if (job->state == JOB_FINISHED)
        return 100;
    if (s->objects[TOTAL] == 0 || job->state == JOB_QUEUED)
        return 0;
    json_int_t percent = 100 * handled(s) / s->objects[TOTAL];
    return percent < 99 ? percent : 99;
}

static json_t *eta_of(const struct job *job, const struct sums *s)
{
    json_int_t left = s->objects[TOTAL] - handled(s);
    if (job->state != JOB_RUNNING || handled(s) == 0 || left < 0)
        return json_null();
    return json_integer((json_int_t)(s->seconds * (double)left / (double)handled(s)));
}

json_t *objects_view_progress(const struct job *job, const json_t *reports)
{
    struct sums s = sums_of(reports);
    json_t *objects = json_object();
    for (size_t i = 0; i < COUNTERS; i++)
        json_object_set_new(objects, counters[i], json_integer(s.objects[i]));
    json_int_t rate = s.seconds > 0 ? (json_int_t)((double)s.bytes / s.seconds) : 0;
    json_t *progress =
        json_pack("{s:I, s:s, s:o, s:{s:I}, s:I, s:o}", "percent", percent_of(job, &s), "phase",
                  "running", "objects", objects, "bytes", "done", s.bytes, "rate_bytes_s", rate,
                  "eta_s", eta_of(job, &s));
    if (s.compared + s.passed > 0)
        json_object_set_new(progress, "names",
                            json_pack("{s:I, s:I}", "compared", s.compared, "passed", s.passed));
    return progress;
}

/* --- what it has come to ---------------------------------------------------------------------- */

static const struct objects_rule *rule_of(const struct job *job)
{
    const struct job_kind *k = job_kind_find(job->kind);
    return k != NULL ? k->objects : NULL;
}

/* "no object matches prefix 'zzz'"; 0 where the request wants all of a bucket. */
static int nothing_matched(const struct job *job, const struct sums *s, struct error *err)
{
    const char *prefix = json_string_value(json_object_get(job->spec, "prefix"));
    const char *template = json_string_value(json_object_get(job->spec, "template"));
    const char *path = json_string_value(json_object_get(job->spec, "path"));
    size_t listed = json_array_size(json_object_get(job->spec, "list"));
    if (template != NULL)
        return error_set(err, E_NOTHING_MATCHED,
                         "no object matches template '%.512s' (set allow_empty to accept that)",
                         template);
    if (prefix != NULL && *prefix != '\0')
        return error_set(err, E_NOTHING_MATCHED,
                         "no object matches prefix '%.512s' (set allow_empty to accept that)",
                         prefix);
    if (path != NULL)
        return error_set(err, E_NOTHING_MATCHED,
                         "no target has a file at or below '%.512s' (set allow_empty to accept "
                         "that)",
                         path);
    if (s->objects[MISSING] == 0)
        return 0;
    return error_set(err, E_NOTHING_MATCHED,
                     "none of the %zu listed objects exists (set allow_empty to accept that)",
                     listed);
}

static int nothing_came(const struct sums *s, struct error *err)
{
    if (s->objects[FAILED] == 0)
        return error_set(err, E_NOTHING_MATCHED,
                         "none of %lld URLs was found (404) (set allow_empty to accept that)",
                         (long long)s->objects[MISSING]);
    const char *code = json_string_value(json_object_get(s->first_failure, "code"));
    const char *why = json_string_value(json_object_get(s->first_failure, "message"));
    int known = code != NULL ? error_from_name(code) : 0;
    return error_set(err, known != 0 ? known : E_BACKEND,
                     "nothing was downloaded: %lld URLs failed, %lld were not found (404); the "
                     "first failure: %s",
                     (long long)s->objects[FAILED], (long long)s->objects[MISSING],
                     why != NULL ? why : "no reason was given");
}

int objects_view_outcome(const struct job *job, const json_t *reports, struct error *err)
{
    const struct objects_rule *rule = rule_of(job);
    const struct sums s = sums_of(reports);
    bool failed = s.objects[FAILED] > 0;
    if (rule == NULL || s.objects[DONE] + s.objects[SKIPPED] > 0 || (rule->once && s.resumed))
        return 0;
    if (json_is_true(json_object_get(job->spec, "allow_empty")) && !failed)
        return 0;
    if (rule->lenient)
        return s.objects[MISSING] > 0 || failed ? nothing_came(&s, err) : 0;
    return failed ? 0 : nothing_matched(job, &s, err);
}

bool objects_view_falls_short(const struct job *job, const json_t *reports, json_t *warnings)
{
    const struct objects_rule *rule = rule_of(job);
    const struct sums s = sums_of(reports);
    bool named = json_object_get(job->spec, "list") != NULL ||
                 json_object_get(job->spec, "template") != NULL;
    bool accepted = json_is_true(json_object_get(job->spec, "allow_empty")) &&
                    s.objects[DONE] + s.objects[SKIPPED] == 0;
    json_int_t missing = named && !accepted ? s.objects[MISSING] : 0;
    json_int_t failed = rule != NULL && rule->lenient ? s.objects[FAILED] : 0;
    if (rule == NULL || !rule->all || job->state != JOB_FINISHED || missing + failed == 0)
        return false;
    if (missing > 0)
        json_array_insert_new(warnings, 0,
                              json_sprintf("%lld of %lld objects were not found",
                                           (long long)missing, (long long)s.objects[TOTAL]));
    if (failed > 0)
        json_array_insert_new(warnings, 0,
                              json_sprintf("%lld of %lld objects failed", (long long)failed,
                                           (long long)s.objects[TOTAL]));
    return true;
}
