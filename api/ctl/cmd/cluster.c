/* cluster status; node ls, show. */
#include "api/ctl/commands.h"

#include "common/cluster_health.h"
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

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

static void size_cell(struct ctl *ctl, struct table *t, json_t *capacity, const char *field)
{
    char text[24];
    json_t *value = json_object_get(capacity, field);
    if (json_is_integer(value))
        table_cell(t, ctl_size(ctl, (uint64_t)json_integer_value(value), text));
    else
        table_cell(t, NULL);
}

/* "0.1.0 (bd686e2eb7c2)"; a node that the primary has not heard of yet has none. */
static void release_cell(struct table *t, json_t *node)
{
    const char *commit = json_string_value(json_object_get(node, "commit"));
    if (json_object_get(node, "release") == NULL)
        table_cell(t, NULL);
    else if (commit == NULL || commit[0] == '\0')
        table_cell(t, text_at(node, "release"));
    else
        table_cellf(t, "%s (%s)", text_at(node, "release"), commit);
}

/* A node that the primary has not heard for a while is active still. */
static void state_cell(struct table *t, json_t *node)
{
    if (json_is_true(json_object_get(node, "late")))
        table_cellf(t, "%s (late %.1f s)", text_at(node, "state"),
                    (double)int_at(node, "silent_ms") / 1000);
    else
        table_cell(t, text_at(node, "state"));
}

