/* object head, cat. */
#include "api/ctl/commands.h"

#include <unistd.h>

#include "api/ctl/get_flags.h"
#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);
DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* BUCKET/KEY, both there. */
static int parse_object(struct ctl *ctl, const char *text, struct object_name *out)
{
    struct error e = ERROR_INIT;
    if (object_name_parse(text, out, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (out->key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: expected BUCKET/KEY", text);
    return EXIT_OK;
}

static void print_info_json(struct ctl *ctl, const struct object_name *n,
                            const struct dfc_object_info *info)
{
    json_t *meta = json_object();
    for (size_t i = 0; i < info->meta_count; i++)
        json_object_set_new(meta, info->meta[i].name, json_string(info->meta[i].value));
    ctl_print_json(ctl, json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:{s:s, s:s}, s:o}",
                                  "bucket", n->bucket, "name", n->key, "size",
                                  (json_int_t)info->size, "modified_ms",
                                  (json_int_t)info->modified_ms, "content_type", info->content_type,
                                  "etag", info->etag, "version", info->version, "checksum", "type",
                                  info->checksum_type, "value", info->checksum, "meta", meta));
}

static void row(struct table *t, const char *field, const char *value)
{
    table_cell(t, field);
    table_cell(t, value);
}

static void print_info(struct ctl *ctl, const struct dfc_object_info *info)
{
    static const char *const headers[] = {"FIELD", "VALUE", NULL};
    char size[24], modified[32];
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    row(t, "size", ctl_size(ctl, info->size, size));
    row(t, "modified", ctl_time(info->modified_ms, modified));
    row(t, "content_type", info->content_type);
    row(t, "version", info->version);
    row(t, "etag", info->etag);
    table_cell(t, "checksum");
    table_cellf(t, "%s %s", info->checksum_type, info->checksum);
    for (size_t i = 0; i < info->meta_count; i++) {
        table_cellf(t, "meta %s", info->meta[i].name);
        table_cell(t, info->meta[i].value);
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int object_head(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int code = parse_object(ctl, args->words[0], &n);
    if (code != EXIT_OK)
        return code;
    if (dfc_head(ctl->client, n.bucket, n.key, &info, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "head");
    if (ctl->json)
        print_info_json(ctl, &n, info);
    else
        print_info(ctl, info);
    return EXIT_OK;
}

int object_cat(struct ctl *ctl, const struct args *args)
{
    struct dfc_get_options flags;
    int code = get_flags_read(ctl, args, &flags);
    for (size_t i = 0; i < args->word_count && code == EXIT_OK; i++) {
        struct dfc_error err;
        _cleanup_(object_name_done)
        struct object_name n = {0};
        code = parse_object(ctl, args->words[i], &n);
        if (code != EXIT_OK)
            return code;
        if (dfc_get_fd(ctl->client, n.bucket, n.key, STDOUT_FILENO, &flags, NULL, &err) != DFC_OK) {
            name_note_pattern(n.key, &err);
            _cleanup_free_ char *what = xprintf("cat '%s/%s'", n.bucket, n.key);
            return ctl_fail(ctl, &err, what);
        }
    }
    return code;
}
