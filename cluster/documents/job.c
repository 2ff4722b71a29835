#include "cluster/documents/job.h"

#include <stdatomic.h>
#include <string.h>

#include "cluster/base/json_items.h"
#include "cluster/documents/names.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

/* The public struct stays plain; the count stands beside it. */
struct job_box {
    atomic_uint refs;
    struct job job;
};

static const char *const state_names[] = {
    [JOB_QUEUED] = "queued",     [JOB_RUNNING] = "running",   [JOB_COMMITTING] = "committing",
    [JOB_FINISHED] = "finished", [JOB_STOPPING] = "stopping", [JOB_FAILED] = "failed",
    [JOB_ABORTED] = "aborted",
};

enum { STATES = sizeof state_names / sizeof state_names[0] };

#define MAY(state) (1u << (state))
static const unsigned moves[STATES] = {
    [JOB_QUEUED] = MAY(JOB_RUNNING) | MAY(JOB_STOPPING),
    [JOB_RUNNING] = MAY(JOB_QUEUED) | MAY(JOB_COMMITTING) | MAY(JOB_STOPPING),
    [JOB_COMMITTING] = MAY(JOB_FINISHED),
    [JOB_STOPPING] = MAY(JOB_FAILED) | MAY(JOB_ABORTED),
};

bool job_may_move(enum job_state from, enum job_state to)
{
    return (moves[from] & MAY(to)) != 0;
}

bool job_ended(enum job_state s)
{
    return s == JOB_FINISHED || s == JOB_FAILED || s == JOB_ABORTED;
}

static bool names_bucket(const struct job *j, const char *field, uint64_t bucket_id)
{
    return json_integer_value(json_object_get(j->plan, field)) == (json_int_t)bucket_id;
}

bool job_makes_in(const struct job *j, uint64_t bucket_id)
{
    return names_bucket(j, "output_bucket_id", bucket_id);
}

bool job_uses_bucket(const struct job *j, uint64_t bucket_id)
{
    return names_bucket(j, "input_bucket_id", bucket_id) || job_makes_in(j, bucket_id);
}

const char *job_state_name(enum job_state s)
{
    return state_names[s];
}

int job_state_from_name(const char *name, enum job_state *s, struct error *err)
{
    for (size_t i = 0; i < STATES; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *s = (enum job_state)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%.32s' is not a job's state", name);
}

static struct job_box *job_box(const struct job *j)
{
    return (struct job_box *)((char *)j - offsetof(struct job_box, job));
}

struct job *job_new(const char *id, const char *kind)
{
    struct job_box *box = xcalloc(1, sizeof *box);
    atomic_init(&box->refs, 1);
    box->job.id = xstrdup(id);
    box->job.kind = xstrdup(kind);
    box->job.stop_as = JOB_FAILED;
    return &box->job;
}

struct job *job_ref(const struct job *j)
{
    atomic_fetch_add_explicit(&job_box(j)->refs, 1, memory_order_relaxed);
    return &job_box(j)->job;
}

void job_unref(const struct job *j)
{
    if (j == NULL)
        return;
    struct job_box *box = job_box(j);
    if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(box->job.id);
    free(box->job.kind);
    free(box->job.description);
    free(box->job.error_code);
    free(box->job.error_message);
    for (size_t i = 0; i < box->job.participant_count; i++)
        free(box->job.participants[i]);
    free(box->job.participants);
    for (size_t i = 0; i < box->job.without_count; i++)
        free(box->job.without[i]);
    free(box->job.without);
    json_decref(box->job.spec);
    json_decref(box->job.plan);
    json_decref(box->job.report);
    free(box);
}

static void job_copy_participants(struct job *to, const struct job *from)
{
    to->participants = xcalloc(from->participant_count, sizeof to->participants[0]);
    to->participant_count = from->participant_count;
    for (size_t i = 0; i < from->participant_count; i++)
        to->participants[i] = xstrdup(from->participants[i]);
    for (size_t i = 0; i < from->without_count; i++)
        job_leave_out(to, from->without[i]);
}

void job_leave_out(struct job *j, const char *id)
{
    j->without = xrealloc(j->without, (j->without_count + 1) * sizeof j->without[0]);
    j->without[j->without_count++] = xstrdup(id);
}

bool job_leaves_out(const struct job *j, const char *id)
{
    for (size_t i = 0; i < j->without_count; i++) {
        if (strcmp(j->without[i], id) == 0)
            return true;
    }
    return false;
}

struct job *job_copy(const struct job *j)
{
    struct job *copy = job_new(j->id, j->kind);
    copy->state = j->state;
    copy->stop_as = j->stop_as;
    copy->attempt = j->attempt;
    copy->description = xstrdup(j->description);
    copy->spec = json_deep_copy(j->spec);
    copy->plan = json_deep_copy(j->plan);
    copy->report = json_deep_copy(j->report);
    copy->created_ms = j->created_ms;
    copy->started_ms = j->started_ms;
    copy->ended_ms = j->ended_ms;
    copy->error_code = xstrdup(j->error_code);
    copy->error_message = xstrdup(j->error_message);
    job_copy_participants(copy, j);
    return copy;
}

static void set_if(json_t *doc, const char *field, const json_t *value)
{
    if (value != NULL)
        json_object_set_new(doc, field, json_deep_copy(value));
}

/* Messages are cut at a length in bytes, and quote what peers and disks said: whatever of them is
 * not UTF-8 must not keep a job out of the document. */
static json_t *job_error_json(const struct job *j)
{
    json_t *error = json_pack("{s:s}", "code", j->error_code);
    json_object_set_new(error, "message",
                        json_string_escaped(j->error_message != NULL ? j->error_message : ""));
    return error;
}

static json_t *ids_json(char *const *ids, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(ids[i]));
    return list;
}

