/* dfc_sort_*, dfc_job_*. */
#include "api/dfc.h"

#include "api/action.h"
#include "api/call.h"
#include "api/failure.h"
#include "api/job_id.h"
#include "api/uri.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define WAIT_FIRST_MS 50
#define WAIT_MOST_MS 1000

void dfc_job_free(struct dfc_job *job)
{
    if (job == NULL)
        return;
    free(job->id);
    free(job->kind);
    free(job->state);
    free(job->error);
    free(job->document);
    free(job);
}

static bool state_is_last(const char *state)
{
    return strcmp(state, "finished") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "aborted") == 0;
}

static const char *first_error(json_t *doc)
{
    json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
    const char *text = json_string_value(json_object_get(first, "message"));
    return text != NULL ? text : "";
}

static int job_parse(char *text, struct dfc_job **out, struct error *e)
{
    const char *id = "";
    const char *kind = "";
    const char *state = "";
    _cleanup_json_ json_t *doc = NULL;
    if (json_parse(text, strlen(text), &doc, e) != 0 || json_need_str(doc, "", "id", &id, e) != 0 ||
        json_get_str(doc, "", "kind", &kind, e) != 0 ||
        json_need_str(doc, "", "state", &state, e) != 0)
        return e->code;
    struct dfc_job *job = xcalloc(1, sizeof *job);
    *job = (struct dfc_job){
        .id = xstrdup(id),
        .kind = xstrdup(kind),
        .state = xstrdup(state),
        .ended = state_is_last(state),
        .percent = json_number_value(json_object_get(json_object_get(doc, "progress"), "percent")),
        .error = xstrdup(first_error(doc)),
        .document = text,
    };
    *out = job;
    return 0;
}

static int job_get(struct dfc_client *c, struct buf *path, struct dfc_job **job,
                   struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    struct error e = ERROR_INIT;
    _cleanup_free_ char *text = NULL;
    int rc = call_small(c, &what, path, &text, err);
    if (rc != DFC_OK)
        return rc;
    if (job_parse(text, job, &e) != 0) {
        error_wrap(&e, "the job's document");
        return failure_common(err, DFC_FAILED, &e);
    }
    text = NULL; /* it is the job's now */
    return DFC_OK;
}

static int job_path(struct buf *path, const char *id, struct dfc_error *err)
{
    if (id[0] == '\0' || strchr(id, '/') != NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "'%s' is not the id of a job", id);
    buf_puts(path, "/v1/jobs/");
    buf_put_url_escaped(path, id, strlen(id), "");
    return DFC_OK;
}

static int sort_path(struct buf *path, const char *base, const char *id, struct dfc_error *err)
{
    if (id[0] == '\0')
        return failure_set(err, DFC_INVALID, E_INVALID, "the job's id is empty");
    buf_puts(path, base);
    uri_query(path, "id", id);
    return DFC_OK;
}

int dfc_sort_start(struct dfc_client *c, const char *spec, char **id, struct dfc_error *err)
{
    const struct call_small what = {.method = "POST", .body = spec};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    _cleanup_free_ char *text = NULL;
    buf_puts(&path, "/v1/sort");
    int rc = call_small(c, &what, &path, &text, err);
    return rc == DFC_OK ? job_id_of(text, id, err) : rc;
}

int dfc_sort_show(struct dfc_client *c, const char *id, struct dfc_job **job, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = sort_path(&path, "/v1/sort", id, err);
    return rc == DFC_OK ? job_get(c, &path, job, err) : rc;
}

int dfc_sort_list(struct dfc_client *c, const char *regex, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/sort");
    uri_query(&path, "regex", regex);
    return call_small(c, &what, &path, document, err);
}

int dfc_sort_abort(struct dfc_client *c, const char *id, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = sort_path(&path, "/v1/sort/abort", id, err);
    return rc == DFC_OK ? call_small(c, &what, &path, NULL, err) : rc;
}

int dfc_sort_forget(struct dfc_client *c, const char *id, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = sort_path(&path, "/v1/sort", id, err);
    return rc == DFC_OK ? call_small(c, &what, &path, NULL, err) : rc;
}

