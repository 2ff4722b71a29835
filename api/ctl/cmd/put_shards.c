/* object put --shards: a folder as a WebDataset. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/archive/bundle.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "api/ctl/put_flags.h"
#include "api/ctl/archive/local_file.h"
#include "api/ctl/archive/old_shards.h"
#include "api/ctl/archive/shard_plan.h"
#include "api/ctl/tally.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

struct put_shards {
    struct ctl *ctl;
    const struct put_flags *flags;
    const struct shard_format_ops *format;
    const char *bucket;
    char *stem; /* of the shards' names */
    const char *extension;
    bool by_dir;
    struct shard_plan plan;
    uint64_t bytes;
    struct tally *tally;
    struct progress *bar;
};

/* ---- what there is ---- */

static bool file_found(void *context, const char *path, const char *below, uint64_t size)
{
    struct put_shards *p = context;
    struct shard_file *f = NULL;
    struct error e;
    int rc = shard_plan_add(&p->plan, path, below, p->by_dir, &f, &e);
    if (rc == 0)
        rc = local_file_note(f, &e);
    if (rc != 0)
        tally_fail_common(p->tally, path, &e);
    p->bytes += size;
    return !interrupted();
}

static void problem(void *context, const char *path, const struct error *err)
{
    struct put_shards *p = context;
    tally_fail_common(p->tally, path, err);
}

/* ---- one shard ---- */

static void put_shard(struct put_shards *p, size_t shard, const char *key)
{
    struct dfc_error err;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct progress_part part = {.all = p->bar};
    struct dfc_put_options options = p->flags->options;
    size_t first = shard > 0 ? p->plan.ends[shard - 1] : 0;
    _cleanup_(bundle_freep)
    struct bundle *bundle =
        bundle_new(p->format, p->plan.files + first, p->plan.ends[shard] - first);
    const struct dfc_source source = bundle_source(bundle);
    if (options.content_type == NULL)
        options.content_type = p->format->content_type;
    options.progress = progress_part_moved;
    options.progress_context = &part;
    int rc = dfc_put_source(p->ctl->client, p->bucket, key, &source, &options, &info, &err);
    if (rc == DFC_OK) {
        tally_done(p->tally, info->size);
    } else if (options.if_absent && err.result == DFC_PRECONDITION) {
        tally_kept(p->tally);
    } else {
        bundle_failure(bundle, &err);
        tally_fail(p->tally, key, &err);
    }
}

static void put_shard_run(void *context, void *item)
{
    struct put_shards *p = context;
    size_t *shard = item;
    _cleanup_free_ char *key = xprintf("%s%06zu%s", p->stem, *shard, p->extension);
    if (tally_hopeless(p->tally))
        tally_skip(p->tally);
    else
        put_shard(p, *shard, key);
    progress_add(p->bar, 0, 1);
    free(shard);
}

static void put_all(struct put_shards *p, unsigned threads)
{
    struct workers *workers = workers_start(threads, put_shard_run, p);
    progress_total(p->bar, p->bytes, p->plan.shards);
    for (size_t i = 0; i < p->plan.shards && !interrupted(); i++) {
        size_t *shard = xmalloc(sizeof *shard);
        *shard = i;
        workers_give(workers, shard);
    }
    workers_finish(workers);
}

/* ---- shards of an earlier run ---- */

enum { OLD_NAMED = 20 }; /* names of such shards that are printed */

struct old_found {
    struct put_shards *p;
    uint64_t count;
};

static struct old_shards old_of(const struct put_shards *p)
{
    return (struct old_shards){
        .bucket = p->bucket, .stem = p->stem, .extension = p->extension, .from = p->plan.shards};
}

static bool old_note(void *context, const char *name)
{
    struct old_found *f = context;
    if (f->count < OLD_NAMED)
        ctl_remark(f->p->ctl, "left by an earlier put: '%s/%s'", f->p->bucket, name);
    f->count++;
    return !interrupted();
}

/* Before anything is stored: false where that must not be. */
static bool old_check(struct put_shards *p)
{
    struct dfc_error why;
    struct error e = ERROR_INIT;
    struct old_found found = {.p = p};
    const struct old_shards old = old_of(p);
    _cleanup_free_ char *name = xprintf("%s/%s", p->bucket, p->stem);
    int rc = old_shards_each(p->ctl->client, &old, old_note, &found, &why);
    if (rc == 0 && found.count == 0)
        return true;
    if (rc < 0) {
        tally_fail(p->tally, name, &why);
        return false;
    }
    error_set(&e, E_OBJECT_EXISTS,
              "%llu shards of an earlier put would be left, and the folder makes %zu: nothing was "
              "stored (--delete removes them after the new ones are stored; or give another KEY)",
              (unsigned long long)found.count, p->plan.shards);
    tally_fail_common(p->tally, name, &e);
    return false;
}

