/* vdisc stats, rm, gc: what images have in the store. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "vdisc/client/burn.h"
#include "vdisc/client/collect.h"
#include "vdisc/client/references.h"

#define GRACE_MS (24ull * 3600 * 1000)

/* --- stats ------------------------------------------------------------------------------------ */

struct image_sums {
    uint64_t files, logical;
    uint64_t objects, stored;
};

static int count_file(void *context, const char *path, const struct iso_found *f, struct error *err)
{
    struct image_sums *s = context;
    (void)path;
    (void)err;
    s->files += f->kind == ISO_FILE;
    s->logical += f->kind == ISO_FILE ? f->size : 0;
    return 0;
}

static int sum_image(struct ctl *ctl, const char *name, struct references *all,
                     struct image_sums *s)
{
    struct references own = {0};
    struct iso_found root;
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    int code = vdisc_open_named(ctl, name, &v);
    if (code != EXIT_OK)
        return code;
    iso_reader_root(vdisc_reader(v), &root);
    if (iso_reader_walk(vdisc_reader(v), &root, count_file, s, &e) != 0)
        return vdisc_fail(ctl, v, &e, name);
    if (references_take(&own, v, &err) != DFC_OK || references_take(all, v, &err) != DFC_OK)
        code = ctl_fail(ctl, &err, name);
    references_unite(&own);
    s->objects = own.count;
    s->stored = references_bytes(&own);
    references_done(&own);
    return code;
}

static json_t *sums_json(const struct image_sums *s)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "files", (json_int_t)s->files, "file_bytes",
                     (json_int_t)s->logical, "objects", (json_int_t)s->objects, "object_bytes",
                     (json_int_t)s->stored);
}

static void print_sums(struct ctl *ctl, const char *name, const struct image_sums *s)
{
    char logical[24], stored[24];
    fprintf(ctl->out, "%s  %llu files, %s; %llu objects, %s\n", name, (unsigned long long)s->files,
            ctl_size(ctl, s->logical, logical), (unsigned long long)s->objects,
            ctl_size(ctl, s->stored, stored));
}

static void print_all(struct ctl *ctl, json_t *rows, const struct image_sums *sum,
                      const struct image_sums *all)
{
    char shared[24];
    const uint64_t twice = sum->stored - all->stored;
    if (ctl->json) {
        json_t *doc = sums_json(all);
        json_object_set_new(doc, "shared_bytes", json_integer((json_int_t)twice));
        json_object_set(doc, "images", rows);
        ctl_print_json(ctl, doc);
        return;
    }
    print_sums(ctl, "all", all);
    fprintf(ctl->out, "shared between images: %s\n", ctl_size(ctl, twice, shared));
}

int vdisc_stats(struct ctl *ctl, const struct args *args)
{
    struct references all = {0};
    struct image_sums sum = {0};
    json_t *rows = json_array();
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < args->word_count; i++) {
        struct image_sums s = {0};
        code = sum_image(ctl, args->words[i], &all, &s);
        if (code != EXIT_OK)
            break;
        json_t *row = sums_json(&s);
        json_object_set_new(row, "image", json_string(args->words[i]));
        json_array_append_new(rows, row);
        if (!ctl->json)
            print_sums(ctl, args->words[i], &s);
        sum.files += s.files;
        sum.logical += s.logical;
        sum.stored += s.stored;
    }
    references_unite(&all);
    const struct image_sums united = {.files = sum.files,
                                      .logical = sum.logical,
                                      .objects = all.count,
                                      .stored = references_bytes(&all)};
    if (code == EXIT_OK)
        print_all(ctl, rows, &sum, &united);
    json_decref(rows);
    references_done(&all);
    return code;
}

/* --- rm --------------------------------------------------------------------------------------- */

/* The header's name begins with the table's: no other image has it. */
static bool is_own_header(const struct object_name *n, const char *bucket, const char *key)
{
    return strcmp(bucket, n->bucket) == 0 && burn_rules_is_header(key, n->key);
}

static int find_header(const struct vdisc *v, char **bucket, char **key, struct dfc_error *err)
{
    return vdisc_table_of(v)->count > 0 ? vdisc_object(v, 0, bucket, key, err) : DFC_OK;
}

/* First the table: without it there is no image. */
static int remove_image(struct ctl *ctl, const struct object_name *n, const char *name)
{
    struct dfc_error err;
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    int rc = vdisc_open_table(ctl->client, n->bucket, n->key, &v, &err);
    if (rc == DFC_OK)
        rc = find_header(v, &bucket, &key, &err);
    if (rc == DFC_OK)
        rc = dfc_delete(ctl->client, n->bucket, n->key, &err);
    if (rc == DFC_OK && key != NULL && is_own_header(n, bucket, key)) {
        rc = dfc_delete(ctl->client, bucket, key, &err);
        rc = rc == DFC_NOT_FOUND ? DFC_OK : rc;
    }
    _cleanup_free_ char *what = xprintf("remove image '%s'", name);
    return rc == DFC_OK ? EXIT_OK : ctl_fail(ctl, &err, what);
}

int vdisc_rm(struct ctl *ctl, const struct args *args)
{
    for (size_t i = 0; i < args->word_count; i++) {
        const char *name = args->words[i];
        _cleanup_(object_name_done)
        struct object_name n;
        int code = vdisc_name(ctl, name, &n);
        if (code == EXIT_OK)
            code = remove_image(ctl, &n, name);
        if (code != EXIT_OK)
            return code;
        ctl_say(ctl, "removed %s", name);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:I}", "removed", (json_int_t)args->word_count));
    return EXIT_OK;
}

/* --- gc --------------------------------------------------------------------------------------- */

static void print_result(struct ctl *ctl, bool dry_run, const struct collect_result *r)
{
    char size[24];
    if (ctl->json) {
        ctl_print_json(ctl,
                       json_pack("{s:I, s:I, s:I, s:I, s:b}", "images", (json_int_t)r->images,
                                 "objects", (json_int_t)r->objects, "bytes", (json_int_t)r->bytes,
                                 "younger", (json_int_t)r->younger, "dry_run", dry_run));
        return;
    }
    ctl_say(ctl, "%s %llu object%s, %s; %llu images were read",
            dry_run ? "would remove" : "removed", (unsigned long long)r->objects,
            r->objects == 1 ? "" : "s", ctl_size(ctl, r->bytes, size),
            (unsigned long long)r->images);
    if (r->younger > 0)
        ctl_say(ctl, "%llu more are younger than --grace, and stay",
                (unsigned long long)r->younger);
}

int vdisc_gc(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    struct collect_result result;
    const uint64_t grace = args->given[F_grace] ? args->number[F_grace] : GRACE_MS;
    const struct collect_options options = {.bucket = args->words[0],
                                            .before_ms = clock_wall_ms() - (int64_t)grace,
                                            .dry_run = args->given[F_dry_run]};
    if (collect(ctl->client, &options, &result, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("collect in bucket '%s'", args->words[0]);
        return ctl_fail(ctl, &err, what);
    }
    print_result(ctl, options.dry_run, &result);
    return EXIT_OK;
}
