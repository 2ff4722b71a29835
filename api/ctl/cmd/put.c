/* object put: one file, several, whole directories, standard input. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "api/ctl/put_flags.h"
#include "api/ctl/tally.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/upload/upload.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/utf8.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* ---- one object ---- */

/* Standard input that an interrupt ends; dfc_put_fd() would go on waiting for it. */
static ptrdiff_t read_stdin(void *context, void *to, size_t room)
{
    (void)context;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, to, room);
        if (n >= 0 || errno != EINTR || interrupted())
            return n;
    }
}

static int store(const struct upload_order *o, uint64_t *resumed, struct dfc_object_info **info,
                 struct dfc_error *err)
{
    static const struct dfc_source piped = {.read = read_stdin, .size = -1};
    struct stat st;
    if (strcmp(o->path, "-") != 0)
        return upload_file(o, resumed, info, err);
    struct dfc_put_options options = *o->options;
    options.progress = progress_part_moved;
    options.progress_context = o->progress;
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
        return dfc_put_fd(o->client, o->bucket, o->key, STDIN_FILENO, &options, info, err);
    return dfc_put_source(o->client, o->bucket, o->key, &piped, &options, info, err);
}

static void print_json(struct ctl *ctl, const struct upload_order *o,
                       const struct dfc_object_info *info, uint64_t resumed)
{
    ctl_print_json(ctl,
                   json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:{s:s, s:s}}", "bucket", o->bucket,
                             "name", o->key, "size", (json_int_t)info->size, "resumed",
                             (json_int_t)resumed, "version", info->version, "etag", info->etag,
                             "checksum", "type", info->checksum_type, "value", info->checksum));
}

static void print_stored(struct ctl *ctl, const struct upload_order *o,
                         const struct dfc_object_info *info, uint64_t resumed)
{
    char size[24], had[24];
    if (ctl->json)
        print_json(ctl, o, info, resumed);
    else if (resumed > 0)
        ctl_say(ctl, "%s/%s  %s, %s of them sent by an earlier run", o->bucket, o->key,
                ctl_size(ctl, info->size, size), ctl_size(ctl, resumed, had));
    else
        ctl_say(ctl, "%s/%s  %s", o->bucket, o->key, ctl_size(ctl, info->size, size));
}

static int put_one(struct ctl *ctl, const struct args *args, const struct object_name *to,
                   const struct put_flags *f)
{
    const char *source = args->words[0];
    uint64_t resumed = 0;
    struct dfc_error err;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    _cleanup_(buf_done)
    struct buf key = BUF_INIT;
    buf_puts(&key, to->key);
    if (key.len == 0 || key.data[key.len - 1] == '/')
        buf_puts(&key, name_base(source));
    struct progress *bar = progress_new(ctl, "put");
    struct progress_part part = {.all = bar, .alone = true};
    const struct upload_order order = {.client = ctl->client,
                                       .path = source,
                                       .bucket = to->bucket,
                                       .key = buf_str(&key),
                                       .options = &f->options,
                                       .progress = &part,
                                       .part_size = f->part_size,
                                       .parallel = parallel_of(args)};
    int rc = store(&order, &resumed, &info, &err);
    progress_free(bar);
    if (rc == DFC_OK) {
        print_stored(ctl, &order, info, resumed);
        return EXIT_OK;
    }
    _cleanup_free_ char *what = xprintf("put '%s/%s'", to->bucket, order.key);
    if (f->options.if_absent && err.result == DFC_PRECONDITION)
        snprintf(err.message, sizeof err.message, "the object exists already");
    return ctl_fail(ctl, &err, what);
}

/* ---- many ---- */

struct put_many {
    struct ctl *ctl;
    const struct put_flags *flags;
    const struct object_name *to;
    const char *prefix; /* of the directory that is walked */
    struct tally *tally;
    struct progress *bar;
    struct workers *workers;
    uint64_t total_bytes;
    uint64_t total_files;
};

struct put_item {
    char *path;
    char *key;
};

