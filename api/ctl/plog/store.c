/* plog cp, ls, gc: what plogs have in the store. */
#include "api/ctl/commands.h"

#include "api/ctl/plog/name.h"
#include "api/ctl/print/table.h"
#include "common/clock.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "plog/client/dfc_plog.h"

#define GRACE_MS (24ull * 3600 * 1000)

DEFINE_CLEANUP(struct table, table_free);

/* --- cp --------------------------------------------------------------------------------------- */

int plog_cp(struct ctl *ctl, const struct args *args)
{
    _cleanup_(object_name_done)
    struct object_name from = {0};
    _cleanup_(object_name_done)
    struct object_name to = {0};
    struct dfc_error err;
    int code = ctl_plog_name(ctl, args->words[0], &from);
    if (code == EXIT_OK)
        code = ctl_plog_name(ctl, args->words[1], &to);
    if (code != EXIT_OK)
        return code;
    if (dfc_plog_copy(ctl->client, from.bucket, from.key, to.bucket, to.key, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "copy", args->words[0]);
    ctl_say(ctl, "copied '%s' to '%s'", args->words[0], args->words[1]);
    return EXIT_OK;
}

/* --- ls --------------------------------------------------------------------------------------- */

struct listing {
    const struct ctl *ctl;
    bool is_long;
    struct table *table;
    json_t *rows;
};

static void add_json(const struct listing *l, const struct dfc_plog_entry *e)
{
    json_t *row = json_pack("{s:s, s:I, s:I, s:I}", "id", e->id, "objects", (json_int_t)e->objects,
                            "stored", (json_int_t)e->stored, "newest_ms", (json_int_t)e->newest_ms);
    if (e->name != NULL) {
        json_object_set_new(row, "name", json_string_escaped(e->name));
        json_object_set_new(row, "size", json_integer((json_int_t)e->size));
    }
    json_array_append_new(l->rows, row);
}

static int list_one(void *context, const struct dfc_plog_entry *e)
{
    const struct listing *l = context;
    char size[24], stored[24], newest[32];
    if (l->ctl->json) {
        add_json(l, e);
        return 0;
    }
    table_cell(l->table, e->name != NULL ? ctl_size(l->ctl, e->size, size) : "-");
    table_cell(l->table, ctl_size(l->ctl, e->stored, stored));
    table_cellf(l->table, "%llu", (unsigned long long)e->objects);
    table_cell(l->table, ctl_time(e->newest_ms, newest));
    if (l->is_long)
        table_cell(l->table, e->id);
    table_cell(l->table, e->name != NULL ? e->name : "-");
    return 0;
}

int plog_ls(struct ctl *ctl, const struct args *args)
{
    static const char *const brief[] = {"SIZE", "STORED", "OBJECTS", "CHANGED", "NAME", NULL};
    static const char *const complete[] = {"SIZE", "STORED", "OBJECTS", "CHANGED",
                                           "ID",   "NAME",   NULL};
    struct dfc_error err;
    const bool is_long = args->given[F_long];
    _cleanup_(table_freep)
    struct table *table = table_new(is_long ? complete : brief);
    _cleanup_json_ json_t *rows = json_array();
    struct listing l = {.ctl = ctl, .is_long = is_long, .table = table, .rows = rows};
    if (dfc_plog_list(ctl->client, args->words[0], list_one, &l, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "list the plogs of", args->words[0]);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:O}", "plogs", rows));
    else
        table_print(table, ctl->out, ctl->headers, ctl->colour);
    return EXIT_OK;
}

/* --- gc --------------------------------------------------------------------------------------- */

static void print_collected(const struct ctl *ctl, bool dry_run, const struct dfc_plog_collected *c)
{
    char size[24];
    if (ctl->json) {
        ctl_print_json(ctl, json_pack("{s:I, s:I, s:I, s:I, s:b}", "containers",
                                      (json_int_t)c->containers, "objects", (json_int_t)c->objects,
                                      "bytes", (json_int_t)c->stored, "younger",
                                      (json_int_t)c->younger, "dry_run", dry_run));
        return;
    }
    ctl_say(ctl, "%s %llu container%s: %llu objects, %s", dry_run ? "would remove" : "removed",
            (unsigned long long)c->containers, c->containers == 1 ? "" : "s",
            (unsigned long long)c->objects, ctl_size(ctl, c->stored, size));
    if (c->younger > 0)
        ctl_say(ctl, "%llu more are younger than --grace, and stay",
                (unsigned long long)c->younger);
}

int plog_gc(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    struct dfc_plog_collected collected;
    const bool dry_run = args->given[F_dry_run];
    const uint64_t grace_ms = args->given[F_grace] ? args->number[F_grace] : GRACE_MS;
    if (dfc_plog_collect(ctl->client, args->words[0], clock_wall_ms() - (int64_t)grace_ms, dry_run,
                         &collected, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "collect in", args->words[0]);
    print_collected(ctl, dry_run, &collected);
    return EXIT_OK;
}
