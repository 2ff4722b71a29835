/* Jobs over many objects: object rm by --template, --prefix, --list; object cp; bucket cp,
 * prefetch, evict, archive, unarchive, promote, download. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/ctl/names/ambiguous.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/job_wait.h"
#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { LIST_MAX = 4 << 20 }; /* bytes of a file of names: about what one job takes */

/* --- which objects ---------------------------------------------------------------------------- */

static int read_names(int fd, const char *path, struct buf *out, struct error *err)
{
    ssize_t got;
    do {
        buf_reserve(out, 64 << 10);
        got = read(fd, out->data + out->len, 64 << 10);
        if (got < 0)
            return error_errno(err, errno, "read '%s'", path);
        out->len += (size_t)got;
        if (out->len > LIST_MAX)
            return error_set(err, E_TOO_LARGE, "'%s' is longer than %d bytes; do it in parts", path,
                             LIST_MAX);
    } while (got > 0);
    out->data[out->len] = '\0';
    return 0;
}

/* One a line; empty lines are none. */
static int put_lines(json_t *list, struct buf *text, const char *path, struct error *err)
{
    unsigned number = 0;
    for (char *rest = text->data, *line; (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        if (*line != '\0' && json_array_append_new(list, json_string(line)) != 0)
            return error_set(err, E_NAME, "'%s': line %u is not UTF-8", path, number);
    }
    return 0;
}

static int put_list(json_t *value, const char *path, struct error *err)
{
    bool standard_input = strcmp(path, "-") == 0;
    _cleanup_close_ int opened = standard_input ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    if (opened < 0 && !standard_input)
        return error_errno(err, errno, "open '%s'", path);
    int code = read_names(standard_input ? STDIN_FILENO : opened, path, &text, err);
    if (code != 0)
        return code;
    json_t *list = json_array();
    json_object_set_new(value, "list", list);
    return put_lines(list, &text, path, err);
}

static int put_text(json_t *value, const char *field, const char *text, struct error *err)
{
    if (json_object_set_new(value, field, json_string(text)) == 0)
        return 0;
    return error_set(err, E_INVALID, "'%s' of --%s is not UTF-8", text, field);
}

/* What the flags say, as the "value" of the request. */
static int put_flags(json_t *value, const struct args *args, struct error *err)
{
    static const enum flag_id texts[] = {F_template, F_prefix, F_prepend, F_description};
    int code = 0;
    if (args->given[F_template] + args->given[F_prefix] + args->given[F_list] > 1)
        return error_set(err, E_INVALID, "--template, --prefix and --list exclude one another");
    for (size_t i = 0; i < sizeof texts / sizeof *texts && code == 0; i++) {
        if (args->given[texts[i]])
            code = put_text(value, flag_table[texts[i]].name, args->text[texts[i]], err);
    }
    if (args->given[F_allow_empty])
        json_object_set_new(value, "allow_empty", json_true());
    if (args->given[F_internal])
        json_object_set_new(value, "internal", json_true());
    if (code == 0 && args->given[F_list])
        code = put_list(value, args->text[F_list], err);
    return code;
}

/* Of jobs that fetch. */
static void put_speed(json_t *value, const struct args *args)
{
    if (args->given[F_parallel])
        json_object_set_new(value, "parallel", json_integer((json_int_t)args->number[F_parallel]));
    if (args->given[F_rate])
        json_object_set_new(value, "rate", json_integer((json_int_t)args->number[F_rate]));
}

/* --- starting --------------------------------------------------------------------------------- */

typedef int start_fn(struct dfc_client *c, const char *bucket, const char *value, char **id,
                     struct dfc_error *err);

static int start(struct ctl *ctl, const struct args *args, const char *bucket, json_t *value,
                 start_fn *fn, const char *what)
{
    struct dfc_error err;
    _cleanup_free_ char *text = json_text(value);
    _cleanup_free_ char *id = NULL;
    if (fn(ctl->client, bucket, text, &id, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    return job_started(ctl, args, id);
}

static int fail_flags(struct ctl *ctl, const struct error *e)
{
    return ctl_fail_common(ctl, e, e->code == E_IO ? EXIT_FAILED : EXIT_USAGE);
}

int object_rm_by_job(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (args->given[F_recursive])
        return ctl_usage(ctl, "--recursive goes with BUCKET/KEY alone");
    if (args->word_count != 1)
        return ctl_usage(ctl, "--template, --prefix and --list want one bucket");
    if (object_name_parse(args->words[0], &n, &e) != 0 || put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    if (n.key[0] != '\0')
        return ctl_usage(ctl, "'%s' names an object: --template, --prefix and --list want a bucket",
                         args->words[0]);
    int code = job_check_wait(ctl, args);
    _cleanup_free_ char *question =
        xprintf("Remove the objects of bucket '%s' that --%s names?", n.bucket,
                args->given[F_template] ? "template"
                : args->given[F_prefix] ? "prefix"
                                        : "list");
    if (code == EXIT_OK)
        code = ctl_confirm(ctl, args, question);
    return code != EXIT_OK ? code
                           : start(ctl, args, n.bucket, value, dfc_bucket_delete_objects, "rm");
}

static int put_destination(struct ctl *ctl, const struct args *args, json_t *value)
{
    struct error e = ERROR_INIT;
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (strchr(args->words[1], '/') != NULL)
        return ctl_usage(ctl,
                         "'%s' is not a bucket: a job copies into a bucket, under the same names "
                         "(--prepend begins the copies' names)",
                         args->words[1]);
    return put_text(value, "to", args->words[1], &e) != 0 ? fail_flags(ctl, &e) : EXIT_OK;
}

static int copy(struct ctl *ctl, const struct args *args, const char *bucket, json_t *value)
{
    int code = put_destination(ctl, args, value);
    return code != EXIT_OK ? code : start(ctl, args, bucket, value, dfc_bucket_copy_objects, "cp");
}

/* The job would find it out when the command has ended. */
static int check_exists(const struct ctl *ctl, const char *bucket, const char *key)
{
    struct dfc_error err;
    struct error e = ERROR_INIT;
    if (dfc_head(ctl->client, bucket, key, NULL, &err) == DFC_OK)
        return EXIT_OK;
    if (strcmp(err.code, error_name(E_OBJECT_NOT_FOUND)) != 0)
        return ctl_fail(ctl, &err, "cp");
    error_set(&e, E_NOTHING_MATCHED, "object '%s/%s' does not exist (--allow-empty accepts that)",
              bucket, key);
    return ctl_fail_common(ctl, &e, EXIT_NOTHING);
}

static int copy_one(struct ctl *ctl, const struct args *args, const struct object_name *n,
                    json_t *value)
{
    json_t *list = json_array();
    _cleanup_free_ char *key = glob_name(n->key);
    json_object_set_new(value, "list", list);
    if (json_array_append_new(list, json_string(key)) != 0)
        return ctl_usage(ctl, "'%s' is not UTF-8", args->words[0]);
    int code = put_destination(ctl, args, value);
    if (code == EXIT_OK && !args->given[F_allow_empty])
        code = check_exists(ctl, n->bucket, key);
    return code != EXIT_OK ? code
                           : start(ctl, args, n->bucket, value, dfc_bucket_copy_objects, "cp");
}

static int copy_matching(struct ctl *ctl, const struct args *args, const struct object_name *n,
                         json_t *value)
{
    int code = put_destination(ctl, args, value);
    return code != EXIT_OK ? code : object_cp_pattern(ctl, args, n->bucket, n->key, value);
}

int object_cp(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_(object_name_done)
    struct object_name to = {0};
    if (object_name_parse(args->words[0], &n, &e) != 0 ||
        object_name_parse(args->words[1], &to, &e) != 0)
        return fail_flags(ctl, &e);
    if (to.key[0] != '\0' || args->given[F_recursive])
        return object_cp_stream(ctl, args, &n, &to);
    if (put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    bool chosen = args->given[F_template] || args->given[F_prefix] || args->given[F_list];
    if (!chosen && n.key[0] == '\0' && access(args->words[0], F_OK) == 0)
        return object_cp_of_file(ctl, args->words[0]);
    if (chosen == (n.key[0] != '\0'))
        return ctl_usage(ctl, "name one object, or a bucket with --template, --prefix or --list "
                              "('bucket cp' copies all of one)");
    int code = ambiguous_check(ctl, args, args->words[0], &n);
    if (code != EXIT_OK)
        return code;
    if (chosen)
        return copy(ctl, args, n.bucket, value);
    return glob_is(n.key) ? copy_matching(ctl, args, &n, value) : copy_one(ctl, args, &n, value);
}

int bucket_cp(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    if (put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    return copy(ctl, args, args->words[0], value);
}

int bucket_prefetch(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    put_speed(value, args);
    return start(ctl, args, args->words[0], value, dfc_bucket_prefetch, "prefetch");
}

int bucket_evict(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    if (!args->given[F_template] && !args->given[F_prefix] && !args->given[F_list])
        return ctl_usage(ctl,
                         "one of --template, --prefix and --list is needed (--prefix '': all)");
    return start(ctl, args, args->words[0], value, dfc_bucket_evict, "evict");
}

/* Which objects, checked, and which others. */
static int put_chosen(struct ctl *ctl, const struct args *args, json_t *value)
{
    struct error e = ERROR_INIT;
    if (put_flags(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    if (args->given[F_template] || args->given[F_prefix] || args->given[F_list])
        return EXIT_OK;
    return ctl_usage(ctl, "one of --template, --prefix and --list is needed (--prefix '': all)");
}

/* One archive of that name; with --shard-size those of the template. */
static int put_archives(json_t *value, const struct args *args, const struct object_name *to,
                        struct error *err)
{
    const char *brace = strchr(to->key, '{');
    if (!args->given[F_shard_size]) {
        if (brace != NULL && strstr(brace, "..") != NULL)
            return error_set(err, E_INVALID,
                             "'%s' is a template of several archives: give --shard-size SIZE, too",
                             to->key);
        int code = put_text(value, "to", to->bucket, err);
        return code != 0 ? code : put_text(value, "archive", to->key, err);
    }
    json_t *shards = json_object();
    json_object_set_new(value, "to", shards);
    json_object_set_new(value, "shard_size", json_integer((json_int_t)args->number[F_shard_size]));
    int code = put_text(shards, "bucket", to->bucket, err);
    return code != 0 ? code : put_text(shards, "template", to->key, err);
}

static int put_members(json_t *value, const struct args *args, struct error *err)
{
    if (args->given[F_bare])
        json_object_set_new(value, "names", json_string("base"));
    if (args->given[F_shuffle] || args->given[F_seed])
        json_object_set_new(value, "order", json_string("shuffle"));
    if (args->given[F_seed])
        json_object_set_new(value, "seed", json_integer((json_int_t)args->number[F_seed]));
    int code = args->given[F_strip] ? put_text(value, "strip", args->text[F_strip], err) : 0;
    if (code == 0 && args->given[F_format])
        code = put_text(value, "format", args->text[F_format], err);
    return code;
}

int bucket_archive(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    _cleanup_(object_name_done)
    struct object_name to = {0};
    int code = job_check_wait(ctl, args);
    if (code == EXIT_OK)
        code = put_chosen(ctl, args, value);
    if (code != EXIT_OK)
        return code;
    if (object_name_parse(args->words[1], &to, &e) != 0)
        return fail_flags(ctl, &e);
    if (to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/')
        return ctl_usage(ctl, "'%s' names no object: it must be BUCKET/KEY", args->words[1]);
    if (put_archives(value, args, &to, &e) != 0 || put_members(value, args, &e) != 0)
        return fail_flags(ctl, &e);
    return start(ctl, args, args->words[0], value, dfc_bucket_archive, "archive");
}

int bucket_unarchive(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    int code = job_check_wait(ctl, args);
    if (code == EXIT_OK)
        code = put_chosen(ctl, args, value);
    if (code != EXIT_OK)
        return code;
    if (args->word_count > 1 && put_text(value, "to", args->words[1], &e) != 0)
        return fail_flags(ctl, &e);
    if (args->given[F_bare])
        json_object_set_new(value, "names", json_string("member"));
    return start(ctl, args, args->words[0], value, dfc_bucket_unarchive, "unarchive");
}

int bucket_promote(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (put_flags(value, args, &e) != 0 || put_text(value, "path", args->words[1], &e) != 0 ||
        (args->given[F_node] && put_text(value, "node", args->text[F_node], &e) != 0))
        return fail_flags(ctl, &e);
    if (args->given[F_overwrite])
        json_object_set_new(value, "overwrite", json_true());
    if (args->given[F_move])
        json_object_set_new(value, "move", json_true());
    return start(ctl, args, args->words[0], value, dfc_bucket_promote, "promote");
}

static int put_urls(json_t *value, const struct args *args, struct error *err)
{
    json_t *list = json_array();
    json_object_set_new(value, "list", list);
    for (size_t i = 1; i < args->word_count; i++) {
        if (json_array_append_new(list, json_string(args->words[i])) != 0)
            return error_set(err, E_INVALID, "'%s' is not UTF-8", args->words[i]);
    }
    return 0;
}

int bucket_download(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *value = json_object();
    bool by_flag = args->given[F_template] || args->given[F_list];
    int code = job_check_wait(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (by_flag == (args->word_count > 1))
        return ctl_usage(ctl, "name URLs, or give --template or --list");
    if (put_flags(value, args, &e) != 0 || (!by_flag && put_urls(value, args, &e) != 0))
        return fail_flags(ctl, &e);
    put_speed(value, args);
    return start(ctl, args, args->words[0], value, dfc_bucket_download, "download");
}
