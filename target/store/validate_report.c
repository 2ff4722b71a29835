#include "target/store/validate_report.h"

#include <pthread.h>
#include <string.h>

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

static const char *const mend_names[] = {
#define MEND(name, text) #name,
    VALIDATE_MENDS(MEND)
#undef MEND
};

struct tally {
    uint64_t done, bytes, differences;
    uint64_t found[VALIDATE_FINDINGS_COUNT];
    uint64_t mended[VALIDATE_MENDS_COUNT];
};

struct validate_part {
    struct validate_part *next;
    struct validate_report *report;
    char *mountpath;
    struct tally tally; /* under the report's lock, with what follows */
    json_t *shown;
};

struct validate_report {
    uint64_t begun_ms;
    pthread_mutex_t lock; /* of what follows */
    uint64_t ended_ms;    /* 0: not yet */
    uint64_t total;
    struct validate_part *parts;
};

struct validate_report *validate_report_new(void)
{
    struct validate_report *r = xcalloc(1, sizeof *r);
    r->begun_ms = clock_ms();
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void validate_report_free(struct validate_report *r)
{
    if (r == NULL)
        return;
    for (struct validate_part *p = r->parts, *next; p != NULL; p = next) {
        next = p->next;
        json_decref(p->shown);
        free(p->mountpath);
        free(p);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void validate_report_expect(struct validate_report *r, uint64_t objects)
{
    pthread_mutex_lock(&r->lock);
    r->total = objects;
    pthread_mutex_unlock(&r->lock);
}

/* Under the lock. */
static struct validate_part *find_part(const struct validate_report *r, const char *mountpath)
{
    struct validate_part *p = r->parts;
    while (p != NULL && strcmp(p->mountpath, mountpath) != 0)
        p = p->next;
    return p;
}

struct validate_part *validate_report_part(struct validate_report *r, const char *mountpath)
{
    pthread_mutex_lock(&r->lock);
    struct validate_part *p = find_part(r, mountpath);
    if (p == NULL) {
        p = xcalloc(1, sizeof *p);
        *p = (struct validate_part){
            .next = r->parts, .report = r, .mountpath = xstrdup(mountpath), .shown = json_array()};
        r->parts = p;
    }
    pthread_mutex_unlock(&r->lock);
    return p;
}

void validate_report_end(struct validate_report *r)
{
    pthread_mutex_lock(&r->lock);
    r->ended_ms = clock_ms();
    pthread_mutex_unlock(&r->lock);
}

/* --- one mountpath ---------------------------------------------------------------------------- */

void validate_part_reset(struct validate_part *p)
{
    pthread_mutex_lock(&p->report->lock);
    p->tally = (struct tally){0};
    json_array_clear(p->shown);
    pthread_mutex_unlock(&p->report->lock);
}

static void add(struct validate_part *p, uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&p->report->lock);
    *counter += n;
    pthread_mutex_unlock(&p->report->lock);
}

void validate_part_looked_at(struct validate_part *p)
{
    add(p, &p->tally.done, 1);
}

void validate_part_read(struct validate_part *p, uint64_t bytes)
{
    add(p, &p->tally.bytes, bytes);
}

void validate_part_mended(struct validate_part *p, enum validate_mend what)
{
    add(p, &p->tally.mended[what], 1);
}

static json_t *cut(const char *text)
{
    _cleanup_free_ char *shown = xprintf(TEXT_SHOWN, text);
    return json_string_escaped(shown);
}

void validate_part_add(struct validate_part *p, enum validate_finding what, uint64_t bucket_id,
                       const char *name, const char *detail)
{
    log_error("a difference on the disk", lstr("what", rows[what].name),
              lstr("mountpath", p->mountpath), lu64("bucket_id", bucket_id), lstr("name", name),
              lstr("detail", detail));
    pthread_mutex_lock(&p->report->lock);
    p->tally.found[what]++;
    p->tally.differences++;
    if (json_array_size(p->shown) < VALIDATE_SHOWN)
        json_array_append_new(p->shown, json_pack("{s:s, s:o, s:I, s:o, s:o}", "what",
                                                  rows[what].name, "mountpath", cut(p->mountpath),
                                                  "bucket_id", (json_int_t)bucket_id, "name",
                                                  cut(name), "detail", cut(detail)));
    pthread_mutex_unlock(&p->report->lock);
}

static void put_counts(json_t *doc, const uint64_t *counts, const char *(*name)(size_t i), size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (counts[i] != 0)
            json_object_set_new(doc, name(i), json_integer((json_int_t)counts[i]));
    }
}

static const char *finding_at(size_t i)
{
    return rows[i].name;
}

static const char *mend_at(size_t i)
{
    return mend_names[i];
}

json_t *validate_part_to_json(struct validate_part *p)
{
    json_t *found = json_object(), *mended = json_object();
    pthread_mutex_lock(&p->report->lock);
    put_counts(found, p->tally.found, finding_at, VALIDATE_FINDINGS_COUNT);
    put_counts(mended, p->tally.mended, mend_at, VALIDATE_MENDS_COUNT);
    json_t *doc = json_pack("{s:I, s:I, s:o, s:o, s:o}", "objects", (json_int_t)p->tally.done,
                            "bytes", (json_int_t)p->tally.bytes, "found", found, "mended", mended,
                            "differences", json_deep_copy(p->shown));
    pthread_mutex_unlock(&p->report->lock);
    return doc;
}

static int get_counts(json_t *doc, const char *field, uint64_t *counts,
                      const char *(*name)(size_t i), size_t n, struct error *err)
{
    json_t *obj = NULL;
    int code = json_get_object(doc, "report", field, &obj, err);
    for (size_t i = 0; i < n && obj != NULL && code == 0; i++)
        code = json_get_u64(obj, field, name(i), &counts[i], err);
    return code;
}

int validate_part_from_json(struct validate_part *p, json_t *doc, struct error *err)
{
    struct tally t = {0};
    json_t *shown = NULL;
    validate_part_reset(p);
    int code = json_get_u64(doc, "report", "objects", &t.done, err);
    if (code == 0)
        code = json_get_u64(doc, "report", "bytes", &t.bytes, err);
    if (code == 0)
        code = get_counts(doc, "found", t.found, finding_at, VALIDATE_FINDINGS_COUNT, err);
    if (code == 0)
        code = get_counts(doc, "mended", t.mended, mend_at, VALIDATE_MENDS_COUNT, err);
    if (code == 0)
        code = json_get_array(doc, "report", "differences", &shown, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < VALIDATE_FINDINGS_COUNT; i++)
        t.differences += t.found[i];
    pthread_mutex_lock(&p->report->lock);
    p->tally = t;
    if (shown != NULL)
        json_array_extend(p->shown, shown);
    pthread_mutex_unlock(&p->report->lock);
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Under the lock. */
static struct tally sum_of(const struct validate_report *r)
{
    struct tally sum = {0};
    for (const struct validate_part *p = r->parts; p != NULL; p = p->next) {
        sum.done += p->tally.done;
        sum.bytes += p->tally.bytes;
        sum.differences += p->tally.differences;
        for (size_t i = 0; i < VALIDATE_FINDINGS_COUNT; i++)
            sum.found[i] += p->tally.found[i];
        for (size_t i = 0; i < VALIDATE_MENDS_COUNT; i++)
            sum.mended[i] += p->tally.mended[i];
    }
    return sum;
}

static struct tally tally_of(struct validate_report *r)
{
    pthread_mutex_lock(&r->lock);
    struct tally sum = sum_of(r);
    pthread_mutex_unlock(&r->lock);
    return sum;
}

uint64_t validate_report_count(struct validate_report *r, enum validate_finding what)
{
    return tally_of(r).found[what];
}

uint64_t validate_report_mended(struct validate_report *r, enum validate_mend what)
{
    return tally_of(r).mended[what];
}

const char *validate_finding_name(enum validate_finding what)
{
    return rows[what].name;
}

int validate_finding_from_name(const char *name, enum validate_finding *out, struct error *err)
{
    for (size_t i = 0; i < VALIDATE_FINDINGS_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *out = (enum validate_finding)i;
            return 0;
        }
    }
    return error_set(err, E_NOT_FOUND, "'%.64s' is nothing that is found", name);
}

static json_t *warnings_of(const struct tally *sum)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < VALIDATE_FINDINGS_COUNT; i++) {
        if (sum->found[i] != 0)
            json_array_append_new(warnings,
                                  json_sprintf("%llu %s: %s", (unsigned long long)sum->found[i],
                                               rows[i].name, rows[i].text));
    }
    if (sum->differences > VALIDATE_SHOWN)
        json_array_append_new(warnings,
                              json_sprintf("%d of %llu differences are shown; the log has all",
                                           VALIDATE_SHOWN, (unsigned long long)sum->differences));
    return warnings;
}

