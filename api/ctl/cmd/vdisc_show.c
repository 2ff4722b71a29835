/* vdisc ls, tree, inspect: what an image has. */
#include "api/ctl/commands.h"

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"

#define MODE_COLUMN 12
#define OWNER_COLUMN 14
#define SIZE_COLUMN 12
#define TIME_COLUMN 21

/* --- ls --------------------------------------------------------------------------------------- */

struct listing {
    struct ctl *ctl;
    const struct vdisc *v;
    const char *prefix; /* before each path: the directory that was named */
    bool with_owner, with_objects;
    json_t *list; /* of JSON */
};

static const char *const kinds[] = {"file", "directory", "link"};

static void mode_text(const struct iso_found *e, char out[static 11])
{
    static const char letters[] = "rwxrwxrwx";
    out[0] = e->kind == ISO_DIRECTORY ? 'd' : e->kind == ISO_LINK ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        out[1 + i] = (e->mode >> (8 - i) & 1) != 0 ? letters[i] : '-';
    out[10] = '\0';
}

/* "dfc://BUCKET/KEY" of a file; malloc'ed; NULL where it has none of this cluster. */
static char *object_of(const struct vdisc *v, const struct iso_found *e)
{
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    uint32_t extent = e->kind == ISO_FILE ? vdisc_extent_of(v, e->lba) : UINT32_MAX;
    if (extent == UINT32_MAX || vdisc_object(v, extent, &bucket, &key, NULL) != DFC_OK)
        return NULL;
    return xprintf("dfc://%s/%s", bucket, key);
}

static void print_headers(const struct listing *l)
{
    if (l->ctl->json || !l->ctl->headers)
        return;
    if (l->with_owner)
        fprintf(l->ctl->out, "%-*s%-*s", MODE_COLUMN, "MODE", OWNER_COLUMN, "UID:GID");
    fprintf(l->ctl->out, "%-*s%-*sNAME\n", SIZE_COLUMN, "SIZE", TIME_COLUMN, "MODIFIED");
}

static json_t *entry_json(const struct listing *l, const char *path, const struct iso_found *e)
{
    _cleanup_free_ char *object = object_of(l->v, e);
    json_t *doc =
        json_pack("{s:o, s:s, s:I, s:I, s:i, s:I, s:I}", "name", json_string_escaped(path), "kind",
                  kinds[e->kind], "size", (json_int_t)(e->kind == ISO_FILE ? e->size : 0),
                  "modified", (json_int_t)e->mtime_s, "mode", (int)e->mode, "uid",
                  (json_int_t)e->uid, "gid", (json_int_t)e->gid);
    if (e->kind == ISO_LINK)
        json_object_set_new(doc, "target", json_string_escaped(e->target));
    if (object != NULL)
        json_object_set_new(doc, "object", json_string(object));
    return doc;
}

static int print_entry(void *context, const char *path, const struct iso_found *e,
                       struct error *err)
{
    struct listing *l = context;
    char size[24], modified[32], mode[11], owner[32];
    (void)err;
    _cleanup_free_ char *full =
        xprintf("%s%s%s", l->prefix, path, e->kind == ISO_DIRECTORY && !l->ctl->json ? "/" : "");
    if (l->list != NULL) {
        json_array_append_new(l->list, entry_json(l, full, e));
        return 0;
    }
    if (l->with_owner) {
        mode_text(e, mode);
        snprintf(owner, sizeof owner, "%u:%u", e->uid, e->gid);
        fprintf(l->ctl->out, "%-*s%-*s", MODE_COLUMN, mode, OWNER_COLUMN, owner);
    }
    table_put_clean(l->ctl->out, e->kind == ISO_FILE ? ctl_size(l->ctl, e->size, size) : "-",
                    SIZE_COLUMN);
    table_put_clean(l->ctl->out, ctl_time(e->mtime_s * 1000, modified), TIME_COLUMN);
    table_put_clean(l->ctl->out, full, 0);
    if (e->kind == ISO_LINK) {
        fputs(" -> ", l->ctl->out);
        table_put_clean(l->ctl->out, e->target, 0);
    }
    fputc('\n', l->ctl->out);
    return 0;
}

static int print_named(void *context, const struct iso_found *e, struct error *err)
{
    return print_entry(context, e->name, e, err);
}

static int list_directory(struct listing *l, const struct iso_found *at, bool recursive,
                          struct error *err)
{
    const struct iso_reader *r = vdisc_reader(l->v);
    print_headers(l);
    return recursive ? iso_reader_walk(r, at, print_entry, l, err)
                     : iso_reader_list(r, at, print_named, l, err);
}

/* The name as it is printed before what is in the directory: "" or "a/b/". */
static char *prefix_of(const char *path)
{
    size_t len = strlen(path);
    while (*path == '/') {
        path++;
        len--;
    }
    while (len > 0 && path[len - 1] == '/')
        len--;
    return len > 0 ? xprintf("%.*s/", (int)len, path) : xstrdup("");
}

