/* storage mountpath. */
#include "api/ctl/commands.h"

#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static void size_cell(struct ctl *ctl, struct table *t, json_t *obj, const char *field)
{
    char text[24];
    json_t *value = json_object_get(obj, field);
    if (json_is_integer(value))
        table_cell(t, ctl_size(ctl, (uint64_t)json_integer_value(value), text));
    else
        table_cell(t, NULL);
}

static void count_cell(struct table *t, json_t *obj, const char *field)
{
    json_t *value = json_object_get(obj, field);
    if (json_is_integer(value))
        table_cellf(t, "%lld", (long long)json_integer_value(value));
    else
        table_cell(t, NULL);
}

/* --- storage mountpath ------------------------------------------------------------------------ */

/* What a table shows of each mountpath, behind its node and path. */
struct mountpath_view {
    const char *const *headers;
    void (*cells)(struct ctl *ctl, struct table *t, json_t *m);
};

static void state_cells(struct ctl *ctl, struct table *t, json_t *m)
{
    table_cell(t, text_at(m, "state"));
    count_cell(t, m, "weight");
    size_cell(ctl, t, m, "total_bytes");
    size_cell(ctl, t, m, "available_bytes");
    count_cell(t, m, "io_errors");
    count_cell(t, m, "objects");
    size_cell(ctl, t, m, "bytes");
    table_cell(t, text_at(m, "why"));
}

static void rate_cell(struct ctl *ctl, struct table *t, json_t *obj, const char *field)
{
    char text[24];
    json_t *value = json_object_get(obj, field);
    if (json_is_number(value))
        table_cellf(t, "%s/s", ctl_size(ctl, (uint64_t)json_number_value(value), text));
    else
        table_cell(t, NULL);
}

/* "0.12/3.40": half, and all but one of a hundred, were faster. */
static void latency_cell(struct table *t, json_t *op)
{
    json_t *p50 = json_object_get(op, "p50_us"), *p99 = json_object_get(op, "p99_us");
    if (json_number_value(json_object_get(op, "ops_s")) > 0)
        table_cellf(t, "%.2f/%.2f", json_number_value(p50) / 1000, json_number_value(p99) / 1000);
    else
        table_cell(t, NULL);
}

static void load_cells(struct ctl *ctl, struct table *t, json_t *m)
{
    json_t *load = json_object_get(m, "load");
    rate_cell(ctl, t, load, "sent_bytes_s");
    rate_cell(ctl, t, json_object_get(load, "read"), "bytes_s");
    rate_cell(ctl, t, json_object_get(load, "write"), "bytes_s");
    count_cell(t, load, "queue");
    latency_cell(t, json_object_get(load, "open"));
    latency_cell(t, json_object_get(load, "read"));
    latency_cell(t, json_object_get(load, "write"));
    latency_cell(t, json_object_get(load, "sync"));
}

static const struct mountpath_view state_view = {
    .headers = (const char *const[]){"NODE", "PATH", "STATE", "WEIGHT", "TOTAL", "AVAILABLE",
                                     "ERRORS", "OBJECTS", "BYTES", "WHY", NULL},
    .cells = state_cells,
};
static const struct mountpath_view load_view = {
    .headers = (const char *const[]){"NODE", "PATH", "SENT", "READ", "WRITTEN", "QUEUE", "OPEN MS",
                                     "READ MS", "WRITE MS", "SYNC MS", NULL},
    .cells = load_cells,
};

static void add_mountpaths(struct ctl *ctl, struct table *t, const struct mountpath_view *view,
                           const char *node, json_t *doc)
{
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(doc, "mountpaths"), i, m)
    {
        table_cell(t, node);
        table_cell(t, text_at(m, "path"));
        view->cells(ctl, t, m);
    }
}

