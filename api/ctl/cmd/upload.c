/* upload ls, upload abort: uploads in parts that are open. */
#include "api/ctl/commands.h"

#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    return text != NULL ? text : "";
}

/* ---- the list ---- */

static int list_page(struct ctl *ctl, const struct object_name *n, json_t *last, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *what = xprintf("list the uploads of '%s'", n->bucket);
    const char *after = last != NULL ? text_at(last, "object") : NULL;
    const char *after_upload = last != NULL ? text_at(last, "upload") : NULL;
    int rc = dfc_upload_list(ctl->client, n->bucket, n->key, after, after_upload, &text, &err);
    return rc == DFC_OK ? ctl_parse(ctl, text, doc) : ctl_fail(ctl, &err, what);
}

/* All uploads of objects that begin with the key; whole: of this object.  An exit code. */
static int list_all(struct ctl *ctl, const struct object_name *n, bool whole, json_t *all)
{
    bool more = true;
    _cleanup_json_ json_t *last = NULL;
    while (more) {
        _cleanup_json_ json_t *doc = NULL;
        size_t i;
        json_t *row;
        int code = list_page(ctl, n, last, &doc);
        if (code != EXIT_OK)
            return code;
        json_t *rows = json_object_get(doc, "uploads");
        json_array_foreach(rows, i, row)
        {
            if (!whole || strcmp(text_at(row, "object"), n->key) == 0)
                json_array_append(all, row);
        }
        size_t count = json_array_size(rows);
        more = count > 0 && json_is_true(json_object_get(doc, "more"));
        json_decref(last);
        last = count > 0 ? json_incref(json_array_get(rows, count - 1)) : NULL;
    }
    return EXIT_OK;
}

static void print_table(struct ctl *ctl, json_t *all)
{
    static const char *const headers[] = {"BEGUN", "UPLOAD", "OBJECT", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *row;
    char begun[32];
    json_array_foreach(all, i, row)
    {
        table_cell(t, ctl_time(json_integer_value(json_object_get(row, "time")), begun));
        table_cell(t, text_at(row, "upload"));
        table_cell(t, text_at(row, "object"));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int upload_ls(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_json_ json_t *all = json_array();
    if (object_name_parse(args->words[0], &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    int code = list_all(ctl, &n, false, all);
    if (code != EXIT_OK)
        return code;
    if (n.key[0] != '\0' && json_array_size(all) == 0 && !args->given[F_allow_empty]) {
        error_set(
            &e, E_NOTHING_MATCHED,
            "no open upload is of an object that begins with '%s' (--allow-empty accepts that)",
            n.key);
        return ctl_fail_common(ctl, &e, EXIT_NOTHING);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:O}", "uploads", all));
    else
        print_table(ctl, all);
    return EXIT_OK;
}

/* ---- the end of one ---- */

static int abort_one(struct ctl *ctl, const struct object_name *n, const char *upload,
                     json_t *aborted)
{
    struct dfc_error err;
    _cleanup_free_ char *what = xprintf("abort upload '%s' of '%s/%s'", upload, n->bucket, n->key);
    if (dfc_upload_abort(ctl->client, n->bucket, n->key, upload, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    json_array_append_new(aborted, json_string(upload));
    if (!ctl->json)
        ctl_say(ctl, "aborted %s", upload);
    return EXIT_OK;
}

static int abort_all(struct ctl *ctl, const struct object_name *n, json_t *aborted)
{
    struct error e = ERROR_INIT;
    size_t i;
    json_t *row;
    _cleanup_json_ json_t *all = json_array();
    int code = list_all(ctl, n, true, all);
    if (code == EXIT_OK && json_array_size(all) == 0) {
        error_set(&e, E_NOTHING_MATCHED, "object '%s' has no open upload", n->key);
        return ctl_fail_common(ctl, &e, EXIT_NOTHING);
    }
    json_array_foreach(all, i, row)
    {
        int one = abort_one(ctl, n, text_at(row, "upload"), aborted);
        code = one != EXIT_OK ? one : code;
    }
    return code;
}

int upload_abort(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_json_ json_t *aborted = json_array();
    if (object_name_parse(args->words[0], &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (n.key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: BUCKET/KEY", n.bucket);
    int code = args->word_count > 1 ? abort_one(ctl, &n, args->words[1], aborted)
                                    : abort_all(ctl, &n, aborted);
    if (ctl->json && json_array_size(aborted) > 0)
        ctl_print_json(ctl, json_pack("{s:O}", "aborted", aborted));
    return code;
}
