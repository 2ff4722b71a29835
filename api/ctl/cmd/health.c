/* cluster health, cluster watch. */
#include "api/ctl/commands.h"

#include "common/cluster_health.h"
#include "api/ctl/print/job_print.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

static int judge(struct ctl *ctl, json_t **verdict)
{
    _cleanup_json_ json_t *overview = NULL;
    int code = ctl_cluster(ctl, NULL, &overview);
    if (code != EXIT_OK)
        return code;
    *verdict = cluster_health_said(overview);
    return EXIT_OK;
}

static void print(struct ctl *ctl, json_t *verdict)
{
    size_t i;
    json_t *reason;
    fprintf(ctl->out, "Health: %s\n", json_string_value(json_object_get(verdict, "health")));
    json_array_foreach(json_object_get(verdict, "reasons"), i, reason)
        fprintf(ctl->out, "  %-6s  %s\n", json_string_value(json_object_get(reason, "health")),
                json_string_value(json_object_get(reason, "text")));
}

static bool is_red(json_t *verdict)
{
    return strcmp(json_string_value(json_object_get(verdict, "health")), "red") == 0;
}

int cluster_health(struct ctl *ctl, const struct args *args)
{
    (void)args;
    json_t *verdict = NULL;
    int code = judge(ctl, &verdict);
    if (code != EXIT_OK)
        return code;
    /* A watch goes on whatever the colour is. */
    code = is_red(verdict) && !args->given[F_watch] ? EXIT_FAILED : EXIT_OK;
    if (!ctl->json)
        print(ctl, verdict);
    else
        ctl_print_json(ctl, json_incref(verdict));
    json_decref(verdict);
    return code;
}

static bool has_ended(json_t *job)
{
    static const char *const last[] = {"finished", "failed", "aborted"};
    const char *state = json_string_value(json_object_get(job, "state"));
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        if (state == NULL || strcmp(state, last[i]) == 0)
            return true;
    }
    return false;
}

static void drop_ended(json_t *jobs)
{
    for (size_t i = json_array_size(jobs); i-- > 0;) {
        if (has_ended(json_array_get(jobs, i)))
            json_array_remove(jobs, i);
    }
}

static int print_jobs(struct ctl *ctl)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_job_list(ctl->client, NULL, NULL, &text, &err) != DFC_OK)
        return EXIT_OK; /* without the primary there are none to be had */
    int code = ctl_parse(ctl, text, &doc);
    json_t *jobs = json_object_get(doc, "jobs");
    drop_ended(jobs);
    if (code == EXIT_OK && json_array_size(jobs) > 0) {
        fputc('\n', ctl->out);
        job_print_list(ctl, jobs);
    }
    return code;
}

int cluster_watch(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *verdict = NULL;
    int code = judge(ctl, &verdict);
    if (code != EXIT_OK || (code = cluster_status(ctl, args)) != EXIT_OK || ctl->json)
        return code;
    fputc('\n', ctl->out);
    print(ctl, verdict);
    return print_jobs(ctl);
}
