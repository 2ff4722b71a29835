/* storage validate, storage scrub: jobs that compare indexes with files, and files with what they
 * were stored as; what differs is said. */
#include "api/ctl/commands.h"

#include "api/ctl/job_wait.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { RATE_DEFAULT = 64 << 20 };

DEFINE_CLEANUP(struct table, table_free);
DEFINE_CLEANUP(struct dfc_job, dfc_job_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

/* Buckets by their ids; where they cannot be asked for, the ids are shown. */
static void add_buckets(struct ctl *ctl, json_t *names)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    size_t i;
    json_t *b;
    if (dfc_cluster_show(ctl->client, "bmd", &text, &err) != DFC_OK ||
        json_parse(text, strlen(text), &doc, NULL) != 0)
        return;
    json_array_foreach(json_object_get(doc, "buckets"), i, b)
    {
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)int_at(b, "id"));
        json_object_set(names, id, json_object_get(b, "name"));
    }
}

static void name_cell(struct table *t, json_t *names, json_t *difference)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)int_at(difference, "bucket_id"));
    const char *bucket = json_string_value(json_object_get(names, id));
    if (int_at(difference, "bucket_id") == 0)
        table_cell(t, NULL);
    else
        table_cellf(t, "%s/%s", bucket != NULL ? bucket : id, text_at(difference, "name"));
}

static void add_rows(struct table *t, json_t *names, const char *target, json_t *status)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(status, "differences"), i, d)
    {
        table_cell(t, target);
        table_cell(t, text_at(d, "mountpath"));
        name_cell(t, names, d);
        table_cell(t, text_at(d, "what"));
        table_cell(t, text_at(d, "detail"));
    }
}

static json_int_t sum_of(json_t *found)
{
    json_int_t sum = 0;
    const char *what;
    json_t *count;
    json_object_foreach(found, what, count) sum += json_integer_value(count);
    return sum;
}

/* The differences, and into the table those that have a name. */
static json_int_t take(struct ctl *ctl, struct table *t, json_t *doc)
{
    json_int_t sum = 0;
    const char *target;
    json_t *report;
    _cleanup_json_ json_t *names = json_object();
    add_buckets(ctl, names);
    json_object_foreach(json_object_get(doc, "targets"), target, report)
    {
        json_t *status = json_object_get(report, "status");
        sum += sum_of(json_object_get(status, "found"));
        add_rows(t, names, target, status);
    }
    return sum;
}

static void print_sums(struct ctl *ctl, json_t *doc, json_int_t differences)
{
    char bytes[24];
    json_t *progress = json_object_get(doc, "progress");
    json_t *done = json_object_get(json_object_get(progress, "bytes"), "done");
    fprintf(ctl->out,
            "%lld objects looked at, %s compared with their checksums: %lld differences\n",
            (long long)int_at(json_object_get(progress, "objects"), "done"),
            ctl_size(ctl, (uint64_t)json_integer_value(done), bytes), (long long)differences);
}

static int print_result(struct ctl *ctl, const struct dfc_job *job)
{
    static const char *const headers[] = {"TARGET", "MOUNTPATH", "OBJECT", "WHAT", "DETAIL", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, job->document, &doc);
    if (code != EXIT_OK)
        return code;
    json_int_t differences = take(ctl, t, doc);
    bool finished = strcmp(job->state, "finished") == 0;
    if (ctl->json) {
        ctl_print_json(ctl, steal(doc));
    } else {
        if (!finished)
            job_print_reason(ctl, job, doc);
        if (table_rows(t) > 0)
            table_print(t, ctl->out, ctl->headers, ctl->colour);
        if ((size_t)differences > table_rows(t))
            ctl_remark(ctl, "the targets' logs have the differences that are not shown");
        print_sums(ctl, doc, differences);
    }
    return finished && differences == 0 ? EXIT_OK : EXIT_FAILED;
}

int storage_validate(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *id = NULL;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    uint64_t rate = args->given[F_rate] ? args->number[F_rate] : RATE_DEFAULT;
    if (args->given[F_rate] && !args->given[F_checksums])
        return ctl_usage(ctl, "--rate goes with --checksums");
    if (dfc_validate_start(ctl->client, args->given[F_checksums], rate, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "validate");
    ctl_remark(ctl, "%s", id);
    int code = job_wait_for(ctl, id, args->number[F_timeout], &job);
    return code == EXIT_OK ? print_result(ctl, job) : code;
}

int storage_scrub(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *id = NULL;
    _cleanup_(dfc_job_freep)
    struct dfc_job *job = NULL;
    const uint64_t *rate = args->given[F_rate] ? &args->number[F_rate] : NULL;
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (dfc_scrub_start(ctl->client, rate, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "scrub");
    if (!args->given[F_wait]) {
        fprintf(ctl->out, "%s\n", id);
        return EXIT_OK;
    }
    ctl_remark(ctl, "%s", id);
    code = job_wait_for(ctl, id, args->number[F_timeout], &job);
    return code == EXIT_OK ? print_result(ctl, job) : code;
}