static void print_nodes(struct ctl *ctl, json_t *nodes)
{
    static const char *const headers[] = {"NODE",      "ROLE",  "STATE",   "URL", "TOTAL",
                                          "AVAILABLE", "SINCE", "RELEASE", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *n;
    json_array_foreach(nodes, i, n)
    {
        char since[32];
        bool primary = json_is_true(json_object_get(n, "primary"));
        json_t *capacity = json_object_get(n, "capacity");
        table_cellf(t, "%s%s", text_at(n, "id"), primary ? " [P]" : "");
        table_cell(t, text_at(n, "role"));
        state_cell(t, n);
        table_cell(t, text_at(n, "public_url"));
        size_cell(ctl, t, capacity, "total_bytes");
        size_cell(ctl, t, capacity, "available_bytes");
        table_cell(t, ctl_time(int_at(n, "since_ms"), since));
        release_cell(t, n);
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

/* Two builds side by side are for the time of an upgrade. */
static void print_builds(struct ctl *ctl, json_t *nodes)
{
    size_t i;
    json_t *n;
    const char *first = NULL;
    json_array_foreach(nodes, i, n)
    {
        const char *commit = json_string_value(json_object_get(n, "commit"));
        if (commit == NULL || first == NULL) {
            first = commit != NULL ? commit : first;
            continue;
        }
        if (strcmp(commit, first) != 0) {
            fprintf(ctl->out, "Warning: the nodes run different builds (RELEASE)\n");
            return;
        }
    }
}

static void count_nodes(json_t *nodes, const char *role, int *all, int *active)
{
    size_t i;
    json_t *n;
    *all = *active = 0;
    json_array_foreach(nodes, i, n)
    {
        if (strcmp(text_at(n, "role"), role) != 0)
            continue;
        *all += 1;
        *active += strcmp(text_at(n, "state"), "active") == 0;
    }
}

static json_int_t count_at(json_t *doc, const char *field)
{
    json_t *value = json_object_get(doc, field);
    return json_is_array(value) ? (json_int_t)json_array_size(value) : json_integer_value(value);
}

static void print_summary(struct ctl *ctl, json_t *doc, const char *health)
{
    int proxies, proxies_active, targets, targets_active;
    json_t *nodes = json_object_get(doc, "nodes");
    count_nodes(nodes, "proxy", &proxies, &proxies_active);
    count_nodes(nodes, "target", &targets, &targets_active);
    fprintf(ctl->out,
            "\nHealth: %s; %d of %d proxies and %d of %d targets active; %lld buckets, %lld jobs "
            "running\n",
            health, proxies_active, proxies, targets_active, targets,
            (long long)count_at(doc, "buckets"), (long long)count_at(doc, "jobs_running"));
}

static void print_full(struct ctl *ctl, json_t *nodes)
{
    size_t i;
    json_t *n;
    json_array_foreach(nodes, i, n)
    {
        json_t *capacity = json_object_get(n, "capacity");
        json_int_t high = int_at(capacity, "mountpaths_high");
        json_int_t out = int_at(capacity, "mountpaths_out");
        if (high > 0)
            fprintf(ctl->out, "Warning: %s has %lld mountpath%s above space_high", text_at(n, "id"),
                    (long long)high, high > 1 ? "s" : "");
        if (out > 0)
            fprintf(ctl->out, ", %lld of them above space_out: PUT is refused there",
                    (long long)out);
        if (high > 0)
            fprintf(ctl->out, "\n");
    }
}

int cluster_status(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_cluster(ctl, args->text[F_what], &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json || args->given[F_what]) {
        ctl_print_json(ctl, steal(doc));
        return EXIT_OK;
    }
    fprintf(ctl->out, "Cluster %s, state %lld.%lld, primary %s\n\n", text_at(doc, "cluster"),
            (long long)int_at(doc, "term"), (long long)int_at(doc, "version"),
            text_at(doc, "primary"));
    print_nodes(ctl, json_object_get(doc, "nodes"));
    _cleanup_json_ json_t *verdict = cluster_health_said(doc);
    print_summary(ctl, doc, text_at(verdict, "health"));
    print_full(ctl, json_object_get(doc, "nodes"));
    print_builds(ctl, json_object_get(doc, "nodes"));
    return EXIT_OK;
}

int node_ls(struct ctl *ctl, const struct args *args)
{
    (void)args;
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_cluster(ctl, NULL, &doc);
    if (code != EXIT_OK)
        return code;
    json_t *nodes = json_object_get(doc, "nodes");
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:O}", "nodes", nodes));
    else
        print_nodes(ctl, nodes);
    return EXIT_OK;
}

/* ---- node show ---- */

static void print_fields(struct ctl *ctl, json_t *obj)
{
    static const char *const headers[] = {"FIELD", "VALUE", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    const char *key;
    json_t *value;
    json_object_foreach(obj, key, value)
    {
        _cleanup_free_ char *text = NULL;
        if (!json_is_string(value))
            text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        table_cell(t, key);
        table_cell(t, text != NULL ? text : json_string_value(value));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int node_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *node = args->words[0];
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_node_show(ctl->client, node, args->text[F_what], &text, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json || args->given[F_what] || !json_is_object(doc))
        ctl_print_json(ctl, steal(doc));
    else
        print_fields(ctl, doc);
    return EXIT_OK;
}

/* ---- node rm ---- */

/* Looked for before the operator is asked: a node that does not exist needs no confirmation. */
static int check_is_there(struct ctl *ctl, const char *node)
{
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    size_t i;
    json_t *n;
    int code = ctl_cluster(ctl, NULL, &doc);
    if (code != EXIT_OK)
        return code;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        if (strcmp(text_at(n, "id"), node) == 0)
            return EXIT_OK;
    }
    error_set(&err, E_NODE_NOT_FOUND, "no node is called '%.64s'", node);
    return ctl_fail_common(ctl, &err, EXIT_NOT_FOUND);
}

int node_rm(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *node = args->words[0];
    int code = check_is_there(ctl, node);
    if (code != EXIT_OK)
        return code;
    _cleanup_free_ char *question =
        xprintf("Take node '%s' out of the cluster, and lose the objects that only it has?", node);
    code = ctl_confirm(ctl, args, question);
    if (code != EXIT_OK)
        return code;
    if (dfc_node_remove(ctl->client, node, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("remove node '%s'", node);
        return ctl_fail(ctl, &err, what);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "removed", node));
    else
        ctl_say(ctl, "removed %s", node);
    return EXIT_OK;
}
