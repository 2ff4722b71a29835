/* archive create: local files and directories as one archive. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/archive/bundle.h"
#include "api/ctl/archive/gathered.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/put_flags.h"
#include "common/mem.h"
#include "sort/shard/member_writer.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

struct creation {
    struct ctl *ctl;
    const struct put_flags *flags;
    const struct shard_format_ops *format;
    struct gathered files;
    struct progress *bar;
};

static void put(struct creation *c, const struct object_name *to)
{
    struct dfc_error err;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct progress_part part = {.all = c->bar};
    struct dfc_put_options options = c->flags->options;
    _cleanup_(bundle_freep)
    struct bundle *bundle = bundle_new(c->format, c->files.plan.files, c->files.plan.count);
    const struct dfc_source source = bundle_source(bundle);
    if (options.content_type == NULL)
        options.content_type = c->format->content_type;
    options.progress = progress_part_moved;
    options.progress_context = &part;
    progress_total(c->bar, c->files.bytes, 1);
    if (dfc_put_source(c->ctl->client, to->bucket, to->key, &source, &options, &info, &err) ==
        DFC_OK) {
        tally_done(c->files.tally, info->size);
        return;
    }
    if (options.if_absent && err.result == DFC_PRECONDITION)
        snprintf(err.message, sizeof err.message, "the object exists already");
    bundle_failure(bundle, &err);
    tally_fail(c->files.tally, to->key, &err);
}

static int run(struct creation *c, const struct args *args, const struct object_name *to)
{
    c->bar = progress_new(c->ctl, "create");
    c->files.tally = tally_new(c->ctl, "create", c->bar);
    for (size_t i = 1; i < args->word_count && !interrupted(); i++)
        gathered_add(&c->files, args->words[i]);
    gathered_end(&c->files);
    if (tally_count(c->files.tally) > 0)
        ctl_remark(c->ctl, "nothing was stored: every file must be in the archive");
    else if (c->files.plan.count == 0 && !args->given[F_allow_empty])
        tally_nothing(c->files.tally, args->words[1], "there is no file in it");
    else
        put(c, to);
    progress_free(c->bar);
    return tally_end(c->files.tally);
}

int archive_create(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name to = {0};
    _cleanup_(put_flags_done)
    struct put_flags flags = {0};
    struct creation c = {.ctl = ctl, .flags = &flags};
    if (object_name_parse(args->words[0], &to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/')
        return ctl_usage(ctl, "'%s' names no object: it must be BUCKET/KEY", args->words[0]);
    if (member_writer_format(args->given[F_format] ? args->text[F_format] : NULL, to.key, &c.format,
                             &e) != 0)
        return ctl_usage(ctl, "%s", e.message);
    int code = put_flags_read(ctl, args, &flags);
    if (code == EXIT_OK)
        code = run(&c, args, &to);
    gathered_done(&c.files);
    return code;
}
