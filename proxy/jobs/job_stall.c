#include "proxy/jobs/job_stall.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cluster/documents/job.h"
#include "cluster/documents/jobs.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/metrics.h"

struct seen {
    struct seen *next;
    char *id;
    uint64_t mark; /* of its reports */
    uint64_t since_ms;
    uint64_t stalled_ms;
    bool looked_at;
};

struct job_stalls {
    struct seen *first;
};

/* --- the mark of a report -------------------------------------------------------------------- */

static uint64_t mix(uint64_t mark, uint64_t value)
{
    enum { ROTATE = 23 };
    mark = (mark ^ value) * 0x9e3779b97f4a7c15u;
    return mark << ROTATE | mark >> (64 - ROTATE);
}

static uint64_t mix_text(uint64_t mark, const char *text)
{
    for (; *text != '\0'; text++)
        mark = mix(mark, (unsigned char)*text);
    return mix(mark, 256);
}

static uint64_t mark_of(uint64_t mark, const json_t *value);

static uint64_t mark_of_object(uint64_t mark, const json_t *value)
{
    const char *key;
    json_t *one;
    json_object_foreach((json_t *)value, key, one)
    {
        if (strcmp(key, "seconds") != 0)
            mark = mark_of(mix_text(mark, key), one);
    }
    return mark;
}

static uint64_t mark_of(uint64_t mark, const json_t *value)
{
    size_t i;
    json_t *one;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return mark_of_object(mark, value);
    case JSON_ARRAY:
        json_array_foreach(value, i, one) mark = mark_of(mark, one);
        return mark;
    case JSON_STRING:
        return mix_text(mark, json_string_value(value));
    case JSON_INTEGER:
        return mix(mark, (uint64_t)json_integer_value(value));
    case JSON_TRUE:
        return mix(mark, 1);
    case JSON_REAL:
    case JSON_FALSE:
    case JSON_NULL:
        return mark;
    }
    return mark;
}

/* --- jobs ------------------------------------------------------------------------------------ */

struct job_stalls *job_stalls_new(void)
{
    return xcalloc(1, sizeof(struct job_stalls));
}

static void seen_free(struct seen *one)
{
    free(one->id);
    free(one);
}

void job_stalls_free(struct job_stalls *s)
{
    if (s == NULL)
        return;
    while (s->first != NULL) {
        struct seen *one = s->first;
        s->first = one->next;
        seen_free(one);
    }
    free(s);
}

static struct seen *find(const struct job_stalls *s, const char *id)
{
    struct seen *one = s->first;
    while (one != NULL && strcmp(one->id, id) != 0)
        one = one->next;
    return one;
}

static void look_at(struct job_stalls *s, const struct job *job, const json_t *reports,
                    uint64_t now_ms)
{
    uint64_t mark = mark_of(mix(0, (uint64_t)job->state), reports);
    struct seen *one = find(s, job->id);
    if (one == NULL) {
        one = xcalloc(1, sizeof *one);
        *one = (struct seen){.next = s->first, .id = xstrdup(job->id), .since_ms = now_ms};
        s->first = one;
    } else if (one->mark != mark) {
        one->since_ms = now_ms;
    }
    one->mark = mark;
    one->stalled_ms = now_ms - one->since_ms;
    one->looked_at = true;
}

static void forget_others(struct job_stalls *s)
{
    for (struct seen **at = &s->first; *at != NULL;) {
        struct seen *one = *at;
        if (one->looked_at) {
            one->looked_at = false;
            at = &one->next;
            continue;
        }
        *at = one->next;
        seen_free(one);
    }
}

static void show(const struct job *job, uint64_t stalled_ms)
{
    char label[64];
    snprintf(label, sizeof label, "kind=\"%s\"", job->kind);
    metric_t *m = metric_get(M_jobs_stalled_seconds, label);
    if (stalled_ms / 1000 > metric_value(m))
        metric_set(m, (int64_t)(stalled_ms / 1000));
}

static bool runs(const struct job *job)
{
    return job->state != JOB_QUEUED && !job_ended(job->state);
}

void job_stalls_look(struct job_stalls *s, const struct jobs *jobs, job_reports_fn *reports,
                     void *ctx, uint64_t now_ms)
{
    metric_zero(M_jobs_stalled_seconds);
    for (size_t i = 0; jobs != NULL && i < jobs->count; i++) {
        const struct job *job = jobs->jobs[i];
        if (!runs(job))
            continue;
        _cleanup_json_ json_t *said = reports(ctx, job->id);
        look_at(s, job, said, now_ms);
        show(job, job_stalls_ms(s, job->id));
    }
    forget_others(s);
}

uint64_t job_stalls_ms(const struct job_stalls *s, const char *job_id)
{
    const struct seen *one = find(s, job_id);
    return one != NULL ? one->stalled_ms : 0;
}
