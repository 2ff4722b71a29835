#include "api/ctl/job_wait.h"

#include "api/ctl/print/job_print.h"
#include "api/ctl/print/progress.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_job, dfc_job_free);

struct watcher {
    struct ctl *ctl;
    struct progress *bar;
};

static void watched(void *context, const struct dfc_job *job)
{
    struct watcher *w = context;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    if (json_parse(job->document, strlen(job->document), &doc, NULL) != 0)
        return;
    job_progress_text(w->ctl, doc, &text);
    progress_show(w->bar, job->percent, buf_str(&text));
}

static const char *error_code_of(json_t *doc)
{
    json_t *first = json_array_get(json_object_get(doc, "errors"), 0);
    const char *code = json_string_value(json_object_get(first, "code"));
    return code != NULL ? code : "failed";
}

/* An output that is there already stays visible until it is deleted: a sort cannot write behind it.
 */
static void tell_how_to_replace(const struct ctl *ctl, const struct dfc_job *job, json_t *doc)
{
    json_t *spec = json_object_get(doc, "spec");
    const char *bucket =
        json_string_value(json_object_get(json_object_get(spec, "output_bck"), "name"));
    const char *names = json_string_value(json_object_get(spec, "output_format"));
    if (strcmp(job->kind, "sort") == 0 && bucket != NULL && names != NULL &&
        strcmp(error_code_of(doc), error_name(E_OBJECT_EXISTS)) == 0)
        ctl_remark(ctl,
                   "dfcctl: a sort does not overwrite; delete the old output first, such as "
                   "with: dfcctl rm %s --prefix '%.*s' --wait",
                   bucket, (int)strcspn(names, "{%@"), names);
}

void job_print_reason(struct ctl *ctl, const struct dfc_job *job, json_t *doc)
{
    if (job->error[0] == '\0')
        return;
    struct dfc_error e = {.result = DFC_LOCAL};
    _cleanup_free_ char *what = xprintf("job '%s' %s", job->id, job->state);
    snprintf(e.code, sizeof e.code, "%s", error_code_of(doc));
    snprintf(e.message, sizeof e.message, "%s", job->error);
    ctl_fail(ctl, &e, what);
    tell_how_to_replace(ctl, job, doc);
}

/* A job whose request matched nothing, and one that has done a part, are told apart by the code. */
int job_exit_code(const struct dfc_job *job, json_t *doc)
{
    if (strcmp(job->state, "finished") == 0)
        return json_is_true(json_object_get(doc, "partial")) ? EXIT_PARTIAL : EXIT_OK;
    return strcmp(error_code_of(doc), error_name(E_NOTHING_MATCHED)) == 0 ? EXIT_NOTHING
                                                                          : EXIT_FAILED;
}

enum { WARNINGS_SHOWN = 10 };

/* What a job that finished did not do as somebody may believe: no input, shards that are missing.
 */
static void print_warnings(struct ctl *ctl, const struct dfc_job *job, json_t *doc)
{
    json_t *warnings = json_object_get(doc, "warnings");
    size_t count = json_array_size(warnings);
    size_t i = 0;
    if (!ctl->json && json_is_true(json_object_get(doc, "partial"))) { /* with --quiet, too */
        struct dfc_error e = {.result = DFC_LOCAL};
        snprintf(e.message, sizeof e.message, "%s",
                 json_string_value(json_array_get(warnings, i++)));
        ctl_fail(ctl, &e, job->id);
    }
    for (; i < count && i < WARNINGS_SHOWN; i++)
        ctl_remark(ctl, "dfcctl: warning: %s", json_string_value(json_array_get(warnings, i)));
    if (count > WARNINGS_SHOWN)
        ctl_remark(ctl, "dfcctl: %zu more warnings: dfcctl job show %s", count - WARNINGS_SHOWN,
                   job->id);
}

static int print_end(struct ctl *ctl, const struct dfc_job *job)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, job->document, &doc);
    if (code != EXIT_OK)
        return code;
    bool finished = strcmp(job->state, "finished") == 0;
    if (!ctl->json && !finished)
        job_print_reason(ctl, job, doc);
    print_warnings(ctl, job, doc);
    code = job_exit_code(job, doc);
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        ctl_say(ctl, "%s %s", job->id, job->state);
    return code;
}

int job_wait_for(struct ctl *ctl, const char *id, uint64_t timeout_ms, struct dfc_job **job)
{
    struct dfc_error err;
    struct watcher w = {.ctl = ctl, .bar = progress_new(ctl, id)};
    int rc = dfc_job_wait(ctl->client, id, timeout_ms, watched, &w, job, &err);
    progress_free(w.bar);
    if (rc == DFC_OK)
        return EXIT_OK;
    if (rc == DFC_CANCELLED)
        ctl_remark(ctl, "dfcctl: the job goes on; wait for it again with: dfcctl job wait %s", id);
    _cleanup_free_ char *what = xprintf("wait for '%s'", id);
    return ctl_fail(ctl, &err, what);
}

int job_wait_end(struct ctl *ctl, const char *id, uint64_t timeout_ms)
{
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    int code = job_wait_for(ctl, id, timeout_ms, &job);
    return code == EXIT_OK ? print_end(ctl, job) : code;
}

int job_check_wait(const struct ctl *ctl, const struct args *args)
{
    if (args->given[F_timeout] && !args->given[F_wait])
        return ctl_usage(ctl, "--timeout goes with --wait");
    return EXIT_OK;
}

int job_started(struct ctl *ctl, const struct args *args, const char *id)
{
    if (args->given[F_wait]) {
        ctl_remark(ctl, "%s", id);
        return job_wait_end(ctl, id, args->number[F_timeout]);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "id", id));
    else
        fprintf(ctl->out, "%s\n", id);
    return EXIT_OK;
}