json_t *job_to_json(const struct job *j)
{
    json_t *participants = ids_json(j->participants, j->participant_count);
    json_t *doc = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I}", "id", j->id, "kind", j->kind,
                            "state", job_state_name(j->state), "participants", participants,
                            "created", (json_int_t)j->created_ms, "started",
                            (json_int_t)j->started_ms, "ended", (json_int_t)j->ended_ms);
    if (j->attempt > 0)
        json_object_set_new(doc, "attempt", json_integer((json_int_t)j->attempt));
    if (j->without_count > 0)
        json_object_set_new(doc, "without", ids_json(j->without, j->without_count));
    if (j->state == JOB_STOPPING)
        json_object_set_new(doc, "stop_as", json_string(job_state_name(j->stop_as)));
    if (j->description != NULL)
        json_object_set_new(doc, "description", json_string_escaped(j->description));
    if (j->error_code != NULL)
        json_object_set_new(doc, "error", job_error_json(j));
    set_if(doc, "spec", j->spec);
    set_if(doc, "plan", j->plan);
    set_if(doc, "report", j->report);
    return doc;
}

size_t job_bytes(const struct job *j)
{
    _cleanup_json_ json_t *doc = job_to_json(j);
    return json_dumpb(doc, NULL, 0, JSON_COMPACT);
}

/* A job that has not changed is the same object in both snapshots, or came through JSON. */
bool job_equal(const struct job *a, const struct job *b)
{
    if (a == b)
        return true;
    _cleanup_json_ json_t *ja = job_to_json(a);
    _cleanup_json_ json_t *jb = job_to_json(b);
    return json_equal(ja, jb) != 0;
}

static bool job_has(const struct job *j, const char *id)
{
    for (size_t i = 0; i < j->participant_count; i++) {
        if (strcmp(j->participants[i], id) == 0)
            return true;
    }
    return false;
}

static int job_participants_from_json(json_t *doc, struct job *j, struct error *err)
{
    json_t *names = NULL;
    int r = json_get_array(doc, "job", "participants", &names, err);
    if (r != 0)
        return r;
    size_t count = json_array_size(names);
    j->participants = xcalloc(count, sizeof j->participants[0]);
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_array_get(names, i));
        if (id == NULL)
            return error_set(err, E_JSON, "field 'job.participants[%zu]' must be a string", i);
        if ((r = node_id_check(id, err)) != 0) {
            error_wrap(err, "field 'job.participants[%zu]'", i);
            return r;
        }
        j->participants[j->participant_count++] = xstrdup(id);
    }
    return 0;
}

