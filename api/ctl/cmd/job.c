/* job start, ls, show, wait, abort; sort status, ls, abort, rm. */
#include "api/ctl/commands.h"

#include "api/ctl/job_kind.h"
#include "api/ctl/print/job_print.h"
#include "api/ctl/job_wait.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_job, dfc_job_free);

static int fail_job(const struct ctl *ctl, const struct dfc_error *err, const char *id)
{
    _cleanup_free_ char *what = xprintf("job '%s'", id);
    return ctl_fail(ctl, err, what);
}

static int print_list(struct ctl *ctl, const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        job_print_list(ctl, json_object_get(doc, "jobs"));
    return EXIT_OK;
}

static int print_one(struct ctl *ctl, const struct dfc_job *job)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, job->document, &doc);
    if (code != EXIT_OK)
        return code;
    ctl->watch_end = job->ended;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        job_print(ctl, doc);
    return EXIT_OK;
}

/* Said once, so that scripts are changed before the old name goes. */
static const char *kind_of(struct ctl *ctl, const char *given)
{
    const char *renamed = job_kind_renamed(given);
    if (renamed != NULL)
        ctl_remark(ctl, "dfcctl: the kind '%s' is now called '%s'; the old name still works", given,
                   renamed);
    return job_kind_asked(given);
}

int job_ls(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    const char *kind = kind_of(ctl, args->text[F_kind]);
    if (dfc_job_list(ctl->client, kind, args->text[F_state], &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "list jobs");
    return print_list(ctl, text);
}

int sort_ls(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_sort_list(ctl->client, args->text[F_regex], &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "list sorts");
    return print_list(ctl, text);
}

int job_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    if (dfc_job_show(ctl->client, args->words[0], &job, &err) != DFC_OK)
        return fail_job(ctl, &err, args->words[0]);
    return print_one(ctl, job);
}

int sort_status(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    if (args->word_count == 0)
        return sort_ls(ctl, args);
    if (args->given[F_regex])
        return ctl_usage(ctl, "--regex is for a list, not for one sort");
    if (dfc_sort_show(ctl->client, args->words[0], &job, &err) != DFC_OK)
        return fail_job(ctl, &err, args->words[0]);
    return print_one(ctl, job);
}

int job_wait(struct ctl *ctl, const struct args *args)
{
    return job_wait_end(ctl, args->words[0], args->number[F_timeout]);
}

static int say(struct ctl *ctl, const char *id, const char *what)
{
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", what, id));
    else
        ctl_say(ctl, "%s %s", what, id);
    return EXIT_OK;
}

static int start(const struct ctl *ctl, const char *kind, const char *bucket, char **id,
                 struct dfc_error *err)
{
    return bucket != NULL ? dfc_expire_start(ctl->client, bucket, id, err)
                          : dfc_job_start(ctl->client, kind, id, err);
}

int job_start(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *id = NULL;
    const char *bucket = args->word_count > 1 ? args->words[1] : NULL;
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (bucket != NULL && strcmp(args->words[0], "expire") != 0)
        return ctl_usage(ctl, "only a job 'expire' is for one bucket");
    if (start(ctl, kind_of(ctl, args->words[0]), bucket, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "start");
    return job_started(ctl, args, id);
}

int job_abort(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *id = args->words[0];
    if (dfc_job_abort(ctl->client, id, &err) != DFC_OK)
        return fail_job(ctl, &err, id);
    return say(ctl, id, "aborting");
}

int sort_abort(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *id = args->words[0];
    if (dfc_sort_abort(ctl->client, id, &err) != DFC_OK)
        return fail_job(ctl, &err, id);
    return say(ctl, id, "aborting");
}

int sort_forget(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *id = args->words[0];
    if (dfc_sort_forget(ctl->client, id, &err) != DFC_OK)
        return fail_job(ctl, &err, id);
    return say(ctl, id, "forgot");
}
