/* storage reindex: has a target's indexes rebuilt; waits with --wait. */
#include "api/ctl/commands.h"

#include "api/ctl/interrupt.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { LOOK_MS = 300 };

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static void print_indexes(struct ctl *ctl, json_t *doc)
{
    static const char *const headers[] = {"PATH", "STATE", "REBUILDING", "FILES", "WHY", NULL};
    size_t i;
    json_t *one;
    if (ctl->json) {
        ctl_print_json(ctl, json_incref(doc));
        return;
    }
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    json_array_foreach(json_object_get(doc, "indexes"), i, one)
    {
        const char *why = text_at(one, "error");
        table_cell(t, text_at(one, "path"));
        table_cell(t, text_at(one, "state"));
        table_cell(t, json_is_true(json_object_get(one, "rebuilding")) ? "yes" : "no");
        table_cellf(t, "%lld",
                    (long long)json_integer_value(json_object_get(one, "files_looked_at")));
        table_cell(t, strcmp(why, "-") != 0 ? why : text_at(one, "last_error"));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

static bool is_meant(json_t *one, const char *which_or_null)
{
    return which_or_null == NULL || strcmp(which_or_null, text_at(one, "path")) == 0 ||
           strcmp(which_or_null, text_at(one, "id")) == 0;
}

/* How many of those that were asked for are under way, and how many have failed. */
static void count(json_t *doc, const char *which, size_t *running, size_t *failed)
{
    size_t i;
    json_t *one;
    *running = *failed = 0;
    json_array_foreach(json_object_get(doc, "indexes"), i, one)
    {
        if (!is_meant(one, which))
            continue;
        *running += json_is_true(json_object_get(one, "rebuilding"));
        *failed += json_object_get(one, "last_error") != NULL;
    }
}

static int look(struct ctl *ctl, const char *node, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *what = xprintf("indexes of '%s'", node);
    if (dfc_node_indexes(ctl->client, node, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    json_decref(*doc);
    *doc = NULL;
    return ctl_parse(ctl, text, doc);
}

static int wait_for_end(struct ctl *ctl, const char *node, const char *which, uint64_t timeout_ms,
                        json_t **doc)
{
    size_t running, failed;
    uint64_t began = clock_ms();
    for (count(*doc, which, &running, &failed); running > 0;
         count(*doc, which, &running, &failed)) {
        if (timeout_ms > 0 && clock_ms() - began > timeout_ms) {
            ctl_remark(ctl, "dfcctl: the rebuild goes on");
            return EXIT_UNREACHABLE; /* as job wait says that the time ran out */
        }
        if (!interrupt_pause(LOOK_MS))
            return EXIT_INTERRUPTED;
        int code = look(ctl, node, doc);
        if (code != EXIT_OK)
            return code;
    }
    return failed > 0 ? EXIT_FAILED : EXIT_OK;
}

int storage_reindex(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *node = args->words[0];
    const char *which = args->word_count > 1 ? args->words[1] : NULL;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *what = xprintf("reindex '%s'", node);
    _cleanup_json_ json_t *doc = NULL;
    if (args->given[F_timeout] && !args->given[F_wait])
        return ctl_usage(ctl, "--timeout goes with --wait");
    if (dfc_node_reindex(ctl->client, node, which, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && args->given[F_wait])
        code = wait_for_end(ctl, node, which, args->number[F_timeout], &doc);
    if (doc != NULL)
        print_indexes(ctl, doc);
    return code;
}
