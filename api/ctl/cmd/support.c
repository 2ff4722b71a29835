/* support bundle.
 *
 *   {"made_ms", "dfcctl": {"version", "commit"}, "health": {…},
 *    "cluster": {"overview", "smap", "bmd", "config", "settings", "jobs", "events", "stats"},
 *    "nodes": {"t1": {"info", "params", "mountpaths", "stats"}}}
 *
 * What cannot be had is {"error": {"code", "message"}} in its place, and is counted.  Buckets come
 * without their owner, jobs without what they were asked for. */
#include "api/ctl/commands.h"

#include "api/ctl/files/landing.h"
#include "api/ctl/interrupt.h"
#include "common/build.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/cluster_health.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct bundle {
    struct ctl *ctl;
    json_t *doc;
    size_t parts, missing;
};

/* Takes the text (NULL: there is an error). */
static void put(struct bundle *b, json_t *to, const char *name, char *text,
                const struct dfc_error *err)
{
    json_t *part = NULL;
    b->parts++;
    if (text != NULL && json_parse(text, strlen(text), &part, NULL) == 0) {
        json_object_set_new(to, name, part);
    } else {
        b->missing++;
        json_t *message = json_string_escaped(text != NULL ? "no JSON" : err->message);
        json_object_set_new(to, name,
                            json_pack("{s:{s:s, s:o}}", "error", "code",
                                      text != NULL ? "invalid_json" : err->code, "message",
                                      message));
    }
    free(text);
}

static json_t *add_object(json_t *to, const char *name)
{
    json_t *made = json_object();
    json_object_set_new(to, name, made);
    return made;
}

enum { EVENTS_MAX = 1000, SAMPLES_MAX = 180 };

static void put_history(struct bundle *b, json_t *cluster)
{
    struct dfc_error err = {0};
    char *text = NULL;
    dfc_cluster_events(b->ctl->client, NULL, 0, EVENTS_MAX, &text, &err);
    put(b, cluster, "events", text, &err);
    text = NULL;
    dfc_cluster_stats(b->ctl->client, SAMPLES_MAX, true, &text, &err);
    put(b, cluster, "stats", text, &err);
}

static void cut(json_t *rows, const char *field)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) json_object_del(row, field);
}

/* An owner is a user; specs and plans have templates, names of objects and URLs.  A job's error may
 * name an object, and stays. */
static void cut_private(json_t *cluster)
{
    json_t *jobs = json_object_get(json_object_get(cluster, "jobs"), "jobs");
    cut(jobs, "spec");
    cut(jobs, "plan");
    cut(json_object_get(json_object_get(cluster, "bmd"), "buckets"), "owner");
}

static void put_cluster(struct bundle *b, json_t *overview)
{
    /* Not "access": the users of a cluster are no one else's business. */
    static const char *const parts[] = {"smap", "bmd", "config", "settings", "jobs"};
    json_t *cluster = add_object(b->doc, "cluster");
    json_object_set(cluster, "overview", overview);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct dfc_error err = {0};
        char *text = NULL;
        dfc_cluster_show(b->ctl->client, parts[i], &text, &err);
        put(b, cluster, parts[i], text, &err);
    }
    cut_private(cluster);
    put_history(b, cluster);
}

static void put_node(struct bundle *b, json_t *nodes, json_t *node)
{
    static const char *const of_proxy[] = {"info", "params", "stats", NULL};
    static const char *const of_target[] = {"info", "params", "stats", "mountpaths", NULL};
    const char *id = json_string_value(json_object_get(node, "id"));
    const char *role = json_string_value(json_object_get(node, "role"));
    if (id == NULL || role == NULL)
        return;
    json_t *parts = add_object(nodes, id);
    const char *const *at = strcmp(role, "target") == 0 ? of_target : of_proxy;
    for (; *at != NULL && !interrupted(); at++) {
        struct dfc_error err = {0};
        char *text = NULL;
        dfc_node_show(b->ctl->client, id, *at, &text, &err);
        put(b, parts, *at, text, &err);
    }
}

static void put_nodes(struct bundle *b, json_t *overview)
{
    json_t *nodes = add_object(b->doc, "nodes");
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(overview, "nodes"), i, node) put_node(b, nodes, node);
}

static void fill(struct bundle *b, json_t *overview)
{
    b->doc = json_pack("{s:I, s:{s:s, s:s}}", "made_ms", (json_int_t)clock_wall_ms(), "dfcctl",
                       "version", build_release(), "commit", build_commit());
    put_cluster(b, overview);
    json_object_set_new(b->doc, "health", cluster_health_judge(overview));
    put_nodes(b, overview);
    json_mask_queries(b->doc);
}

static int save(struct ctl *ctl, const char *path, json_t *doc)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = json_dumps(doc, JSON_INDENT(1));
    if (strcmp(path, "-") == 0) {
        fprintf(ctl->out, "%s\n", text);
        return EXIT_OK;
    }
    if (landing_write_private(path, text, &err) != 0)
        return ctl_fail_common(ctl, &err, EXIT_FAILED);
    return EXIT_OK;
}

int support_bundle(struct ctl *ctl, const struct args *args)
{
    const char *path = args->words[0];
    struct bundle b = {.ctl = ctl};
    _cleanup_json_ json_t *overview = NULL;
    int code = ctl_cluster(ctl, NULL, &overview);
    if (code != EXIT_OK)
        return code;
    fill(&b, overview);
    _cleanup_json_ json_t *doc = b.doc;
    code = interrupted() ? EXIT_INTERRUPTED : save(ctl, path, doc);
    if (code != EXIT_OK)
        return code;
    if (b.missing > 0)
        ctl_remark(ctl, "dfcctl: %zu of %zu parts are missing: the file has the errors", b.missing,
                   b.parts);
    if (strcmp(path, "-") != 0 && ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:I, s:I}", "file", path, "parts", (json_int_t)b.parts,
                                      "missing", (json_int_t)b.missing));
    else if (strcmp(path, "-") != 0)
        ctl_say(ctl, "saved %s", path);
    return b.missing > 0 ? EXIT_PARTIAL : EXIT_OK;
}