int dfc_job_show(struct dfc_client *c, const char *id, struct dfc_job **job, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = job_path(&path, id, err);
    return rc == DFC_OK ? job_get(c, &path, job, err) : rc;
}

int dfc_job_list(struct dfc_client *c, const char *kind, const char *state, char **document,
                 struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/jobs");
    uri_query(&path, "kind", kind);
    uri_query(&path, "state", state);
    return call_small(c, &what, &path, document, err);
}

static int start(struct dfc_client *c, const char *body, char **id, struct dfc_error *err)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    const struct call_small what = {.method = "POST", .body = body};
    buf_puts(&path, "/v1/jobs");
    int rc = call_small(c, &what, &path, &text, err);
    return rc == DFC_OK ? job_id_of(text, id, err) : rc;
}

int dfc_job_start(struct dfc_client *c, const char *kind, char **id, struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    int rc = action_body("start", kind, &body, err);
    return rc == DFC_OK ? start(c, body, id, err) : rc;
}

int dfc_validate_start(struct dfc_client *c, bool checksums, uint64_t rate_bytes_s, char **id,
                       struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:{s:b, s:I}}", "action", "start", "name", "validate", "value",
                  "checksums", (int)checksums, "rate", (json_int_t)rate_bytes_s);
    _cleanup_free_ char *body = json_text(doc);
    return start(c, body, id, err);
}

int dfc_scrub_start(struct dfc_client *c, const uint64_t *rate_bytes_s, char **id,
                    struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:{}}", "action", "start", "name", "scrub", "value");
    if (rate_bytes_s != NULL)
        json_object_set_new(json_object_get(doc, "value"), "rate",
                            json_integer((json_int_t)*rate_bytes_s));
    _cleanup_free_ char *body = json_text(doc);
    return start(c, body, id, err);
}

int dfc_expire_start(struct dfc_client *c, const char *bucket, char **id, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:{}}", "action", "start", "name", "expire", "value");
    if (bucket != NULL)
        json_object_set_new(json_object_get(doc, "value"), "bucket", json_string(bucket));
    _cleanup_free_ char *body = json_text(doc);
    return start(c, body, id, err);
}

int dfc_job_abort(struct dfc_client *c, const char *id, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = job_path(&path, id, err);
    return rc == DFC_OK ? call_small(c, &what, &path, NULL, err) : rc;
}

int job_id_of(const char *reply, char **id, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    struct error e = ERROR_INIT;
    const char *said = NULL;
    if (json_parse(reply, strlen(reply), &doc, &e) != 0 ||
        json_need_str(doc, "", "id", &said, &e) != 0) {
        error_wrap(&e, "the reply to a started job");
        return failure_common(err, DFC_FAILED, &e);
    }
    *id = xstrdup(said);
    return DFC_OK;
}

static uint64_t wait_step(uint64_t step_ms, uint64_t spent_ms, uint64_t timeout_ms)
{
    if (timeout_ms != 0 && step_ms > timeout_ms - spent_ms)
        return timeout_ms - spent_ms;
    return step_ms;
}

int dfc_job_wait(struct dfc_client *c, const char *id, uint64_t timeout_ms,
                 void (*watch)(void *context, const struct dfc_job *job), void *context,
                 struct dfc_job **job, struct dfc_error *err)
{
    uint64_t begin = clock_ms();
    for (uint64_t step = WAIT_FIRST_MS;; step = step * 2 < WAIT_MOST_MS ? step * 2 : WAIT_MOST_MS) {
        struct dfc_job *now;
        int rc = dfc_job_show(c, id, &now, err);
        if (rc != DFC_OK)
            return rc;
        if (watch != NULL)
            watch(context, now);
        if (now->ended && job != NULL)
            *job = steal(now);
        bool ended = now == NULL || now->ended;
        dfc_job_free(now);
        if (ended)
            return DFC_OK;
        uint64_t spent = clock_ms() - begin;
        if (timeout_ms != 0 && spent >= timeout_ms)
            return failure_set(err, DFC_TIMED_OUT, E_TIMEOUT,
                               "job '%s' has not ended after %llu ms", id,
                               (unsigned long long)timeout_ms);
        if (!client_pause(c, wait_step(step, spent, timeout_ms)))
            return client_say_cancelled(err);
    }
}
