/* config show, config set: the cluster's settings, and the parameters of one node. */
#include "api/ctl/commands.h"

#include "api/ctl/param_text.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static int fetch(struct ctl *ctl, const char *node, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    int rc = node != NULL ? dfc_node_show(ctl->client, node, "params", &text, &err)
                          : dfc_cluster_show(ctl->client, "settings", &text, &err);
    if (rc != DFC_OK)
        return ctl_fail(ctl, &err, node != NULL ? node : "settings");
    return ctl_parse(ctl, text, doc);
}

/* Keeps the row of that name; false where there is none. */
static bool keep_one(json_t *rows, const char *name)
{
    for (size_t i = json_array_size(rows); i-- > 0;) {
        if (strcmp(text_at(json_array_get(rows, i), "name"), name) != 0)
            json_array_remove(rows, i);
    }
    return json_array_size(rows) > 0;
}

static const char *or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static void print_rows(struct ctl *ctl, json_t *rows)
{
    static const char *const headers[] = {"NAME", "VALUE", "SOURCE",  "DEFAULT",
                                          "MIN",  "MAX",   "CHANGES", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        _cleanup_free_ char *value = param_text(ctl->raw_units ? "count" : text_at(row, "type"),
                                                json_object_get(row, "value"));
        table_cell(t, text_at(row, "name"));
        table_cell(t, or_dash(value));
        table_cell(t, or_dash(text_at(row, "source")));
        table_cell(t, or_dash(text_at(row, "default")));
        table_cell(t, or_dash(text_at(row, "min")));
        table_cell(t, or_dash(text_at(row, "max")));
        table_cell(t, json_is_true(json_object_get(row, "live")) ? "now" : "restart");
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
    if (json_array_size(rows) == 1)
        fprintf(ctl->out, "\n%s\n", text_at(json_array_get(rows, 0), "help"));
}

int config_show(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = fetch(ctl, args->text[F_node], &doc);
    if (code != EXIT_OK)
        return code;
    json_t *rows = json_object_get(doc, "params");
    if (args->word_count > 0 && !keep_one(rows, args->words[0])) {
        struct error err;
        if (args->given[F_node])
            error_set(&err, E_NOT_FOUND, "node '%s' has no parameter '%s'", args->text[F_node],
                      args->words[0]);
        else
            error_set(&err, E_NOT_FOUND,
                      "no setting of the cluster is called '%s'; for a parameter of one node add "
                      "--node NAME",
                      args->words[0]);
        return ctl_fail_common(ctl, &err, EXIT_NOT_FOUND);
    }
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        print_rows(ctl, rows);
    return EXIT_OK;
}

int config_set(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *node = args->text[F_node];
    const char *name = args->words[0];
    const char *value = args->word_count > 1 ? args->words[1] : NULL;
    _cleanup_free_ char *text = NULL;
    const char *equals = value == NULL ? strchr(name, '=') : NULL;
    if (equals != NULL)
        return ctl_usage(ctl, "'%s' is no setting: dfcctl config set %s%s%s%.*s %s", name,
                         node != NULL ? "--node " : "", node != NULL ? node : "",
                         node != NULL ? " " : "", (int)(equals - name), name, equals + 1);
    if (node != NULL && value == NULL)
        return ctl_usage(ctl, "a node's parameter needs a value: config set --node %s %s VALUE",
                         node, name);
    int rc = node != NULL ? dfc_node_set(ctl->client, node, name, value, &text, &err)
                          : dfc_cluster_set(ctl->client, name, value, &text, &err);
    if (rc != DFC_OK) {
        _cleanup_free_ char *what = xprintf("set '%s'", name);
        int code = ctl_fail(ctl, &err, what);
        if (strcmp(err.code, error_name(E_NOT_FOUND)) == 0)
            ctl_remark(ctl, node != NULL
                                ? "dfcctl: without --node it is a setting of the whole cluster"
                                : "dfcctl: a parameter of one node is set with --node NAME");
        return code;
    }
    if (ctl->json)
        ctl_print_json(ctl,
                       json_pack("{s:s, s:s?, s:s?}", "name", name, "value", value, "node", node));
    else
        fprintf(ctl->out, "%s %s\n", name, value != NULL ? value : "(default)");
    if (node != NULL)
        ctl_remark(ctl,
                   "dfcctl: in force until %s restarts; set it in the configuration file or "
                   "command line of the node to keep it",
                   node);
    return EXIT_OK;
}
