/* sort start, sort plan. */
#include "api/ctl/commands.h"

#include "api/ctl/print/job_print.h"
#include "api/ctl/job_wait.h"
#include "api/ctl/spec.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

DEFINE_CLEANUP(struct dfc_job, dfc_job_free);

/* The file's fields and the flags'. */
static int read_request(struct ctl *ctl, const struct args *args, json_t **spec)
{
    struct error e = ERROR_INIT;
    if (spec_read(args->words[0], spec, &e) == 0 && spec_apply_flags(*spec, args, &e) == 0)
        return EXIT_OK;
    return ctl_fail_common(ctl, &e, e.code == E_IO ? EXIT_FAILED : EXIT_USAGE);
}

static int start(struct ctl *ctl, const struct args *args, const json_t *spec, char **id)
{
    struct dfc_error err;
    _cleanup_free_ char *text = json_text(spec);
    if (dfc_sort_start(ctl->client, text, id, &err) == DFC_OK)
        return EXIT_OK;
    if (strcmp(err.code, error_name(E_SPEC)) == 0)
        spec_name_flags(args, err.message, sizeof err.message);
    return ctl_fail(ctl, &err, "sort");
}

int sort_start(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *spec = NULL;
    _cleanup_free_ char *id = NULL;
    int code = read_request(ctl, args, &spec);
    if (code == EXIT_OK)
        code = job_check_wait(ctl, args);
    if (code == EXIT_OK)
        code = start(ctl, args, spec, &id);
    return code != EXIT_OK ? code : job_started(ctl, args, id);
}

/* What it would have made; or why it would not. */
static int print_plan(struct ctl *ctl, const struct dfc_job *job)
{
    bool finished = strcmp(job->state, "finished") == 0;
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, job->document, &doc);
    if (code != EXIT_OK)
        return code;
    code = job_exit_code(job, doc);
    if (!finished && !ctl->json)
        job_print_reason(ctl, job, doc);
    else if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        job_print(ctl, doc);
    return code;
}

int sort_plan(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *spec = NULL;
    _cleanup_free_ char *id = NULL;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    int code = read_request(ctl, args, &spec);
    if (code != EXIT_OK)
        return code;
    json_object_set_new(spec, "dry_run", json_true());
    code = start(ctl, args, spec, &id);
    if (code == EXIT_OK)
        code = job_wait_for(ctl, id, args->number[F_timeout], &job);
    return code != EXIT_OK ? code : print_plan(ctl, job);
}
