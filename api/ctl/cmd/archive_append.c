/* archive append: local files as further members of a plain tar. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/archive/appended.h"
#include "api/ctl/archive/gathered.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* A PUT with a condition is sent once: with a 412, nothing of this command is in the archive. */
static void explain_race(struct dfc_error *err)
{
    if (err->result == DFC_PRECONDITION)
        snprintf(err->message, sizeof err->message,
                 "the archive was changed meanwhile, and nothing was stored: repeat the command");
}

static void put(struct ctl *ctl, struct gathered *files, const struct object_name *to,
                const char *name, struct appended *a, struct progress *bar)
{
    struct dfc_error err = {.result = DFC_LOCAL};
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    struct progress_part part = {.all = bar};
    const struct dfc_object_info *before = object_reader_info(a->reader);
    const struct dfc_source source = appended_source(a);
    const struct dfc_put_options options = {.content_type = before->content_type,
                                            .meta = before->meta,
                                            .meta_count = before->meta_count,
                                            .if_match = before->etag,
                                            .progress = progress_part_moved,
                                            .progress_context = &part};
    progress_total(bar, a->end + files->bytes, 1);
    if (source.rewind(source.context) == 0 &&
        dfc_put_source(ctl->client, to->bucket, to->key, &source, &options, &info, &err) ==
            DFC_OK) {
        tally_done(files->tally, info->size);
        return;
    }
    appended_failure(a, &err);
    explain_race(&err);
    tally_fail(files->tally, name, &err);
}

static void append(struct ctl *ctl, struct gathered *files, const struct object_name *to,
                   const char *name, struct progress *bar)
{
    struct error e = ERROR_INIT;
    struct dfc_error err = {.result = DFC_OK};
    _cleanup_(object_reader_closep)
    struct object_reader *reader = NULL;
    _cleanup_(bundle_freep)
    struct bundle *bundle =
        bundle_new(format_of_extension(".tar"), files->plan.files, files->plan.count);
    if (object_reader_open(ctl->client, to->bucket, to->key, &reader, &err) != DFC_OK) {
        tally_fail(files->tally, name, &err);
        return;
    }
    struct appended a = {.reader = reader, .bundle = bundle};
    if (appended_find_end(reader, name, &a.end, &e) == 0) {
        put(ctl, files, to, name, &a, bar);
        return;
    }
    object_reader_failure(reader, &err);
    explain_race(&err);
    error_wrap(&e, "only a plain tar can be appended to");
    if (err.result != DFC_OK)
        tally_fail(files->tally, name, &err);
    else
        tally_fail_common(files->tally, name, &e);
}

int archive_append(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name to = {0};
    const char *name = args->words[0];
    if (object_name_parse(name, &to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/')
        return ctl_usage(ctl, "'%s' names no object: it must be BUCKET/KEY", name);
    struct progress *bar = progress_new(ctl, "append");
    struct gathered files = {.tally = tally_new(ctl, "append", bar)};
    for (size_t i = 1; i < args->word_count && !interrupted(); i++)
        gathered_add(&files, args->words[i]);
    gathered_end(&files);
    if (tally_count(files.tally) > 0)
        ctl_remark(ctl, "nothing was stored: every file must be in the archive");
    else if (files.plan.count == 0)
        tally_nothing(files.tally, args->words[1], "there is no file in it");
    else
        append(ctl, &files, &to, name, bar);
    progress_free(bar);
    gathered_done(&files);
    return tally_end(files.tally);
}
