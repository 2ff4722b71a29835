#include "target/store/job_tally.h"

#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { FAILURES_SHOWN = 20, FAILURES_MAX = 1000 };

struct job_tally {
    const char *done_word;
    uint64_t begun_ms;
    pthread_mutex_t lock; /* of what follows */
    uint64_t ended_ms;    /* 0: not yet */
    uint64_t total, done, skipped, missing, failed, bytes;
    uint64_t compared, passed; /* names */
    struct error first;        /* of the failures, or the one that ends the job */
    bool ends;                 /* there is such a one */
    json_t *shown;
    json_t *details; /* fields of the kind's own */
    char *waits_for;
    bool resumed;
};

struct job_tally *job_tally_new(const char *done_word)
{
    struct job_tally *t = xcalloc(1, sizeof *t);
    t->done_word = done_word;
    t->begun_ms = clock_ms();
    t->shown = json_array();
    t->details = json_object();
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void job_tally_free(struct job_tally *t)
{
    if (t == NULL)
        return;
    json_decref(t->shown);
    json_decref(t->details);
    free(t->waits_for);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void add(struct job_tally *t, uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&t->lock);
    *counter += n;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_expect(struct job_tally *t, uint64_t objects)
{
    add(t, &t->total, objects);
}

void job_tally_done(struct job_tally *t, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    t->done++;
    t->bytes += bytes;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_add(struct job_tally *t, uint64_t objects, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    t->total += objects;
    t->done += objects;
    t->bytes += bytes;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_detail(struct job_tally *t, const char *field, json_t *value)
{
    pthread_mutex_lock(&t->lock);
    json_object_set_new(t->details, field, value);
    pthread_mutex_unlock(&t->lock);
}

void job_tally_skipped(struct job_tally *t)
{
    add(t, &t->skipped, 1);
}

void job_tally_missing(struct job_tally *t)
{
    add(t, &t->missing, 1);
}

void job_tally_missed(struct job_tally *t, const char *name, const char *why)
{
    pthread_mutex_lock(&t->lock);
    t->missing++;
    if (json_array_size(t->shown) < FAILURES_SHOWN) {
        _cleanup_free_ char *text = xprintf("'%.128s': %s", name, why);
        json_array_append_new(t->shown, json_string_escaped(text));
    }
    pthread_mutex_unlock(&t->lock);
}

void job_tally_resumed(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->resumed = true;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_restart(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->total = t->done = t->skipped = t->missing = t->failed = t->bytes = 0;
    t->compared = t->passed = 0;
    json_array_clear(t->shown);
    pthread_mutex_unlock(&t->lock);
}

void job_tally_looked(struct job_tally *t, bool passed)
{
    add(t, passed ? &t->passed : &t->compared, 1);
}

void job_tally_fail(struct job_tally *t, const char *name, const struct error *err)
{
    struct error named = *err;
    error_wrap(&named, "'%.128s'", name);
    pthread_mutex_lock(&t->lock);
    bool ends = err->code == E_QUOTA_EXCEEDED && !t->ends;
    if (t->failed++ == 0 || ends)
        t->first = named;
    t->ends = t->ends || ends;
    if (json_array_size(t->shown) < FAILURES_SHOWN)
        json_array_append_new(t->shown, json_string_escaped(named.message));
    pthread_mutex_unlock(&t->lock);
}

void job_tally_wait(struct job_tally *t, const struct error *why)
{
    pthread_mutex_lock(&t->lock);
    free(t->waits_for);
    t->waits_for = why != NULL ? xprintf("waits: %s", why->message) : NULL;
    pthread_mutex_unlock(&t->lock);
}

uint64_t job_tally_failed(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t failed = t->failed;
    pthread_mutex_unlock(&t->lock);
    return failed;
}

bool job_tally_hopeless(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    bool hopeless = t->failed >= FAILURES_MAX || t->ends;
    pthread_mutex_unlock(&t->lock);
    return hopeless;
}

int job_tally_end(struct job_tally *t, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&t->lock);
    t->ended_ms = clock_ms();
    if (t->failed > 0)
        code = error_set(err, t->first.code, "%llu of %llu objects were not %s; the first: %s",
                         (unsigned long long)t->failed, (unsigned long long)t->total, t->done_word,
                         t->first.message);
    pthread_mutex_unlock(&t->lock);
    return code;
}

void job_tally_close(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->ended_ms = clock_ms();
    pthread_mutex_unlock(&t->lock);
}

/* Where they say something. */
static void add_rest(const struct job_tally *t, json_t *status)
{
    if (t->failed > 0)
        json_object_set_new(status, "first_failure",
                            json_pack("{s:s, s:o}", "code", error_name(t->first.code), "message",
                                      json_string_escaped(t->first.message)));
    if (t->resumed)
        json_object_set_new(status, "resumed", json_true());
    if (t->compared + t->passed > 0)
        json_object_set_new(status, "names",
                            json_pack("{s:I, s:I}", "compared", (json_int_t)t->compared, "passed",
                                      (json_int_t)t->passed));
    _cleanup_json_ json_t *details = json_deep_copy(t->details);
    json_object_update(status, details);
}

json_t *job_tally_status(struct job_tally *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t until_ms = t->ended_ms != 0 ? t->ended_ms : clock_ms();
    json_t *warnings = json_deep_copy(t->shown);
    if (t->waits_for != NULL)
        json_array_append_new(warnings, json_string_escaped(t->waits_for));
    json_t *status = json_pack("{s:s, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:f, s:o}", "phase",
                               t->ended_ms != 0 ? "done" : "running", "objects", "done",
                               (json_int_t)t->done, "skipped", (json_int_t)t->skipped, "missing",
                               (json_int_t)t->missing, "failed", (json_int_t)t->failed, "total",
                               (json_int_t)t->total, "bytes", (json_int_t)t->bytes, "seconds",
                               (double)(until_ms - t->begun_ms) / 1000, "warnings", warnings);
    add_rest(t, status);
    pthread_mutex_unlock(&t->lock);
    return status;
}
