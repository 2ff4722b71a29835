/* object get: one object, those that match a pattern, or everything below a prefix. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/names/ambiguous.h"
#include "api/ctl/get_flags.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/files/fetch.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "api/ctl/tally.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* ---- one object ---- */

static int fetch(struct ctl *ctl, const struct object_name *from, struct landing *l,
                 const struct dfc_get_options *flags, struct progress_part *part, uint64_t *resumed,
                 struct dfc_error *err)
{
    struct dfc_get_options options = *flags;
    options.progress = progress_part_moved;
    options.progress_context = part;
    return fetch_object(ctl->client, from->bucket, from->key, l, &options, resumed, err);
}

static int fail_get(const struct ctl *ctl, const struct object_name *from, struct dfc_error *err)
{
    _cleanup_free_ char *what = xprintf("get '%s/%s'", from->bucket, from->key);
    return ctl_fail(ctl, err, what);
}

static int get_to_stdout(struct ctl *ctl, const struct object_name *from,
                         const struct dfc_get_options *flags)
{
    struct dfc_error err;
    fflush(ctl->out);
    if (dfc_get_fd(ctl->client, from->bucket, from->key, STDOUT_FILENO, flags, NULL, &err) ==
        DFC_OK)
        return EXIT_OK;
    return fail_get(ctl, from, &err);
}

static void print_fetched(struct ctl *ctl, const char *path, uint64_t resumed)
{
    char text[24], had[24];
    struct stat st;
    uint64_t size = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:I, s:I}", "path", path, "size", (json_int_t)size,
                                      "resumed", (json_int_t)resumed));
    else if (resumed > 0)
        ctl_say(ctl, "%s  %s, %s of them from an earlier run", path, ctl_size(ctl, size, text),
                ctl_size(ctl, resumed, had));
    else
        ctl_say(ctl, "%s  %s", path, ctl_size(ctl, size, text));
}

static int get_to_path(struct ctl *ctl, const struct object_name *from, const char *path,
                       const struct dfc_get_options *flags)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    if (landing_open_path(&l, path, &e) != 0)
        return ctl_fail_common(ctl, &e, e.code == E_INVALID ? EXIT_USAGE : EXIT_FAILED);
    uint64_t resumed = 0;
    struct progress *bar = progress_new(ctl, "get");
    struct progress_part part = {.all = bar, .alone = true};
    int rc = fetch(ctl, from, &l, flags, &part, &resumed, &err);
    progress_free(bar);
    if (rc != DFC_OK)
        return fail_get(ctl, from, &err);
    print_fetched(ctl, path, resumed);
    return EXIT_OK;
}

static int get_one(struct ctl *ctl, const struct object_name *from, const char *path,
                   const struct dfc_get_options *flags)
{
    struct error e = ERROR_INIT;
    if (path != NULL && strcmp(path, "-") == 0)
        return get_to_stdout(ctl, from, flags);
    if (path != NULL && !walk_is_directory(path))
        return get_to_path(ctl, from, path, flags);
    const char *base = name_base(from->key);
    if (name_check_local(base, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    _cleanup_(buf_done)
    struct buf full = BUF_INIT;
    name_join(&full, path != NULL ? path : "", base);
    return get_to_path(ctl, from, buf_str(&full), flags);
}

static int get_named(struct ctl *ctl, const struct object_name *from, const char *path,
                     const struct dfc_get_options *flags)
{
    _cleanup_free_ char *key = glob_name(from->key);
    const struct object_name named = {.bucket = from->bucket, .key = key};
    return get_one(ctl, &named, path, flags);
}

/* ---- many ---- */

struct get_many {
    struct ctl *ctl;
    const char *glob; /* only names that match it; or NULL */
    const char *bucket;
    const struct dfc_get_options *flags;
    const char *path; /* of the directory, which is made when there is something for it */
    int root;
    size_t prefix_len;
    struct tally *tally;
    struct progress *bar;
    struct workers *workers;
    uint64_t total_bytes;
    uint64_t total_objects;
};

struct get_item {
    char *key;
    uint64_t size;
};

static void get_item_fetch(struct get_many *m, const struct get_item *item)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    const struct object_name from = {(char *)m->bucket, item->key};
    const char *below = item->key + m->prefix_len;
    struct progress_part part = {.all = m->bar};
    _cleanup_(landing_done)
    struct landing l = LANDING_INIT;
    if (name_check_local(below, &e) != 0 || landing_open_below(&l, m->root, below, &e) != 0)
        tally_fail_common(m->tally, item->key, &e);
    else if (fetch(m->ctl, &from, &l, m->flags, &part, NULL, &err) != DFC_OK)
        tally_fail(m->tally, item->key, &err);
    else
        tally_done(m->tally, item->size);
}

static void get_item_run(void *context, void *arg)
{
    struct get_many *m = context;
    struct get_item *item = arg;
    if (tally_hopeless(m->tally))
        tally_skip(m->tally);
    else
        get_item_fetch(m, item);
    progress_add(m->bar, 0, 1);
    free(item->key);
    free(item);
}

static int open_root(const char *path, int *root, struct error *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return error_errno(err, errno, "make directory '%s'", path);
    *root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *root >= 0 ? 0 : error_errno(err, errno, "open directory '%s'", path);
}

/* A result of the library; or DFC_LOCAL with *local. */
static int give_all(struct get_many *m, struct dfc_list *list, struct dfc_error *err,
                    struct error *local)
{
    const struct dfc_entry *entry;
    int rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0 && !interrupted()) {
        if (m->glob != NULL && !glob_matches(m->glob, entry->name))
            continue;
        if (m->root < 0 && open_root(m->path, &m->root, local) != 0)
            return DFC_LOCAL;
        struct get_item *item = xcalloc(1, sizeof *item);
        *item = (struct get_item){.key = xstrdup(entry->name), .size = entry->size};
        m->total_bytes += entry->size;
        m->total_objects++;
        progress_total(m->bar, m->total_bytes, m->total_objects);
        workers_give(m->workers, item);
    }
    return rc < 0 ? rc : DFC_OK;
}

