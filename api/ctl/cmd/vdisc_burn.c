/* vdisc burn: a list of files, a directory, or a changed older image becomes an image. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/ctl/cmd/vdisc_open.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"
#include "vdisc/burn_rules.h"
#include "vdisc/client/burn.h"

#define PIECE (64u << 10)
#define SCHEME "dfc://"

/* --- flags ------------------------------------------------------------------------------------ */

static int read_date(const struct args *args, int64_t *date_s, struct error *err)
{
    const char *text = args->given[F_date] ? args->text[F_date] : getenv("SOURCE_DATE_EPOCH");
    *date_s = ISO_NO_TIME;
    if (text == NULL || text[0] == '\0')
        return 0;
    int rc = parse_i64(text, date_s, err);
    return rc == 0 ? 0
                   : error_wrap(err, "%s", args->given[F_date] ? "--date" : "SOURCE_DATE_EPOCH");
}

static enum iso_names names_of(const struct args *args)
{
    const char *text = args->given[F_names] ? args->text[F_names] : "any";
    return strcmp(text, "portable") == 0   ? ISO_NAMES_PORTABLE
           : strcmp(text, "extended") == 0 ? ISO_NAMES_EXTENDED
                                           : ISO_NAMES_ANY;
}

static void set_identifiers(const struct args *args, struct iso_volume *v)
{
    static const enum flag_id flags[ISO_IDENTIFIERS] = {
        [ISO_SYSTEM] = F_iso9660_system_identifier,
        [ISO_VOLUME] = F_iso9660_volume_identifier,
        [ISO_VOLUME_SET] = F_iso9660_volume_set_identifier,
        [ISO_PUBLISHER] = F_iso9660_publisher_identifier,
        [ISO_DATA_PREPARER] = F_iso9660_data_preparer_identifier,
        [ISO_APPLICATION] = F_iso9660_application_identifier,
        [ISO_COPYRIGHT_FILE] = F_iso9660_copyright_file_identifier,
        [ISO_ABSTRACT_FILE] = F_iso9660_abstract_file_identifier,
        [ISO_BIBLIOGRAPHIC_FILE] = F_iso9660_bibliographic_file_identifier,
    };
    for (int i = 0; i < ISO_IDENTIFIERS; i++)
        v->identifiers[i] = args->given[flags[i]] ? args->text[flags[i]] : NULL;
}

static int read_options(const struct args *args, const struct object_name *to,
                        struct burn_options *o, struct error *err)
{
    *o = (struct burn_options){.bucket = to->bucket,
                               .key = to->key,
                               .plan = {.names = names_of(args),
                                        .joliet = args->given[F_joliet],
                                        .entries_max = args->number[F_entries_max],
                                        .table_max = args->number[F_table_max]},
                               .digest = args->given[F_digest],
                               .no_check = args->given[F_no_check],
                               .pack =
                                   args->given[F_store] && strcmp(args->text[F_store], "pack") == 0,
                               .allow_empty = args->given[F_allow_empty],
                               .threads = parallel_of(args)};
    set_identifiers(args, &o->volume);
    int rc = read_date(args, &o->plan.date_s, err);
    return rc == 0 ? iso_volume_check(&o->volume, err) : rc;
}

/* --- the list --------------------------------------------------------------------------------- */

static int feed_fd(struct ctl *ctl, struct burn *b, int fd, const char *path)
{
    char piece[PIECE];
    struct error e = ERROR_INIT;
    struct dfc_error err;
    for (ssize_t n; (n = read(fd, piece, sizeof piece)) != 0;) {
        if (n < 0) {
            error_errno(&e, errno, "read '%s'", path);
            return ctl_fail_common(ctl, &e, EXIT_FAILED);
        }
        if (burn_feed(b, piece, (size_t)n, &err) != DFC_OK)
            return ctl_fail(ctl, &err, path);
    }
    return EXIT_OK;
}

/* What went wrong in burn_feed() counts, not that the sink ended the transfer. */
struct feeding {
    struct burn *burn;
    struct dfc_error *err;
    int rc;
};

static int feed_piece(void *context, const void *data, size_t size)
{
    struct feeding *f = context;
    f->rc = burn_feed(f->burn, data, size, f->err);
    return f->rc == DFC_OK ? 0 : -1;
}

