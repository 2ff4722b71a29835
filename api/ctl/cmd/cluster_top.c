/* cluster top. */
#include "api/ctl/commands.h"

#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

DEFINE_CLEANUP(struct table, table_free);

/* The last value of a series; false: not known. */
static bool last_of(const json_t *series, const char *name, json_int_t *out)
{
    const json_t *list = json_object_get(series, name);
    const json_t *value = json_array_get(list, json_array_size(list) - 1);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

static void rate_cell(struct table *t, const json_t *series, const char *name, double seconds)
{
    json_int_t value;
    if (!last_of(series, name, &value))
        table_cell(t, NULL);
    else
        table_cellf(t, "%.*f", (double)value < 100 * seconds ? 1 : 0, (double)value / seconds);
}

static void bytes_cell(const struct ctl *ctl, struct table *t, const json_t *series,
                       const char *name, double seconds)
{
    char text[24];
    json_int_t value;
    if (!last_of(series, name, &value))
        table_cell(t, NULL);
    else
        table_cell(t, ctl_size(ctl, (uint64_t)((double)value / seconds), text));
}

static void latency_cell(struct table *t, const json_t *series, const char *name)
{
    json_int_t us;
    if (!last_of(series, name, &us) || us == 0)
        table_cell(t, NULL);
    else
        table_cellf(t, "%.1f ms", (double)us / 1000);
}

static void cpu_cell(struct table *t, const json_t *series, double seconds)
{
    json_int_t us;
    if (!last_of(series, "cpu_us", &us))
        table_cell(t, NULL);
    else
        table_cellf(t, "%.0f %%", (double)us / seconds / 10000);
}

static void add_row(const struct ctl *ctl, struct table *t, const char *name, const json_t *series,
                    double seconds)
{
    table_cell(t, name);
    rate_cell(t, series, "reads", seconds);
    bytes_cell(ctl, t, series, "read_bytes", seconds);
    latency_cell(t, series, "read_p99_us");
    rate_cell(t, series, "writes", seconds);
    bytes_cell(ctl, t, series, "write_bytes", seconds);
    latency_cell(t, series, "write_p99_us");
    rate_cell(t, series, "deletes", seconds);
    rate_cell(t, series, "errors", seconds);
    cpu_cell(t, series, seconds);
    bytes_cell(ctl, t, series, "memory_bytes", 1);
}

static void print(const struct ctl *ctl, json_t *doc)
{
    static const char *const headers[] = {"NODE",     "READS/S", "BYTES/S", "P99",
                                          "WRITES/S", "BYTES/S", "P99",     "DELETES/S",
                                          "ERRORS/S", "CPU",     "MEMORY",  NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    json_t *nodes = json_object_get(doc, "nodes"), *series;
    double seconds = (double)json_integer_value(json_object_get(doc, "interval_ms")) / 1000;
    const char *id;
    json_object_foreach(nodes, id, series) add_row(ctl, t, id, series, seconds);
    add_row(ctl, t, "all", json_object_get(doc, "cluster"), seconds);
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int cluster_top(struct ctl *ctl, const struct args *args)
{
    (void)args;
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_cluster_stats(ctl->client, 1, true, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, NULL);
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, json_incref(doc));
    else
        print(ctl, doc);
    return EXIT_OK;
}
