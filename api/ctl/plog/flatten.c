/* plog flatten: here, or by a job of the cluster. */
#include "api/ctl/commands.h"

#include "api/ctl/job_wait.h"
#include "api/ctl/plog/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "plog/client/dfc_plog.h"

static int flatten_here(struct ctl *ctl, const char *name)
{
    _cleanup_(object_name_done)
    struct object_name n;
    struct dfc_error err;
    const int code = ctl_plog_name(ctl, name, &n);
    if (code != EXIT_OK)
        return code;
    if (dfc_plog_flatten(ctl->client, n.bucket, n.key, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "flatten", name);
    ctl_say(ctl, "'%s' is flat", name);
    return EXIT_OK;
}

/* With --recursive the key is a prefix, of which "" has all of the bucket. */
static int parse(struct ctl *ctl, const struct args *args, struct object_name *n)
{
    struct error e = ERROR_INIT;
    if (!args->given[F_recursive])
        return ctl_plog_name(ctl, args->words[0], n);
    *n = (struct object_name){0};
    return object_name_parse(args->words[0], n, &e) == 0 ? EXIT_OK
                                                         : ctl_fail_common(ctl, &e, EXIT_USAGE);
}

static int flatten_by_job(struct ctl *ctl, const struct args *args)
{
    _cleanup_(object_name_done)
    struct object_name n;
    _cleanup_free_ char *id = NULL;
    struct dfc_error err;
    int code = job_check_wait(ctl, args);
    if (code == EXIT_OK)
        code = parse(ctl, args, &n);
    if (code != EXIT_OK)
        return code;
    _cleanup_json_ json_t *value = args->given[F_recursive] ? json_pack("{s:s}", "prefix", n.key)
                                                            : json_pack("{s:[s]}", "list", n.key);
    if (value == NULL)
        return ctl_usage(ctl, "'%s' is not UTF-8: a job cannot name it", args->words[0]);
    _cleanup_free_ char *text = json_text(value);
    if (dfc_bucket_flatten(ctl->client, n.bucket, text, &id, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "flatten", args->words[0]);
    return job_started(ctl, args, id);
}

int plog_flatten(struct ctl *ctl, const struct args *args)
{
    static const enum flag_id of_jobs[] = {F_recursive, F_wait, F_timeout};
    if (args->given[F_job])
        return flatten_by_job(ctl, args);
    for (size_t i = 0; i < sizeof of_jobs / sizeof of_jobs[0]; i++) {
        if (args->given[of_jobs[i]])
            return ctl_usage(ctl, "--%s goes with --job", flag_table[of_jobs[i]].name);
    }
    return flatten_here(ctl, args->words[0]);
}