static int feed_object(struct ctl *ctl, struct burn *b, const char *name)
{
    struct error e = ERROR_INIT;
    struct dfc_error err, told;
    struct feeding f = {.burn = b, .err = &err};
    const struct dfc_sink sink = {.write = feed_piece, .context = &f};
    _cleanup_(object_name_done)
    struct object_name from = {0};
    if (object_name_parse(name, &from, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (dfc_get_sink(ctl->client, from.bucket, from.key, &sink, NULL, NULL, &told) == DFC_OK)
        return EXIT_OK;
    return ctl_fail(ctl, f.rc != DFC_OK ? &err : &told, name);
}

static int feed(struct ctl *ctl, struct burn *b, const char *input)
{
    struct error e = ERROR_INIT;
    if (strncmp(input, SCHEME, strlen(SCHEME)) == 0)
        return feed_object(ctl, b, input);
    if (strcmp(input, "-") == 0)
        return feed_fd(ctl, b, STDIN_FILENO, "standard input");
    _cleanup_close_ int fd = open(input, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return feed_fd(ctl, b, fd, input);
    error_errno(&e, errno, "open '%s'", input);
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_json(struct ctl *ctl, const char *to, const struct burn_result *r)
{
    ctl_print_json(ctl,
                   json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "image", to,
                             "image_id", r->image_id, "entries", (json_int_t)r->entries, "files",
                             (json_int_t)r->files, "extents", (json_int_t)r->extents, "image_bytes",
                             (json_int_t)r->image_bytes, "header_bytes",
                             (json_int_t)r->header_bytes, "table_bytes", (json_int_t)r->table_bytes,
                             "shared_bytes", (json_int_t)r->shared_bytes, "sent_objects",
                             (json_int_t)r->sent_objects, "sent_bytes", (json_int_t)r->sent_bytes));
}

static void print(struct ctl *ctl, const struct args *args, const struct burn_result *r)
{
    const char *to = args->text[F_to];
    char size[24], shared[24];
    if (ctl->json) {
        print_json(ctl, to, r);
        return;
    }
    ctl_say(ctl, "%s  %llu file%s, %llu extent%s, %s, %s shared", to, (unsigned long long)r->files,
            r->files == 1 ? "" : "s", (unsigned long long)r->extents, r->extents == 1 ? "" : "s",
            ctl_size(ctl, r->image_bytes, size), ctl_size(ctl, r->shared_bytes, shared));
    if (args->given[F_tree])
        ctl_say(ctl, "stored %llu object%s, %s", (unsigned long long)r->sent_objects,
                r->sent_objects == 1 ? "" : "s", ctl_size(ctl, r->sent_bytes, size));
    ctl_say(ctl, "image id %s", r->image_id);
    if (r->many_sections > 0)
        ctl_remark(ctl, "%u file%s larger than about 400 GiB: Linux cannot read %s from the image",
                   r->many_sections, r->many_sections == 1 ? " is" : "s are",
                   r->many_sections == 1 ? "it" : "them");
    if (r->far_parents > 0)
        ctl_remark(ctl,
                   "more than 65535 directories: %u have a wrong parent in the path table, "
                   "which Linux does not read",
                   r->far_parents);
}

typedef int older_image(struct burn *b, const char *bucket, const char *key, struct dfc_error *err);

static int take_older(struct ctl *ctl, struct burn *b, const char *name, older_image *take)
{
    struct dfc_error err;
    _cleanup_(object_name_done)
    struct object_name n;
    int code = vdisc_name(ctl, name, &n);
    if (code != EXIT_OK)
        return code;
    if (take(b, n.bucket, n.key, &err) == DFC_OK)
        return EXIT_OK;
    _cleanup_free_ char *what = xprintf("open image '%s'", name);
    return ctl_fail(ctl, &err, what);
}

static int take_tree(struct ctl *ctl, struct burn *b, const char *directory)
{
    struct dfc_error err;
    return burn_tree(b, directory, &err) == DFC_OK ? EXIT_OK : ctl_fail(ctl, &err, "burn");
}

static int take_bucket(struct ctl *ctl, struct burn *b, const char *name)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (object_name_parse(name, &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (burn_bucket(b, n.bucket, n.key, &err) == DFC_OK)
        return EXIT_OK;
    _cleanup_free_ char *what = xprintf("list '%s'", name);
    return ctl_fail(ctl, &err, what);
}

static int take_inputs(struct ctl *ctl, const struct args *args, struct burn *b)
{
    int code = args->given[F_from] ? take_older(ctl, b, args->text[F_from], burn_from) : EXIT_OK;
    for (size_t i = 0; i < args->list_count[F_remove]; i++)
        burn_remove(b, args->list[F_remove][i]);
    if (code == EXIT_OK && args->given[F_base])
        code = take_older(ctl, b, args->text[F_base], burn_base);
    if (code == EXIT_OK && args->given[F_tree])
        code = take_tree(ctl, b, args->text[F_tree]);
    if (code == EXIT_OK && args->given[F_bucket])
        code = take_bucket(ctl, b, args->text[F_bucket]);
    if (code == EXIT_OK && args->given[F_input])
        code = feed(ctl, b, args->text[F_input]);
    return code;
}

/* A burn that fails takes nothing back. */
static void tell_stored(struct ctl *ctl, const struct burn_options *o, const struct burn_result *r)
{
    char size[24];
    if (r->sent_objects > 0)
        ctl_remark(
            ctl,
            "%llu object%s stored before the failure, %s: the next burn uses what is stored, and "
            "'dfcctl vdisc gc %s --grace 0' removes it",
            (unsigned long long)r->sent_objects, r->sent_objects == 1 ? " was" : "s were",
            ctl_size(ctl, r->sent_bytes, size), o->bucket);
}

static int burn(struct ctl *ctl, const struct args *args, const struct burn_options *o)
{
    struct burn_result result = {0};
    struct dfc_error err;
    _cleanup_(burn_freep)
    struct burn *b = burn_new(ctl->client, o);
    int code = take_inputs(ctl, args, b);
    if (code != EXIT_OK)
        return code;
    if (burn_finish(b, &result, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("burn '%s/%s'", o->bucket, o->key);
        code = ctl_fail(ctl, &err, what);
        tell_stored(ctl, o, &result);
        return code;
    }
    print(ctl, args, &result);
    return EXIT_OK;
}

static int check_flags(const struct ctl *ctl, const struct args *args)
{
    static const struct {
        enum flag_id flag, needs;
        bool by_job; /* a job does not need it */
    } needs[] = {{F_remove, F_from, false}, {F_base, F_tree, true}, {F_store, F_tree, true}};
    const int inputs = args->given[F_input] + args->given[F_tree] + args->given[F_bucket];
    if ((inputs == 0 && !args->given[F_from]) || !args->given[F_to])
        return ctl_usage(ctl, "'vdisc burn' needs -i FILE.csv, --tree DIR, --bucket URL or --from "
                              "IMAGE, and -o dfc://BUCKET/NAME.vdsc");
    if (inputs > 1)
        return ctl_usage(ctl, "'vdisc burn' takes one of -i, --tree and --bucket");
    if (args->given[F_no_check] && args->given[F_tree])
        return ctl_usage(ctl, "--no-check is not for --tree: the store must be asked what it has");
    if (!args->given[F_job] && (args->given[F_wait] || args->given[F_timeout]))
        return ctl_usage(ctl, "--wait and --timeout go with --job");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (args->given[needs[i].flag] && !args->given[needs[i].needs] &&
            !(needs[i].by_job && args->given[F_job]))
            return ctl_usage(ctl, "--%s needs --%s%s", flag_table[needs[i].flag].name,
                             flag_table[needs[i].needs].name, needs[i].by_job ? " or --job" : "");
    }
    return EXIT_OK;
}

int vdisc_burn(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct burn_options options;
    _cleanup_(object_name_done)
    struct object_name to = {0};
    int code = check_flags(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (object_name_parse(args->text[F_to], &to, &e) == 0 &&
        (to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/'))
        error_set(&e, E_NAME, "'%s' names no object: expected dfc://BUCKET/NAME.vdsc",
                  args->text[F_to]);
    if (e.code == 0)
        burn_rules_check_name(to.key, &e);
    if (e.code != 0 || read_options(args, &to, &options, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    return args->given[F_job] ? vdisc_burn_job(ctl, args, &to, &options.volume)
                              : burn(ctl, args, &options);
}
