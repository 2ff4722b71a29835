/* cluster migrate-metastore, set-primary, backup, restore, recover. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/interrupt.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/restore_plan.h"
#include "api/ctl/print/table.h"
#include "common/backup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { HAND_OVER_TRIES = 40, HAND_OVER_PAUSE_MS = 500 };

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static long long int_at(json_t *obj, const char *field)
{
    return (long long)json_integer_value(json_object_get(obj, field));
}

static int act(struct ctl *ctl, const char *action, json_t *value, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *body = json_text(value);
    _cleanup_free_ char *text = NULL;
    if (dfc_documents_act(ctl->client, action, body, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, action);
    return ctl_parse(ctl, text, doc);
}

/* The whole state, queries of URLs included. */
static int whole_state(struct ctl *ctl, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_documents_state(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "state");
    return ctl_parse(ctl, text, doc);
}

/* What is so now; its reference is taken over. */
static int say(struct ctl *ctl, json_t *doc, const char *what)
{
    if (ctl->json) {
        ctl_print_json(ctl, doc);
        return EXIT_OK;
    }
    fprintf(ctl->out, "%s: cluster %s, state %lld.%lld\n", what, text_at(doc, "cluster"),
            int_at(doc, "term"), int_at(doc, "version"));
    json_decref(doc);
    return EXIT_OK;
}

/* ---- migrate-metastore ---- */

int cluster_migrate_metastore(struct ctl *ctl, const struct args *args)
{
    json_t *doc = NULL;
    const char *prefix = args->given[F_etcd_prefix] ? args->text[F_etcd_prefix] : "/dfc";
    if (!args->given[F_to])
        return ctl_usage(ctl, "--to is missing: --to etcd://HOST:PORT,HOST:PORT,…");
    _cleanup_free_ char *question =
        xprintf("Move the cluster's documents to %s (prefix '%s')? Changes are refused until a "
                "proxy is started with --metastore=%s.",
                args->text[F_to], prefix, args->text[F_to]);
    int code = ctl_confirm(ctl, args, question);
    if (code != EXIT_OK)
        return code;
    _cleanup_json_ json_t *value =
        json_pack("{s:s, s:s}", "to", args->text[F_to], "prefix", prefix);
    if (value == NULL)
        return ctl_usage(ctl, "--to is not UTF-8");
    if ((code = act(ctl, "migrate", value, &doc)) != EXIT_OK)
        return code;
    say(ctl, doc, "moved");
    ctl_remark(ctl,
               "dfcctl: now start every proxy again with --metastore=%s --etcd-prefix=%s, the old "
               "primary first, without --join",
               args->text[F_to], prefix);
    return EXIT_OK;
}

/* ---- set-primary ---- */

static int present_primary(struct ctl *ctl, char **id)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_cluster(ctl, NULL, &doc);
    if (code == EXIT_OK)
        *id = xstrdup(text_at(doc, "primary"));
    return code;
}

/* Each primary that is not the wanted one resigns, and does not stand again for a while. */
int cluster_set_primary(struct ctl *ctl, const struct args *args)
{
    const char *wanted = args->words[0];
    _cleanup_json_ json_t *value = json_pack("{s:s}", "node", wanted);
    if (value == NULL)
        return ctl_usage(ctl, "the node's name is not UTF-8");
    for (int i = 0; i < HAND_OVER_TRIES; i++) {
        json_t *doc = NULL;
        _cleanup_free_ char *now = NULL;
        int code = act(ctl, "set_primary", value, &doc);
        if (code != EXIT_OK || (code = present_primary(ctl, &now)) != EXIT_OK) {
            json_decref(doc);
            return code;
        }
        if (strcmp(text_at(doc, "primary"), wanted) == 0 && strcmp(now, wanted) == 0)
            return say(ctl, doc, "primary");
        json_decref(doc);
        if (!interrupt_pause(HAND_OVER_PAUSE_MS))
            return EXIT_INTERRUPTED;
    }
    const struct error err = {.code = E_TIMEOUT,
                              .message = "it was not elected: does it run with --electable=false?"};
    return ctl_fail_common(ctl, &err, EXIT_FAILED);
}

/* ---- backup ---- */