static int show_one(struct ctl *ctl, struct table *t, const struct mountpath_view *view,
                    json_t *all, const char *node)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_node_show(ctl->client, node, "mountpaths", &text, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    add_mountpaths(ctl, t, view, node, doc);
    if (!ctl->json && !json_is_true(json_object_get(doc, "settled")))
        ctl_remark(ctl, "%s: objects are still to be moved to where they belong", node);
    json_object_set(all, node, doc);
    return EXIT_OK;
}

/* Those of the targets that answer are shown, whatever the others do. */
static int show_all(struct ctl *ctl, struct table *t, const struct mountpath_view *view,
                    json_t *all)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_cluster(ctl, NULL, &doc);
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        if (strcmp(text_at(n, "role"), "target") != 0)
            continue;
        int one = show_one(ctl, t, view, all, text_at(n, "id"));
        code = code == EXIT_OK ? one : code;
    }
    return code;
}

static int mountpath_show(struct ctl *ctl, const struct mountpath_view *view,
                          const char *node_or_null)
{
    _cleanup_(table_freep)
    struct table *t = table_new(view->headers);
    _cleanup_json_ json_t *all = json_object();
    int code = node_or_null != NULL ? show_one(ctl, t, view, all, node_or_null)
                                    : show_all(ctl, t, view, all);
    if (json_object_size(all) == 0)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(all));
    else
        table_print(t, ctl->out, ctl->headers, ctl->colour);
    return code;
}

static int mountpath_change(struct ctl *ctl, const struct args *args, const char *action)
{
    struct dfc_error err;
    const char *node = args->words[1], *path = args->word_count > 2 ? args->words[2] : NULL;
    unsigned flags = (args->given[F_lost] ? DFC_MOUNTPATH_LOST : 0u) |
                     (args->given[F_create] ? DFC_MOUNTPATH_CREATE : 0u);
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_node_mountpath(ctl->client, node, action, path, flags, &text, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json) {
        ctl_print_json(ctl, steal(doc));
        return EXIT_OK;
    }
    _cleanup_(table_freep)
    struct table *t = table_new(state_view.headers);
    add_mountpaths(ctl, t, &state_view, node, doc);
    table_print(t, ctl->out, ctl->headers, ctl->colour);
    if (!json_is_true(json_object_get(doc, "settled")))
        ctl_remark(ctl, "objects are moved to where they belong by a job: dfcctl job ls --kind "
                        "resilver");
    return EXIT_OK;
}

static int confirm_loss(struct ctl *ctl, const struct args *args)
{
    if (!args->given[F_lost])
        return EXIT_OK;
    _cleanup_free_ char *question =
        xprintf("Give up '%s' of %s with every object on it?", args->words[2], args->words[1]);
    return ctl_confirm(ctl, args, question);
}

int storage_mountpath(struct ctl *ctl, const struct args *args)
{
    static const struct {
        const char *name;
        unsigned words;
    } changes[] = {{"attach", 3}, {"detach", 3}, {"enable", 3}, {"disable", 3}, {"resilver", 2}};
    const char *action = args->words[0];
    if (args->given[F_lost] && strcmp(action, "detach") != 0)
        return ctl_usage(ctl, "--lost is for detach");
    if (args->given[F_create] && strcmp(action, "attach") != 0)
        return ctl_usage(ctl, "--create is for attach");
    bool load = strcmp(action, "load") == 0;
    if ((load || strcmp(action, "ls") == 0) && args->word_count <= 2)
        return mountpath_show(ctl, load ? &load_view : &state_view,
                              args->word_count > 1 ? args->words[1] : NULL);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (strcmp(action, changes[i].name) != 0)
            continue;
        if (args->word_count != changes[i].words)
            return ctl_usage(ctl, "storage mountpath %s takes NODE%s", action,
                             changes[i].words == 3 ? " and PATH" : "");
        int code = confirm_loss(ctl, args);
        return code != EXIT_OK ? code : mountpath_change(ctl, args, action);
    }
    return ctl_usage(ctl,
                     "storage mountpath takes ls or load [NODE]; attach, detach, enable or disable "
                     "NODE PATH; or resilver NODE");
}