static int get_listed(struct get_many *m, struct dfc_list *list, const struct args *args,
                      const char *what)
{
    struct dfc_error err;
    struct error local = ERROR_INIT;
    m->bar = progress_new(m->ctl, "get");
    m->tally = tally_new(m->ctl, "get", m->bar);
    m->workers = workers_start(parallel_of(args), get_item_run, m);
    int rc = give_all(m, list, &err, &local);
    workers_finish(m->workers);
    if (local.code != 0)
        tally_fail_common(m->tally, m->path, &local);
    else if (rc != DFC_OK)
        tally_fail(m->tally, what, &err);
    else if (m->total_objects == 0 && !args->given[F_allow_empty] && !interrupted())
        tally_nothing(m->tally, what,
                      m->glob != NULL ? "no object matches"
                                      : "no object has a name that begins so");
    else if (m->glob != NULL)
        tally_matched(m->tally, what, m->total_objects);
    progress_free(m->bar);
    return tally_end(m->tally);
}

/* What is listed, and how much of it is not a part of the files' names: a pattern leaves out
 * directories that it names in full. */
static size_t list_prefix(const struct object_name *from, bool is_glob, struct buf *prefix)
{
    _cleanup_free_ char *before = is_glob ? glob_prefix(from->key) : glob_name(from->key);
    if (!is_glob && before[0] != '\0')
        name_join(prefix, before, "");
    else
        buf_puts(prefix, before);
    return is_glob ? (size_t)(name_base(before) - before) : prefix->len;
}

static int get_all(struct ctl *ctl, const struct args *args, const struct object_name *from,
                   const struct dfc_get_options *flags)
{
    struct dfc_error err;
    const char *path = args->words[1] != NULL ? args->words[1] : ".";
    _cleanup_(buf_done)
    struct buf prefix = BUF_INIT;
    _cleanup_free_ char *what = xprintf("%s/%s", from->bucket, from->key);
    struct dfc_list *list;
    bool is_glob = glob_is(from->key);
    size_t prefix_len = list_prefix(from, is_glob, &prefix);
    const struct dfc_list_options options = {.prefix = buf_str(&prefix)};
    if (strcmp(path, "-") == 0)
        return ctl_usage(ctl, "'%s' is many objects: they need a directory", what);
    if (dfc_list_open(ctl->client, from->bucket, &options, &list, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    struct get_many m = {.ctl = ctl,
                         .glob = is_glob ? from->key : NULL,
                         .bucket = from->bucket,
                         .flags = flags,
                         .path = path,
                         .root = -1,
                         .prefix_len = prefix_len};
    int code = get_listed(&m, list, args, what);
    dfc_list_close(list);
    if (m.root >= 0)
        close(m.root);
    return code;
}

int object_get(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name from = {0};
    if (object_name_parse(args->words[0], &from, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    size_t len = strlen(from.key);
    bool is_glob = glob_is(from.key);
    bool all = is_glob || args->given[F_recursive] || len == 0 || from.key[len - 1] == '/';
    struct dfc_get_options flags;
    int code = get_flags_read(ctl, args, &flags);
    if (code != EXIT_OK)
        return code;
    if (is_glob && args->given[F_recursive])
        return ctl_usage(ctl, PATTERN_NOT_RECURSIVE, args->words[0]);
    code = ambiguous_check(ctl, args, args->words[0], &from);
    if (code != EXIT_OK)
        return code;
    if (!all)
        return get_named(ctl, &from, args->words[1], &flags);
    if (args->given[F_offset] || args->given[F_length] || args->given[F_if_match])
        return ctl_usage(ctl, "--offset, --length and --if-match are for one object");
    return get_all(ctl, args, &from, &flags);
}
