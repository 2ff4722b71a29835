#include "target/validate_report.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"

/* A job's report goes to every node: a name, or a detail, is cut. */
#define TEXT_SHOWN "%.256s"

static const struct {
    const char *name;
    const char *text;
} rows[] = {
#define FINDING(name, text) {#name, text},
    VALIDATE_FINDINGS(FINDING)
#undef FINDING
};

struct validate_report {
    uint64_t begun_ms;
    pthread_mutex_t lock; /* of what follows */
    uint64_t ended_ms;    /* 0: not yet */
    uint64_t total, done, bytes, differences;
    uint64_t found[VALIDATE_FINDINGS_COUNT];
    json_t *shown;
};

struct validate_report *validate_report_new(void)
{
    struct validate_report *r = xcalloc(1, sizeof *r);
    r->begun_ms = clock_ms();
    r->shown = json_array();
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void validate_report_free(struct validate_report *r)
{
    if (r == NULL)
        return;
    json_decref(r->shown);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void add(struct validate_report *r, uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&r->lock);
    *counter += n;
    pthread_mutex_unlock(&r->lock);
}

void validate_report_expect(struct validate_report *r, uint64_t objects)
{
    add(r, &r->total, objects);
}

void validate_report_looked_at(struct validate_report *r)
{
    add(r, &r->done, 1);
}

void validate_report_read(struct validate_report *r, uint64_t bytes)
{
    add(r, &r->bytes, bytes);
}

static json_t *cut(const char *text)
{
    _cleanup_free_ char *shown = xprintf(TEXT_SHOWN, text);
    return json_string_escaped(shown);
}

void validate_report_add(struct validate_report *r, enum validate_finding what,
                         const char *mountpath, uint64_t bucket_id, const char *name,
                         const char *detail)
{
    log_error("validation found a difference", lstr("what", rows[what].name),
              lstr("mountpath", mountpath), lu64("bucket_id", bucket_id), lstr("name", name),
              lstr("detail", detail));
    pthread_mutex_lock(&r->lock);
    r->found[what]++;
    r->differences++;
    if (json_array_size(r->shown) < VALIDATE_SHOWN)
        json_array_append_new(r->shown, json_pack("{s:s, s:o, s:I, s:o, s:o}", "what",
                                                  rows[what].name, "mountpath", cut(mountpath),
                                                  "bucket_id", (json_int_t)bucket_id, "name",
                                                  cut(name), "detail", cut(detail)));
    pthread_mutex_unlock(&r->lock);
}

void validate_report_end(struct validate_report *r)
{
    pthread_mutex_lock(&r->lock);
    r->ended_ms = clock_ms();
    pthread_mutex_unlock(&r->lock);
}

uint64_t validate_report_count(struct validate_report *r, enum validate_finding what)
{
    pthread_mutex_lock(&r->lock);
    uint64_t count = r->found[what];
    pthread_mutex_unlock(&r->lock);
    return count;
}

const char *validate_finding_name(enum validate_finding what)
{
    return rows[what].name;
}

/* Under the lock. */
static void put_found(const struct validate_report *r, json_t *found, json_t *warnings)
{
    for (size_t i = 0; i < VALIDATE_FINDINGS_COUNT; i++) {
        if (r->found[i] == 0)
            continue;
        json_object_set_new(found, rows[i].name, json_integer((json_int_t)r->found[i]));
        json_array_append_new(warnings, json_sprintf("%llu %s: %s", (unsigned long long)r->found[i],
                                                     rows[i].name, rows[i].text));
    }
    if (r->differences > VALIDATE_SHOWN)
        json_array_append_new(warnings,
                              json_sprintf("%d of %llu differences are shown; the log has all",
                                           VALIDATE_SHOWN, (unsigned long long)r->differences));
}

json_t *validate_report_status(struct validate_report *r)
{
    json_t *found = json_object(), *warnings = json_array();
    pthread_mutex_lock(&r->lock);
    uint64_t until_ms = r->ended_ms != 0 ? r->ended_ms : clock_ms();
    /* What was put or deleted meanwhile may have changed the number. */
    uint64_t total = r->ended_ms != 0 || r->total < r->done ? r->done : r->total;
    put_found(r, found, warnings);
    json_t *status =
        json_pack("{s:s, s:{s:I, s:I}, s:I, s:f, s:o, s:o, s:o}", "phase",
                  r->ended_ms != 0 ? "done" : "running", "objects", "done", (json_int_t)r->done,
                  "total", (json_int_t)total, "bytes", (json_int_t)r->bytes, "seconds",
                  (double)(until_ms - r->begun_ms) / 1000, "found", found, "warnings", warnings,
                  "differences", json_deep_copy(r->shown));
    pthread_mutex_unlock(&r->lock);
    return status;
}