int vdisc_ls(struct ctl *ctl, const struct args *args)
{
    const char *path = args->word_count > 1 ? args->words[1] : "/";
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct iso_found at;
    struct error e = ERROR_INIT;
    int code = vdisc_open_named(ctl, args->words[0], &v);
    if (code == EXIT_OK)
        code = vdisc_find(ctl, v, path, &at);
    if (code != EXIT_OK)
        return code;
    _cleanup_free_ char *prefix = prefix_of(path);
    struct listing l = {.ctl = ctl, .v = v, .with_owner = args->given[F_long]};
    l.list = ctl->json ? json_array() : NULL;
    l.prefix = at.kind == ISO_DIRECTORY ? prefix : "";
    int rc = 0;
    if (at.kind == ISO_DIRECTORY) {
        rc = list_directory(&l, &at, args->given[F_recursive], &e);
    } else {
        print_headers(&l);
        rc = print_named(&l, &at, &e);
    }
    if (rc == 0 && ctl->json)
        ctl_print_json(ctl, json_incref(l.list));
    json_decref(l.list);
    return rc == 0 ? EXIT_OK : vdisc_fail(ctl, v, &e, "list");
}

/* --- tree ------------------------------------------------------------------------------------- */

static int print_branch(void *context, const char *path, const struct iso_found *e,
                        struct error *err)
{
    const struct listing *l = context;
    int depth = 0;
    (void)err;
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/';
    fprintf(l->ctl->out, "%*s", 2 * depth, "");
    table_put_clean(l->ctl->out, e->name, 0);
    fputs(e->kind == ISO_DIRECTORY ? "/" : e->kind == ISO_LINK ? " -> " : "", l->ctl->out);
    if (e->kind == ISO_LINK)
        table_put_clean(l->ctl->out, e->target, 0);
    _cleanup_free_ char *object = l->with_objects ? object_of(l->v, e) : NULL;
    if (object != NULL) {
        fputs("  ", l->ctl->out);
        table_put_clean(l->ctl->out, object, 0);
    }
    fputc('\n', l->ctl->out);
    return 0;
}

int vdisc_tree(struct ctl *ctl, const struct args *args)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct iso_found at;
    struct error e = ERROR_INIT;
    int code = vdisc_open_named(ctl, args->words[0], &v);
    if (code == EXIT_OK)
        code = vdisc_find(ctl, v, args->word_count > 1 ? args->words[1] : "/", &at);
    if (code != EXIT_OK)
        return code;
    struct listing l = {.ctl = ctl, .v = v, .prefix = "", .with_objects = args->given[F_urls]};
    l.list = ctl->json ? json_array() : NULL;
    int rc = iso_reader_walk(vdisc_reader(v), &at, ctl->json ? print_entry : print_branch, &l, &e);
    if (rc == 0 && ctl->json)
        ctl_print_json(ctl, json_incref(l.list));
    json_decref(l.list);
    return rc == 0 ? EXIT_OK : vdisc_fail(ctl, v, &e, "list");
}

/* --- inspect ---------------------------------------------------------------------------------- */

static char *id_text(const uint8_t id[static TABLE_ID], bool known)
{
    char hex[2 * TABLE_ID + 1] = "";
    if (known)
        format_hex(id, TABLE_ID, hex);
    return xstrdup(hex);
}

static int read_volume_id(const struct vdisc *v, char out[static 33], struct error *err)
{
    uint8_t block[ISO_BLOCK];
    const struct iso_source *s = &vdisc_reader(v)->source;
    int rc = s->read(s->context, ISO_SYSTEM_BLOCKS * ISO_BLOCK, block, sizeof block, err);
    size_t len = 32;
    memcpy(out, block + 40, len);
    while (len > 0 && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
    return rc;
}

int vdisc_inspect(struct ctl *ctl, const struct args *args)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    struct error e = ERROR_INIT;
    char volume[33], size[24];
    int code = vdisc_open_named(ctl, args->words[0], &v);
    if (code != EXIT_OK)
        return code;
    const struct vdisc_table *t = vdisc_table_of(v);
    if (read_volume_id(v, volume, &e) != 0)
        return vdisc_fail(ctl, v, &e, "inspect");
    uint64_t tagged = 0, summed = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        tagged += t->extents[i].etag[0] != '\0';
        summed += t->extents[i].checksum[0] != '\0';
    }
    _cleanup_free_ char *id = id_text(t->image_id, t->pinned);
    _cleanup_free_ char *content = id_text(t->content_id, t->has_content_id);
    if (ctl->json) {
        ctl_print_json(
            ctl, json_pack("{s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:s, s:s}", "fs_type", "iso9660",
                           "block_size", (int)ISO_BLOCK, "volume", json_string_escaped(volume),
                           "image_bytes", (json_int_t)vdisc_table_size(t), "extents",
                           (json_int_t)t->count, "tagged", (json_int_t)tagged, "checksummed",
                           (json_int_t)summed, "image_id", id, "content_id", content));
        return EXIT_OK;
    }
    fprintf(ctl->out, "volume      ");
    table_put_clean(ctl->out, volume, 0);
    fprintf(ctl->out,
            "\nsize        %s\nextents     %u: %llu with a tag, %llu with a checksum\n"
            "image id    %s\ncontent id  %s\n",
            ctl_size(ctl, vdisc_table_size(t), size), t->count, (unsigned long long)tagged,
            (unsigned long long)summed, id[0] != '\0' ? id : "-",
            content[0] != '\0' ? content : "-");
    return EXIT_OK;
}