int cluster_backup(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *state = NULL;
    struct error err = ERROR_INIT;
    int code = whole_state(ctl, &state);
    if (code != EXIT_OK)
        return code;
    _cleanup_json_ json_t *doc = backup_wrap(state, DFC_VERSION, clock_wall_ms());
    _cleanup_free_ char *text = json_dumps(doc, JSON_INDENT(1));
    if (strcmp(args->words[0], "-") == 0) {
        fprintf(ctl->out, "%s\n", text);
        return EXIT_OK;
    }
    /* It has all documents: jobs and URLs of backends. */
    if (landing_write_private(args->words[0], text, &err) != 0)
        return ctl_fail_common(ctl, &err, EXIT_FAILED);
    return say(ctl,
               json_pack("{s:s, s:O, s:O, s:O}", "file", args->words[0], "cluster",
                         json_object_get(state, "cluster"), "term", json_object_get(state, "term"),
                         "version", json_object_get(state, "version")),
               "saved");
}

/* ---- restore ---- */

/* *file: the whole document, which *state is borrowed from. */
static int read_backup(struct ctl *ctl, const char *path, json_t **file, json_t **state)
{
    json_error_t why;
    struct error err = ERROR_INIT;
    errno = 0;
    *file = strcmp(path, "-") == 0 ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &why)
                                   : json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (*file == NULL && json_error_code(&why) == json_error_cannot_open_file)
        error_errno(&err, errno, "open '%s'", path);
    else if (*file == NULL)
        error_set(&err, E_JSON, "'%s' is no backup: line %d: %s", path, why.line, why.text);
    if (*file == NULL)
        return ctl_fail_common(ctl, &err, EXIT_FAILED);
    if (backup_unwrap(*file, state, &err) == 0)
        return EXIT_OK;
    error_wrap(&err, "'%s'", path);
    return ctl_fail_common(ctl, &err, EXIT_FAILED);
}

static int check_same_cluster(struct ctl *ctl, json_t *present, json_t *wanted)
{
    struct error err;
    const char *now = text_at(present, "cluster");
    const char *then = text_at(wanted, "cluster");
    if (strcmp(now, then) == 0)
        return EXIT_OK;
    error_set(&err, E_WRONG_CLUSTER,
              "the backup is of cluster '%s', and this is cluster '%s'. A cluster whose documents "
              "are lost: dfcctl cluster recover, or dfc-proxyd --import FILE",
              then, now);
    return ctl_fail_common(ctl, &err, EXIT_FAILED);
}

static void print_plan(struct ctl *ctl, json_t *plan, json_t *file)
{
    char when[32];
    size_t i;
    json_t *one;
    fprintf(ctl->err, "Backup of %s (release %s), state %lld.%lld:\n",
            ctl_time(json_integer_value(json_object_get(file, "taken_ms")), when),
            text_at(file, "release"), int_at(json_object_get(file, "state"), "term"),
            int_at(json_object_get(file, "state"), "version"));
    json_array_foreach(plan, i, one)
    {
        _cleanup_(buf_done)
        struct buf line = BUF_INIT;
        restore_plan_line(one, &line);
        fprintf(ctl->err, "  %s\n", buf_str(&line));
    }
    fprintf(ctl->err, "Nodes and jobs stay as they are.\n");
}

static json_t *version_at(json_t *state, const char *part)
{
    return json_object_get(json_object_get(state, part), "version");
}

static int restore(struct ctl *ctl, const struct args *args, json_t *present, json_t *wanted,
                   json_t *file)
{
    json_t *doc = NULL;
    _cleanup_json_ json_t *plan = restore_plan(present, wanted);
    if (!ctl->json)
        print_plan(ctl, plan, file);
    if (json_array_size(plan) == 0) {
        if (ctl->json)
            ctl_print_json(ctl, json_pack("{s:O}", "changes", plan));
        else
            fprintf(ctl->out, "nothing to restore: buckets and settings are as they were\n");
        return EXIT_OK;
    }
    if (args->given[F_dry_run]) {
        if (ctl->json)
            ctl_print_json(ctl, json_pack("{s:O}", "changes", plan));
        return EXIT_OK;
    }
    int code = ctl_confirm(ctl, args, "Restore these buckets and settings?");
    if (code != EXIT_OK)
        return code;
    _cleanup_json_ json_t *value =
        json_pack("{s:O, s:O, s:O}", "state", wanted, "bmd", version_at(present, "bmd"), "config",
                  version_at(present, "config"));
    if ((code = act(ctl, "restore", value, &doc)) != EXIT_OK)
        return code;
    if (ctl->json)
        json_object_set(doc, "changes", plan);
    return say(ctl, doc, "restored");
}

