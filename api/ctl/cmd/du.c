/* object du: what a bucket holds, by its list of names. */
#include "api/ctl/commands.h"

#include "api/ctl/names/folder_sums.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define OBJECTS_COLUMN 12
#define SIZE_COLUMN 12

struct usage {
    struct ctl *ctl;
    const struct args *args;
    const char *bucket; /* the one that is counted */
    json_t *entries;    /* with -o json */
    bool begun;         /* the header line is printed */
    bool incomplete;
};

/* ---- lines ---- */

static void print_row(struct usage *u, const char *name, const struct folder_sum *sum)
{
    FILE *out = u->ctl->out;
    char size[24], objects[24];
    if (!u->begun && u->ctl->headers)
        fprintf(out, "%-*s%-*sNAME\n", OBJECTS_COLUMN, "OBJECTS", SIZE_COLUMN, "SIZE");
    u->begun = true;
    snprintf(objects, sizeof objects, "%llu", (unsigned long long)sum->objects);
    table_put_clean(out, objects, OBJECTS_COLUMN);
    table_put_clean(out, ctl_size(u->ctl, sum->bytes, size), SIZE_COLUMN);
    table_put_clean(out, name, 0);
    fputc('\n', out);
}

static json_t *sum_json(const struct folder_sum *sum)
{
    return json_pack("{s:I, s:I}", "objects", (json_int_t)sum->objects, "bytes",
                     (json_int_t)sum->bytes);
}

static void add_row(struct usage *u, const char *name, const struct folder_sum *sum)
{
    if (!u->ctl->json) {
        print_row(u, name, sum);
        return;
    }
    json_t *row = sum_json(sum);
    json_object_set_new(row, "name", json_string(name));
    json_array_append_new(u->entries, row);
}

static void folder_row(void *context, const char *folder, const struct folder_sum *sum)
{
    struct usage *u = context;
    _cleanup_free_ char *name = xprintf("%s/%s", u->bucket, folder);
    add_row(u, name, sum);
}

/* ---- counting ---- */

static int count_list(struct usage *u, struct dfc_list *list, const char *glob,
                      struct folder_sums *sums, struct dfc_error *err)
{
    const struct dfc_entry *entry;
    int rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        if (glob == NULL || glob_matches(glob, entry->name))
            folder_sums_add(sums, entry->name, entry->size);
    }
    u->incomplete = u->incomplete || dfc_list_incomplete(list);
    return rc;
}

static int fail(const struct usage *u, const char *name, const struct dfc_error *err)
{
    _cleanup_free_ char *what = xprintf("list '%s'", name);
    return ctl_fail(u->ctl, err, what);
}

/* Folders are counted from the last slash of what was named, and a pattern's fixed part. */
static int count_named(struct usage *u, const struct object_name *n, struct folder_sum *all)
{
    struct dfc_error err;
    struct dfc_list *list;
    const char *glob = glob_is(n->key) ? n->key : NULL;
    _cleanup_free_ char *prefix = glob != NULL ? glob_prefix(n->key) : glob_name(n->key);
    const struct dfc_list_options options = {
        .prefix = prefix,
        .partial = u->args->given[F_partial],
        .cached = u->args->given[F_cached],
        .internal = u->args->given[F_internal],
    };
    struct folder_sums sums = {
        .base = (size_t)(name_base(prefix) - prefix),
        .depth = u->args->given[F_depth] ? u->args->number[F_depth] : 0,
        .found = folder_row,
        .context = u,
    };
    u->bucket = n->bucket;
    int rc = dfc_list_open(u->ctl->client, n->bucket, &options, &list, &err);
    if (rc == DFC_OK) {
        rc = count_list(u, list, glob, &sums, &err);
        dfc_list_close(list);
    }
    if (rc == DFC_OK)
        folder_sums_end(&sums);
    folder_sums_done(&sums);
    *all = sums.all;
    return rc == DFC_OK ? EXIT_OK : fail(u, n->bucket, &err);
}

/* ---- the command ---- */

static int end(struct usage *u, const struct folder_sum *all, int code)
{
    if (u->ctl->json) {
        json_t *doc = sum_json(all);
        json_object_set(doc, "entries", u->entries);
        json_object_set_new(doc, "incomplete", json_boolean(u->incomplete));
        ctl_print_json(u->ctl, doc);
    } else if (u->incomplete) {
        ctl_remark(u->ctl, "dfcctl: the sums are incomplete: a target does not answer");
    }
    return code;
}

static int usage_of_name(struct usage *u, const char *word)
{
    struct error e = ERROR_INIT;
    struct folder_sum all;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (object_name_parse(word, &n, &e) != 0)
        return ctl_fail_common(u->ctl, &e, EXIT_USAGE);
    int code = count_named(u, &n, &all);
    if (code != EXIT_OK)
        return code;
    if (all.objects == 0 && n.key[0] != '\0' && !u->args->given[F_allow_empty]) {
        error_set(&e, E_NOTHING_MATCHED, "no object %s '%s' (--allow-empty accepts that)",
                  glob_is(n.key) ? "matches" : "has a name that begins with", n.key);
        return ctl_fail_common(u->ctl, &e, EXIT_NOTHING);
    }
    _cleanup_free_ char *name = xprintf("%s%s%s", n.bucket, n.key[0] != '\0' ? "/" : "", n.key);
    add_row(u, name, &all);
    return end(u, &all, EXIT_OK);
}

/* The buckets that can be counted are, whatever another one says. */
static int count_buckets(struct usage *u, json_t *buckets, struct folder_sum *all)
{
    int code = EXIT_OK;
    size_t i, counted = 0;
    json_t *b;
    json_array_foreach(buckets, i, b)
    {
        struct folder_sum sum;
        const char *name = json_string_value(json_object_get(b, "name"));
        const struct object_name n = {(char *)name, (char *)""};
        if (name == NULL || interrupted())
            continue;
        int one = count_named(u, &n, &sum);
        if (one != EXIT_OK) {
            code = one;
            continue;
        }
        counted++;
        add_row(u, name, &sum);
        all->objects += sum.objects;
        all->bytes += sum.bytes;
    }
    return code != EXIT_OK && counted > 0 ? EXIT_PARTIAL : code;
}

static int usage_of_all(struct usage *u)
{
    struct dfc_error err;
    struct folder_sum all = {0};
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_bucket_list(u->ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(u->ctl, &err, "list buckets");
    int code = ctl_parse(u->ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    code = count_buckets(u, json_object_get(doc, "buckets"), &all);
    if (!u->ctl->json)
        print_row(u, "(all)", &all);
    return end(u, &all, code);
}

int object_du(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *entries = json_array();
    struct usage u = {.ctl = ctl, .args = args, .entries = entries};
    return args->word_count == 0 ? usage_of_all(&u) : usage_of_name(&u, args->words[0]);
}
