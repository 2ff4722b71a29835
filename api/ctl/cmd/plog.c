/* plog stat, map, check, recover. */
#include "api/ctl/commands.h"

#include "api/ctl/plog/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "plog/client/dfc_plog.h"

static void print_stat(const struct ctl *ctl, const struct dfc_plog_stat *s)
{
    char size[24], stored[24], created[32], modified[32];
    if (ctl->json) {
        ctl_print_json(ctl,
                       json_pack("{s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:I, s:I}", "size",
                                 (json_int_t)s->size, "stored", (json_int_t)s->stored, "segments",
                                 (json_int_t)s->segments, "sessions", (json_int_t)s->sessions,
                                 "mode", (int)s->mode, "uid", (json_int_t)s->uid, "gid",
                                 (json_int_t)s->gid, "created_ms", (json_int_t)s->created_ms,
                                 "modified_ms", (json_int_t)s->modified_ms));
        return;
    }
    fprintf(ctl->out, "Size:      %s\n", ctl_size(ctl, s->size, size));
    fprintf(ctl->out, "Stored:    %s in %llu segments\n", ctl_size(ctl, s->stored, stored),
            (unsigned long long)s->segments);
    fprintf(ctl->out, "Sessions:  %llu open or not merged\n", (unsigned long long)s->sessions);
    fprintf(ctl->out, "Mode:      %04o, owner %u:%u\n", s->mode, s->uid, s->gid);
    fprintf(ctl->out, "Created:   %s\n", ctl_time((int64_t)s->created_ms, created));
    fprintf(ctl->out, "Merged:    %s\n", ctl_time((int64_t)s->modified_ms, modified));
}

static int open_to_read(struct ctl *ctl, const char *name, struct dfc_plog **plog)
{
    _cleanup_(object_name_done)
    struct object_name n;
    const struct dfc_plog_options read_alone = {.flags = 0};
    struct dfc_error err;
    const int code = ctl_plog_name(ctl, name, &n);
    if (code != EXIT_OK)
        return code;
    if (dfc_plog_open(ctl->client, n.bucket, n.key, &read_alone, plog, &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "open", name);
    return EXIT_OK;
}

int plog_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_plog *plog;
    struct dfc_plog_stat s;
    struct dfc_error err;
    const int code = open_to_read(ctl, args->words[0], &plog);
    if (code != EXIT_OK)
        return code;
    const int rc = dfc_plog_stat(plog, &s, &err);
    dfc_plog_drop(plog);
    if (rc != DFC_OK)
        return ctl_plog_fail(ctl, &err, "stat", args->words[0]);
    print_stat(ctl, &s);
    return EXIT_OK;
}

/* ---- map, check ---- */

struct walking {
    struct ctl *ctl;
    json_t *list;
    bool is_check;
    uint64_t extents, bytes, damaged;
};

static int show_extent(void *context, const struct dfc_plog_extent *e)
{
    struct walking *w = context;
    w->extents++;
    w->bytes += e->length;
    w->damaged += e->why != NULL;
    if (w->is_check && e->why == NULL)
        return 0;
    if (w->ctl->json) {
        json_t *row = json_pack("{s:I, s:I, s:s, s:I}", "start", (json_int_t)e->start, "length",
                                (json_int_t)e->length, "segment", e->segment, "offset",
                                (json_int_t)e->physical);
        if (e->why != NULL)
            json_object_set_new(row, "why", json_string_escaped(e->why));
        json_array_append_new(w->list, row);
    } else {
        fprintf(w->ctl->out, "%llu + %llu: %s at %llu%s%s\n", (unsigned long long)e->start,
                (unsigned long long)e->length, e->segment, (unsigned long long)e->physical,
                e->why != NULL ? ": " : "", e->why != NULL ? e->why : "");
    }
    return 0;
}

static void print_walk(const struct walking *w)
{
    if (w->ctl->json)
        ctl_print_json(w->ctl, json_pack("{s:I, s:I, s:I, s:O}", "extents", (json_int_t)w->extents,
                                         "bytes", (json_int_t)w->bytes, "damaged",
                                         (json_int_t)w->damaged, "found", w->list));
    else if (w->is_check)
        fprintf(w->ctl->out, "%s: %llu extents, %llu bytes; %llu are damaged\n",
                w->damaged == 0 ? "OK" : "FAILED", (unsigned long long)w->extents,
                (unsigned long long)w->bytes, (unsigned long long)w->damaged);
}

static int walk(struct ctl *ctl, const char *name, bool is_check)
{
    struct walking w = {.ctl = ctl, .is_check = is_check};
    struct dfc_plog *plog;
    struct dfc_error err;
    const int code = open_to_read(ctl, name, &plog);
    if (code != EXIT_OK)
        return code;
    w.list = json_array();
    const int rc = dfc_plog_walk(plog, is_check, show_extent, &w, &err);
    dfc_plog_drop(plog);
    if (rc == DFC_OK)
        print_walk(&w);
    json_decref(w.list);
    if (rc != DFC_OK)
        return ctl_plog_fail(ctl, &err, "read", name);
    return w.damaged > 0 ? EXIT_PARTIAL : EXIT_OK;
}

int plog_map_extents(struct ctl *ctl, const struct args *args)
{
    return walk(ctl, args->words[0], false);
}

int plog_check(struct ctl *ctl, const struct args *args)
{
    return walk(ctl, args->words[0], true);
}

/* ---- recover ---- */

int plog_end_dead(struct ctl *ctl, const struct args *args)
{
    _cleanup_(object_name_done)
    struct object_name n;
    struct dfc_error err;
    bool busy;
    const int code = ctl_plog_name(ctl, args->words[0], &n);
    if (code != EXIT_OK)
        return code;
    if (dfc_plog_recover(ctl->client, n.bucket, n.key,
                         args->given[F_timeout] ? args->number[F_timeout] : 0, &busy,
                         &err) != DFC_OK)
        return ctl_plog_fail(ctl, &err, "recover", args->words[0]);
    if (busy) {
        ctl_remark(ctl, "'%s' has writers that are alive: the last close merges it",
                   args->words[0]);
        return EXIT_PARTIAL;
    }
    ctl_say(ctl, "'%s' is merged", args->words[0]);
    return EXIT_OK;
}