static void put_item_run(void *context, void *arg)
{
    struct put_many *m = context;
    struct put_item *item = arg;
    uint64_t resumed;
    struct dfc_error err;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct progress_part part = {.all = m->bar};
    const struct upload_order order = {.client = m->ctl->client,
                                       .path = item->path,
                                       .bucket = m->to->bucket,
                                       .key = item->key,
                                       .options = &m->flags->options,
                                       .progress = &part,
                                       .part_size = m->flags->part_size,
                                       .parallel = 1};
    if (tally_hopeless(m->tally))
        tally_skip(m->tally);
    else if (upload_file(&order, &resumed, &info, &err) == DFC_OK)
        tally_done(m->tally, info->size);
    else if (m->flags->options.if_absent && err.result == DFC_PRECONDITION)
        tally_kept(m->tally);
    else
        tally_fail(m->tally, item->path, &err);
    progress_add(m->bar, 0, 1);
    free(item->path);
    free(item->key);
    free(item);
}

static bool put_file_found(void *context, const char *path, const char *below, uint64_t size)
{
    struct put_many *m = context;
    struct error e;
    _cleanup_(buf_done)
    struct buf key = BUF_INIT;
    name_join(&key, m->prefix, below);
    if (!utf8_valid(key.data, key.len)) {
        error_set(&e, E_NAME, "the name is not UTF-8");
        tally_fail_common(m->tally, path, &e);
        return true;
    }
    struct put_item *item = xcalloc(1, sizeof *item);
    *item = (struct put_item){.path = xstrdup(path), .key = buf_steal(&key)};
    m->total_bytes += size;
    m->total_files++;
    progress_total(m->bar, m->total_bytes, m->total_files);
    workers_give(m->workers, item);
    return !interrupted();
}

static void put_problem(void *context, const char *path, const struct error *err)
{
    struct put_many *m = context;
    tally_fail_common(m->tally, path, err);
}

static void put_source_found(struct put_many *m, const char *source)
{
    const struct walk_visitor visitor = {put_file_found, put_problem, m};
    struct stat st;
    struct error e;
    m->prefix = m->to->key;
    if (stat(source, &st) != 0) {
        error_errno(&e, errno, "cannot be read");
        tally_fail_common(m->tally, source, &e);
    } else if (S_ISDIR(st.st_mode)) {
        walk_directory(source, &visitor);
    } else {
        put_file_found(m, source, name_base(source), (uint64_t)st.st_size);
    }
}

static int put_all(struct ctl *ctl, const struct args *args, size_t sources,
                   const struct object_name *to, const struct put_flags *f)
{
    struct put_many m = {.ctl = ctl, .flags = f, .to = to, .bar = progress_new(ctl, "put")};
    m.tally = tally_new(ctl, "put", m.bar);
    m.workers = workers_start(parallel_of(args), put_item_run, &m);
    for (size_t i = 0; i < sources && !interrupted(); i++)
        put_source_found(&m, args->words[i]);
    workers_finish(m.workers);
    if (tally_count(m.tally) == 0 && !args->given[F_allow_empty])
        tally_nothing(m.tally, args->words[0], "there is no file in it");
    progress_free(m.bar);
    return tally_end(m.tally);
}

int object_put(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    size_t sources = args->word_count - 1;
    const char *source = args->words[0];
    _cleanup_(object_name_done)
    struct object_name to = {0};
    _cleanup_(put_flags_done)
    struct put_flags f = {0};
    if (object_name_parse(args->words[sources], &to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    int code = put_flags_read(ctl, args, &f);
    if (code != EXIT_OK)
        return code;
    if (args->given[F_shards])
        return object_put_shards(ctl, args, &to, &f);
    if (args->given[F_format] || args->given[F_key_by] || args->given[F_delete])
        return ctl_usage(ctl, "--format, --key-by and --delete need --shards SIZE");
    bool one = sources == 1 && !walk_is_directory(source);
    bool prefix = to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/';
    for (size_t i = 0; i < sources; i++) {
        if (strcmp(args->words[i], "-") == 0 && (!one || prefix))
            return ctl_usage(ctl, "standard input (-) needs a KEY of its own");
    }
    if (sources > 1 && !prefix)
        return ctl_usage(ctl, "several sources need a BUCKET or a KEY that ends with /, not '%s'",
                         to.key);
    return one ? put_one(ctl, args, &to, &f) : put_all(ctl, args, sources, &to, &f);
}