static int job_without_from_json(json_t *doc, struct job *j, struct error *err)
{
    json_t *names = NULL;
    int r = json_get_array(doc, "job", "without", &names, err);
    for (size_t i = 0; r == 0 && i < json_array_size(names); i++) {
        const char *id = json_string_value(json_array_get(names, i));
        if (id == NULL || !job_has(j, id) || job_leaves_out(j, id))
            return error_set(err, E_JSON, "field 'job.without[%zu]' must be one more participant",
                             i);
        job_leave_out(j, id);
    }
    return r;
}

static int job_states_from_json(json_t *doc, struct job *j, struct error *err)
{
    const char *state;
    const char *stop_as = job_state_name(JOB_FAILED);
    int r;
    if ((r = json_need_str(doc, "job", "state", &state, err)) != 0 ||
        (r = json_get_str(doc, "job", "stop_as", &stop_as, err)) != 0 ||
        (r = json_get_u64(doc, "job", "attempt", &j->attempt, err)) != 0)
        return r;
    if ((r = job_state_from_name(state, &j->state, err)) != 0)
        error_wrap(err, "field 'job.state'");
    else if ((r = job_state_from_name(stop_as, &j->stop_as, err)) != 0)
        error_wrap(err, "field 'job.stop_as'");
    else if (j->stop_as != JOB_FAILED && j->stop_as != JOB_ABORTED)
        r = error_set(err, E_INVALID, "field 'job.stop_as' must be failed or aborted");
    return r;
}

static int job_error_from_json(json_t *doc, struct job *j, struct error *err)
{
    json_t *error = NULL;
    int r = json_get_object(doc, "job", "error", &error, err);
    if (r != 0 || error == NULL)
        return r;
    const char *code;
    const char *message = "";
    if ((r = json_need_str(error, "job.error", "code", &code, err)) != 0 ||
        (r = json_get_str(error, "job.error", "message", &message, err)) != 0)
        return r;
    j->error_code = xstrdup(code);
    j->error_message = xstrdup(message);
    return 0;
}

static int job_texts_from_json(json_t *doc, struct job *j, struct error *err)
{
    const char *description = NULL;
    int r;
    if ((r = json_get_str(doc, "job", "description", &description, err)) != 0 ||
        (r = json_get_i64(doc, "job", "created", &j->created_ms, err)) != 0 ||
        (r = json_get_i64(doc, "job", "started", &j->started_ms, err)) != 0 ||
        (r = json_get_i64(doc, "job", "ended", &j->ended_ms, err)) != 0)
        return r;
    j->description = xstrdup(description);
    return 0;
}

static int job_documents_from_json(json_t *doc, struct job *j, struct error *err)
{
    json_t *spec = NULL;
    json_t *plan = NULL;
    json_t *report = NULL;
    int r;
    if ((r = json_get_object(doc, "job", "spec", &spec, err)) != 0 ||
        (r = json_get_object(doc, "job", "plan", &plan, err)) != 0 ||
        (r = json_get_object(doc, "job", "report", &report, err)) != 0)
        return r;
    j->spec = json_deep_copy(spec);
    j->plan = json_deep_copy(plan);
    j->report = json_deep_copy(report);
    return 0;
}

int job_from_json(json_t *doc, struct job **out, struct error *err)
{
    const char *id, *kind;
    int r;
    if ((r = json_need_str(doc, "job", "id", &id, err)) != 0 ||
        (r = json_need_str(doc, "job", "kind", &kind, err)) != 0)
        return r;
    /* An id names a directory and stands in URLs: the rules of a bucket's name fit. */
    if (bucket_name_check(id, NULL) != 0)
        return error_set(err, E_INVALID, "field 'job.id': '%.80s' is not a job id", id);
    struct job *j = job_new(id, kind);
    if ((r = job_states_from_json(doc, j, err)) != 0 ||
        (r = job_participants_from_json(doc, j, err)) != 0 ||
        (r = job_without_from_json(doc, j, err)) != 0 ||
        (r = job_error_from_json(doc, j, err)) != 0 ||
        (r = job_texts_from_json(doc, j, err)) != 0 ||
        (r = job_documents_from_json(doc, j, err)) != 0) {
        job_unref(j);
        return r;
    }
    *out = j;
    return 0;
}