int cluster_restore(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *file = NULL;
    _cleanup_json_ json_t *present = NULL;
    json_t *wanted = NULL;
    int code;
    if ((code = read_backup(ctl, args->words[0], &file, &wanted)) != EXIT_OK ||
        (code = whole_state(ctl, &present)) != EXIT_OK ||
        (code = check_same_cluster(ctl, present, wanted)) != EXIT_OK)
        return code;
    return restore(ctl, args, present, wanted, file);
}

/* ---- recover ---- */

static void print_copies(struct ctl *ctl, json_t *copies)
{
    static const char *const headers[] = {"NODE",   "CLUSTER", "VERSION", "BUCKETS",
                                          "DIGEST", "ERROR",   NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *one;
    json_array_foreach(copies, i, one)
    {
        table_cell(t, text_at(one, "node"));
        table_cell(t, text_at(one, "cluster"));
        table_cellf(t, "%lld.%lld", int_at(one, "term"), int_at(one, "version"));
        table_cellf(t, "%lld", int_at(one, "buckets"));
        table_cell(t, text_at(one, "digest"));
        table_cell(t, text_at(one, "error"));
    }
    table_print(t, ctl->err, ctl->headers, false);
}

static void print_belief(struct ctl *ctl, json_t *plan)
{
    json_t *buckets = json_object_get(json_object_get(plan, "bmd"), "buckets");
    size_t i;
    json_t *one;
    fprintf(ctl->err, "\nTo be believed: %s's, state %lld.%lld of cluster %s, with the buckets",
            text_at(plan, "node"), int_at(plan, "term"), int_at(plan, "version"),
            text_at(plan, "cluster"));
    json_array_foreach(buckets, i, one) fprintf(ctl->err, " %s", text_at(one, "name"));
    fprintf(ctl->err, "%s\n", json_array_size(buckets) == 0 ? " (none)" : "");
    json_array_foreach(json_object_get(plan, "unheard"), i, one)
        fprintf(ctl->err, "Not reached, and may know more: %s\n", json_string_value(one));
}

static int refuse(struct ctl *ctl, json_t *plan)
{
    struct error err;
    int code = error_from_name(text_at(plan, "code"));
    error_set(&err, code != 0 ? code : E_INTERNAL, "%s", text_at(plan, "refused"));
    return ctl_fail_common(ctl, &err, code == E_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FAILED);
}

static int recover(struct ctl *ctl, const struct args *args, json_t *shown)
{
    json_t *plan = json_object_get(shown, "plan");
    json_t *doc = NULL;
    if (!ctl->json)
        print_copies(ctl, json_object_get(shown, "copies"));
    if (json_object_get(plan, "refused") != NULL)
        return refuse(ctl, plan);
    if (!ctl->json)
        print_belief(ctl, plan);
    if (args->given[F_dry_run]) {
        if (ctl->json)
            ctl_print_json(ctl, json_incref(shown));
        return EXIT_OK;
    }
    int code = ctl_confirm(ctl, args, "Make this proxy the primary of that cluster?");
    if (code != EXIT_OK)
        return code;
    _cleanup_json_ json_t *value =
        json_pack("{s:O, s:s, s:O, s:O}", "cluster", json_object_get(plan, "cluster"), "node",
                  args->given[F_node] ? args->text[F_node] : "", "term",
                  json_object_get(plan, "term"), "version", json_object_get(plan, "version"));
    code = act(ctl, "recover", value, &doc);
    return code == EXIT_OK ? say(ctl, doc, "recovered") : code;
}

int cluster_recover(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *shown = NULL;
    if (dfc_documents_copies(ctl->client, args->text[F_cluster], args->text[F_node], &text, &err) !=
        DFC_OK)
        return ctl_fail(ctl, &err, "recover");
    int code = ctl_parse(ctl, text, &shown);
    return code == EXIT_OK ? recover(ctl, args, shown) : code;
}
