/* storage df: how full the targets' mountpaths are. */
#include "api/ctl/commands.h"

#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *const headers[] = {"NODE", "PATH",      "STATE", "SIZE",
                                      "USED", "AVAILABLE", "USE%",  NULL};

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

/* ---- asking ---- */

static json_t *room_json(json_t *from)
{
    json_int_t total = int_at(from, "total_bytes"), available = int_at(from, "available_bytes");
    return json_pack("{s:I, s:I, s:I}", "total_bytes", total, "used_bytes", total - available,
                     "available_bytes", available);
}

static void add_room(json_t *sum, json_t *part)
{
    const char *field;
    json_t *value;
    json_object_foreach(sum, field, value)
        json_integer_set(value, json_integer_value(value) + int_at(part, field));
}

static json_t *mountpath_json(json_t *m)
{
    json_t *row = json_object_get(m, "total_bytes") != NULL ? room_json(m) : json_object();
    json_object_set(row, "path", json_object_get(m, "path"));
    json_object_set(row, "state", json_object_get(m, "state"));
    return row;
}

static int ask(struct ctl *ctl, const char *node, const char *what, json_t **doc,
               struct dfc_error *err)
{
    _cleanup_free_ char *text = NULL;
    if (dfc_node_show(ctl->client, node, what, &text, err) != DFC_OK)
        return EXIT_UNREACHABLE;
    return ctl_parse(ctl, text, doc);
}

/* A target's file systems count once each in its sum, so that the target itself says it. */
static int add_target(struct ctl *ctl, const char *id, json_t *nodes, struct dfc_error *err)
{
    size_t i;
    json_t *m;
    _cleanup_json_ json_t *mountpaths = NULL;
    _cleanup_json_ json_t *stats = NULL;
    int code = ask(ctl, id, "mountpaths", &mountpaths, err);
    if (code == EXIT_OK)
        code = ask(ctl, id, "stats", &stats, err);
    if (code != EXIT_OK)
        return code;
    json_t *row = room_json(stats), *list = json_array();
    json_array_foreach(json_object_get(mountpaths, "mountpaths"), i, m)
        json_array_append_new(list, mountpath_json(m));
    json_object_set_new(row, "id", json_string(id));
    json_object_set_new(row, "mountpaths", list);
    return json_array_append_new(nodes, row);
}

static void ask_target(struct ctl *ctl, json_t *node, json_t *nodes, json_t *missing)
{
    struct dfc_error err = {.message = "its reply is no JSON"};
    const char *id = text_at(node, "id");
    if (strcmp(text_at(node, "state"), "unreachable") == 0)
        ctl_remark(ctl, "target '%s' is unreachable: its disks are not counted", id);
    else if (add_target(ctl, id, nodes, &err) == EXIT_OK)
        return;
    else
        ctl_remark(ctl, "target '%s' does not report its disks: %s", id, err.message);
    json_array_append_new(missing, json_string(id));
}

/* ---- printing ---- */

static void size_cell(const struct ctl *ctl, struct table *t, json_t *row, const char *field)
{
    char text[24];
    json_t *value = json_object_get(row, field);
    table_cell(t, value != NULL ? ctl_size(ctl, (uint64_t)json_integer_value(value), text) : NULL);
}

static void add_row(const struct ctl *ctl, struct table *t, const char *node, const char *path,
                    json_t *row)
{
    double total = (double)int_at(row, "total_bytes");
    table_cell(t, node);
    table_cell(t, path);
    table_cell(t, json_string_value(json_object_get(row, "state")));
    size_cell(ctl, t, row, "total_bytes");
    size_cell(ctl, t, row, "used_bytes");
    size_cell(ctl, t, row, "available_bytes");
    if (total > 0)
        table_cellf(t, "%.0f%%", 100 * (double)int_at(row, "used_bytes") / total);
    else
        table_cell(t, NULL);
}

static void print_nodes(const struct ctl *ctl, json_t *nodes, json_t *sum)
{
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i, j;
    json_t *n, *m;
    json_array_foreach(nodes, i, n)
    {
        json_array_foreach(json_object_get(n, "mountpaths"), j, m)
            add_row(ctl, t, text_at(n, "id"), text_at(m, "path"), m);
        add_row(ctl, t, text_at(n, "id"), "(all)", n);
    }
    add_row(ctl, t, "(all)", "(all)", sum);
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int storage_df(struct ctl *ctl, const struct args *args)
{
    (void)args;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *nodes = json_array();
    _cleanup_json_ json_t *missing = json_array();
    _cleanup_json_ json_t *sum = room_json(NULL);
    size_t i;
    json_t *n;
    int code = ctl_cluster(ctl, NULL, &doc);
    if (code != EXIT_OK)
        return code;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        if (strcmp(text_at(n, "role"), "target") == 0)
            ask_target(ctl, n, nodes, missing);
    }
    json_array_foreach(nodes, i, n) add_room(sum, n);
    if (ctl->json)
        ctl_print_json(
            ctl, json_pack("{s:O, s:O, s:O}", "nodes", nodes, "all", sum, "missing", missing));
    else
        print_nodes(ctl, nodes, sum);
    return json_array_size(missing) > 0 ? EXIT_PARTIAL : EXIT_OK;
}
