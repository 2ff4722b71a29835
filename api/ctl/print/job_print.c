#include "api/ctl/print/job_print.h"

#include "api/ctl/job_kind.h"
#include "api/ctl/print/table.h"
#include "api/ctl/print/text.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"

DEFINE_CLEANUP(struct table, table_free);

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static json_int_t percent_of(json_t *job)
{
    json_t *percent = json_object_get(json_object_get(job, "progress"), "percent");
    return (json_int_t)json_number_value(percent);
}

/* "12 of 40 objects, 3 missing" */
static void put_objects(json_t *objects, struct buf *out)
{
    static const char *const others[] = {"skipped", "missing", "failed"};
    buf_printf(out, ", %lld of %lld objects", (long long)int_at(objects, "done"),
               (long long)int_at(objects, "total"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (int_at(objects, others[i]) > 0)
            buf_printf(out, ", %lld %s", (long long)int_at(objects, others[i]), others[i]);
    }
}

void job_progress_text(struct ctl *ctl, json_t *job, struct buf *out)
{
    char done[24], total[24], rate[24], eta[16];
    json_t *p = json_object_get(job, "progress");
    json_t *shards = json_object_get(p, "shards");
    json_t *bytes = json_object_get(p, "bytes");
    buf_puts(out, text_at(job, "state"));
    if (int_at(shards, "total") > 0)
        buf_printf(out, ", %lld/%lld shards", (long long)int_at(shards, "done"),
                   (long long)int_at(shards, "total"));
    json_t *objects = json_object_get(p, "objects");
    if (objects != NULL)
        put_objects(objects, out);
    if (int_at(p, "records") > 0)
        buf_printf(out, ", %lld records", (long long)int_at(p, "records"));
    if (int_at(bytes, "total") > 0)
        buf_printf(out, ", %s/%s", ctl_size(ctl, (uint64_t)int_at(bytes, "done"), done),
                   ctl_size(ctl, (uint64_t)int_at(bytes, "total"), total));
    if (int_at(job, "ended_ms") > 0)
        return;
    if (int_at(p, "rate_bytes_s") > 0)
        buf_printf(out, ", %s/s", ctl_size(ctl, (uint64_t)int_at(p, "rate_bytes_s"), rate));
    if (int_at(p, "eta_s") > 0)
        buf_printf(out, ", ETA %s", format_duration((uint64_t)int_at(p, "eta_s") * 1000, eta));
}

static uint64_t duration_of(json_t *job)
{
    int64_t begin = int_at(job, "started_ms");
    int64_t end = int_at(job, "ended_ms");
    if (begin == 0)
        return 0;
    if (end == 0)
        end = clock_wall_ms();
    return end > begin ? (uint64_t)(end - begin) : 0;
}

/* Of all targets together: objects, or the shards of a sort. */
static void put_count(struct table *t, json_t *progress)
{
    json_t *objects = json_object_get(progress, "objects");
    json_t *shards = json_object_get(progress, "shards");
    json_t *counted = objects != NULL ? objects : shards;
    const char *what = objects != NULL ? "objects" : "shards";
    if (int_at(counted, "total") > 0)
        table_cellf(t, "%lld of %lld %s", (long long)int_at(counted, "done"),
                    (long long)int_at(counted, "total"), what);
    else if (int_at(counted, "done") > 0)
        table_cellf(t, "%lld %s", (long long)int_at(counted, "done"), what);
    else
        table_cell(t, "-");
}

void job_print_list(struct ctl *ctl, json_t *jobs)
{
    static const char *const headers[] = {"JOB",     "KIND",     "STATE",       "PERCENT", "DONE",
                                          "CREATED", "DURATION", "DESCRIPTION", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *job;
    json_array_foreach(jobs, i, job)
    {
        char created[32], duration[16];
        table_cell(t, text_at(job, "id"));
        table_cell(t, job_kind_shown(text_at(job, "kind")));
        table_cell(t, text_at(job, "state"));
        table_cellf(t, "%lld%%", (long long)percent_of(job));
        put_count(t, json_object_get(job, "progress"));
        table_cell(t, ctl_time(int_at(job, "created_ms"), created));
        table_cell(t, format_duration(duration_of(job), duration));
        table_cell(t, text_at(job, "description"));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

static void row(struct table *t, const char *field, const char *value)
{
    table_cell(t, field);
    table_cell(t, value);
}

static void print_messages(struct table *t, const char *title, json_t *messages)
{
    size_t i;
    json_t *one;
    json_array_foreach(messages, i, one)
    {
        const char *code = text_at(one, "code");
        _cleanup_free_ char *message =
            text_with_flags(json_is_string(one) ? json_string_value(one) : text_at(one, "message"));
        table_cell(t, title);
        if (json_is_string(one))
            table_cell(t, message);
        else
            table_cellf(t, "%s%s%s%s", message, code[0] != '\0' ? " (" : "", code,
                        code[0] != '\0' ? ")" : "");
    }
}

/* What a sort comes to, and what its placement spares the network. */
static void print_plan(struct ctl *ctl, struct table *t, json_t *plan)
{
    char bytes[24], moved[24], owner[24], locality[24];
    if (plan == NULL)
        return;
    table_cell(t, "output");
    table_cellf(t, "%lld shards, %lld records, %s", (long long)int_at(plan, "shards"),
                (long long)int_at(plan, "records"),
                ctl_size(ctl, (uint64_t)int_at(plan, "bytes"), bytes));
    table_cell(t, "network");
    table_cellf(
        t,
        "%s between targets (if owners built all shards: %s; if each were built where most of "
        "its bytes are: %s)",
        ctl_size(ctl, (uint64_t)int_at(plan, "moved_bytes"), moved),
        ctl_size(ctl, (uint64_t)int_at(plan, "moved_bytes_hrw"), owner),
        ctl_size(ctl, (uint64_t)int_at(plan, "moved_bytes_locality"), locality));
}

/* ": read 3/4 shards (1200 records), built 2/5 (10 MiB here, 20 MiB from others)" of a sort. */
static void put_phases(struct ctl *ctl, json_t *status, struct buf *out)
{
    char local[24], remote[24], spilled[24];
    json_t *extract = json_object_get(status, "extract");
    json_t *create = json_object_get(status, "create");
    json_t *read = json_object_get(extract, "shards");
    json_t *built = json_object_get(create, "shards");
    json_t *bytes = json_object_get(create, "bytes");
    if (extract == NULL || create == NULL)
        return;
    buf_printf(out, ": read %lld/%lld shards (%lld records)", (long long)int_at(read, "done"),
               (long long)int_at(read, "total"), (long long)int_at(extract, "records"));
    if (int_at(built, "total") > 0)
        buf_printf(out, ", built %lld/%lld (%s local, %s from other targets)",
                   (long long)int_at(built, "done"), (long long)int_at(built, "total"),
                   ctl_size(ctl, (uint64_t)int_at(bytes, "local"), local),
                   ctl_size(ctl, (uint64_t)int_at(bytes, "remote"), remote));
    if (int_at(extract, "spilled_bytes") > 0)
        buf_printf(out, ", %s in work files",
                   ctl_size(ctl, (uint64_t)int_at(extract, "spilled_bytes"), spilled));
}

/* A target of a job that broke off says no more than how far it had come. */
static void print_targets(struct ctl *ctl, struct table *t, json_t *job)
{
    json_t *targets = json_object_get(job, "targets");
    const char *state = text_at(job, "state");
    bool broken = strcmp(state, "failed") == 0 || strcmp(state, "aborted") == 0;
    const char *id;
    json_t *report;
    json_object_foreach(targets, id, report)
    {
        json_t *status = json_object_get(report, "status");
        const char *phase = text_at(status != NULL ? status : report, "phase");
        _cleanup_(buf_done)
        struct buf detail = BUF_INIT;
        put_phases(ctl, status, &detail);
        table_cellf(t, "target %s", id);
        table_cellf(t, "%s%s%s", phase[0] != '\0' ? phase : text_at(report, "state"),
                    broken ? ", when it ended" : "", buf_str(&detail));
    }
}

/* What targets that were lost, and came back, have cost. */
static void print_redone(struct table *t, json_t *redone)
{
    table_cell(t, "redone");
    table_cellf(t, "%lld inputs, %lld shards, %lld bytes; the job began again %lld times",
                (long long)int_at(redone, "inputs"), (long long)int_at(redone, "shards"),
                (long long)int_at(redone, "bytes"), (long long)int_at(redone, "attempts"));
}

void job_print(struct ctl *ctl, json_t *job)
{
    static const char *const headers[] = {"FIELD", "VALUE", NULL};
    char created[32], duration[16];
    _cleanup_(buf_done)
    struct buf progress = BUF_INIT;
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    json_t *redone = json_object_get(job, "redone");
    json_t *spec = json_object_get(job, "spec");
    job_progress_text(ctl, job, &progress);
    row(t, "job", text_at(job, "id"));
    row(t, "kind", job_kind_shown(text_at(job, "kind")));
    row(t, "description", text_at(job, "description"));
    row(t, "state", text_at(job, "state"));
    if (json_is_true(json_object_get(spec, "dry_run")))
        row(t, "dry run", "nothing is stored");
    table_cell(t, "progress");
    table_cellf(t, "%lld%% %s", (long long)percent_of(job), buf_str(&progress));
    row(t, "created", ctl_time(int_at(job, "created_ms"), created));
    row(t, "duration", format_duration(duration_of(job), duration));
    if (int_at(redone, "attempts") > 0)
        print_redone(t, redone);
    print_plan(ctl, t, json_object_get(job, "plan"));
    print_messages(t, "waits for target", json_object_get(job, "waits_for"));
    print_messages(t, "no target has", json_object_get(job, "unreachable_shards"));
    print_messages(t, "goes on without target", json_object_get(job, "without"));
    print_messages(t, "warning", json_object_get(job, "warnings"));
    print_messages(t, "error", json_object_get(job, "errors"));
    print_targets(ctl, t, job);
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}