static bool old_remove(void *context, const char *name)
{
    struct put_shards *p = context;
    struct dfc_error err;
    if (dfc_delete(p->ctl->client, p->bucket, name, &err) == DFC_OK)
        tally_removed(p->tally);
    else
        tally_fail(p->tally, name, &err);
    return !interrupted() && !tally_hopeless(p->tally);
}

/* Of what failed nothing is removed: the earlier set may be the only whole one. */
static void old_remove_all(struct put_shards *p)
{
    struct dfc_error err;
    const struct old_shards old = old_of(p);
    if (interrupted() || !tally_is_whole(p->tally))
        ctl_remark(p->ctl, "shards of an earlier put were left, since not all was stored");
    else if (old_shards_each(p->ctl->client, &old, old_remove, p, &err) < 0)
        tally_fail(p->tally, p->stem, &err);
}

/* ---- the command ---- */

/* "train/" and the folder "cats" make "train/cats-000000.tar"; so does "." within cats. */
static char *stem_of(const char *key, const char *source)
{
    _cleanup_(buf_done)
    struct buf stem = BUF_INIT;
    buf_puts(&stem, key);
    if (key[0] == '\0' || key[strlen(key) - 1] == '/') {
        _cleanup_free_ char *plain = realpath(source, NULL);
        buf_puts(&stem,
                 name_base(plain != NULL ? plain : source)); /* what has gone is found later */
    }
    buf_putc(&stem, '-');
    return buf_steal(&stem);
}

static void store(struct put_shards *p, const struct args *args)
{
    if (!args->given[F_delete] && !old_check(p))
        return;
    put_all(p, parallel_of(args));
    if (args->given[F_delete])
        old_remove_all(p);
}

static int confirm(const struct put_shards *p, const struct args *args)
{
    if (!args->given[F_delete])
        return EXIT_OK;
    _cleanup_free_ char *question =
        xprintf("Remove shards '%s/%s…%s' that the folder no longer makes?", p->bucket, p->stem,
                p->extension);
    return ctl_confirm(p->ctl, args, question);
}

static int run(struct put_shards *p, const struct args *args)
{
    const struct walk_visitor visitor = {file_found, problem, p};
    const char *source = args->words[0];
    p->bar = progress_new(p->ctl, "put");
    p->tally = tally_new(p->ctl, "put", p->bar);
    walk_directory(source, &visitor);
    bool refused = tally_count(p->tally) > 0;
    shard_plan_cut(&p->plan, args->number[F_shards]);
    if (refused)
        ctl_remark(p->ctl, "nothing was stored: every file of '%s' must be in a shard", source);
    else if (p->plan.count == 0 && !args->given[F_allow_empty])
        tally_nothing(p->tally, source, "there is no file in it");
    else
        store(p, args);
    progress_free(p->bar);
    return tally_end(p->tally);
}

int object_put_shards(struct ctl *ctl, const struct args *args, const struct object_name *to,
                      const struct put_flags *flags)
{
    const char *format = args->given[F_format] ? args->text[F_format] : "tar";
    _cleanup_free_ char *extension = xprintf(".%s", format);
    struct put_shards p = {
        .ctl = ctl,
        .flags = flags,
        .format = format_of_extension(extension),
        .bucket = to->bucket,
        .extension = extension,
        .by_dir = args->given[F_key_by] && strcmp(args->text[F_key_by], "dir") == 0,
    };
    if (args->word_count != 2 || !walk_is_directory(args->words[0]))
        return ctl_usage(ctl, "--shards takes one directory, and BUCKET or BUCKET/NAME");
    if (args->given[F_delete] && flags->options.if_absent)
        return ctl_usage(ctl, "--delete does not go with --if-absent: shards that exist may be "
                              "others than those of the folder; leave out one of them");
    if (args->number[F_shards] == 0)
        return ctl_usage(ctl, "--shards: the size must be at least 1 byte, as 256MiB");
    p.stem = stem_of(to->key, args->words[0]);
    int code = confirm(&p, args);
    if (code == EXIT_OK)
        code = run(&p, args);
    shard_plan_done(&p.plan);
    free(p.stem);
    return code;
}