/* Under the lock.  The first of each mountpath, in the order of the mountpaths' paths. */
static json_t *shown_of(const struct validate_report *r)
{
    json_t *all = json_array();
    for (const char *after = "";;) {
        const struct validate_part *next = NULL;
        for (const struct validate_part *p = r->parts; p != NULL; p = p->next) {
            if (strcmp(p->mountpath, after) > 0 &&
                (next == NULL || strcmp(p->mountpath, next->mountpath) < 0))
                next = p;
        }
        if (next == NULL)
            return all;
        size_t i;
        json_t *one;
        json_array_foreach(next->shown, i, one)
        {
            if (json_array_size(all) < VALIDATE_SHOWN)
                json_array_append_new(all, json_deep_copy(one));
        }
        after = next->mountpath;
    }
}

json_t *validate_report_status(struct validate_report *r)
{
    json_t *found = json_object(), *mended = json_object();
    pthread_mutex_lock(&r->lock);
    struct tally sum = sum_of(r);
    uint64_t until_ms = r->ended_ms != 0 ? r->ended_ms : clock_ms();
    /* What was put or deleted meanwhile may have changed the number. */
    uint64_t total = r->ended_ms != 0 || r->total < sum.done ? sum.done : r->total;
    put_counts(found, sum.found, finding_at, VALIDATE_FINDINGS_COUNT);
    put_counts(mended, sum.mended, mend_at, VALIDATE_MENDS_COUNT);
    json_t *status =
        json_pack("{s:s, s:{s:I, s:I}, s:I, s:f, s:o, s:o, s:o, s:o}", "phase",
                  r->ended_ms != 0 ? "done" : "running", "objects", "done", (json_int_t)sum.done,
                  "total", (json_int_t)total, "bytes", (json_int_t)sum.bytes, "seconds",
                  (double)(until_ms - r->begun_ms) / 1000, "found", found, "mended", mended,
                  "warnings", warnings_of(&sum), "differences", shown_of(r));
    pthread_mutex_unlock(&r->lock);
    return status;
}
