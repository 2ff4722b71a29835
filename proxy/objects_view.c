#include "proxy/objects_view.h"

static const char *const counters[] = {"done", "skipped", "missing", "failed", "total"};
enum { DONE, SKIPPED, MISSING, FAILED, TOTAL, COUNTERS };

struct sums {
    json_int_t objects[COUNTERS];
    json_int_t compared, passed; /* names */
    json_int_t bytes;
    double seconds; /* of the target that has worked for the longest time */
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
    struct sums s = {0};
    const char *id;
    json_t *report;
    json_object_foreach((json_t *)reports, id, report)
        sums_add(&s, json_object_get(report, "status"));
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
