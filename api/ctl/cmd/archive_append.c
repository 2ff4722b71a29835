/* archive append: local files become further members of a tar or a zip, at the target.
 *
 * Each try names the version of the archive that it adds to.  Where another client is faster, the
 * next try names the newer version.  A name that the archive has ends the tries. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/archive/bundle.h"
#include "api/ctl/archive/gathered.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

#define TRIES 16

struct addition {
    struct ctl *ctl;
    const char *name; /* as it was given */
    struct object_name to;
    bool overwrite;
    struct gathered files;
    struct progress *bar;
    bool doubtful; /* an earlier try may have stored the members */
};

/* --- one try ---------------------------------------------------------------------------------- */

static int put(const struct addition *a, const char *etag, struct dfc_object_info **info,
               struct dfc_error *err)
{
    _cleanup_(bundle_freep)
    struct bundle *bundle =
        bundle_new(format_of_extension(".tar"), a->files.plan.files, a->files.plan.count);
    const struct dfc_source source = bundle_source(bundle);
    struct progress_part part = {.all = a->bar};
    const struct dfc_append_options options = {.if_match = etag,
                                               .overwrite = a->overwrite,
                                               .progress = progress_part_moved,
                                               .progress_context = &part};
    int rc =
        dfc_append_source(a->ctl->client, a->to.bucket, a->to.key, &source, &options, info, err);
    if (rc != DFC_OK)
        bundle_failure(bundle, err);
    return rc;
}

static int try_once(const struct addition *a, uint64_t *size, struct dfc_error *err)
{
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *before = NULL;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = dfc_head(a->ctl->client, a->to.bucket, a->to.key, &before, err);
    if (rc == DFC_OK)
        rc = put(a, before->etag, &info, err);
    if (rc == DFC_OK)
        *size = info->size;
    return rc;
}

/* With `overwrite`, a member that an earlier try has stored would be stored again. */
static bool another_try_helps(struct addition *a, const struct dfc_error *err)
{
    bool in_doubt = strcmp(err->code, error_name(E_IN_DOUBT)) == 0;
    a->doubtful |= in_doubt;
    return !interrupted() && (err->result == DFC_PRECONDITION || (in_doubt && !a->overwrite));
}

static void explain(const struct addition *a, struct dfc_error *err)
{
    if (err->result == DFC_PRECONDITION)
        snprintf(err->message, sizeof err->message,
                 "other clients change the archive again and again, and nothing was stored: repeat "
                 "the command");
    else if (a->doubtful)
        snprintf(err->message, sizeof err->message,
                 "the connection broke, and it is not known whether the members were stored: "
                 "dfcctl archive ls shows what the archive has");
}

static void append(struct addition *a)
{
    struct dfc_error err = {.result = DFC_OK};
    uint64_t size = 0;
    int rc = DFC_PRECONDITION;
    progress_total(a->bar, a->files.bytes, 1);
    for (int i = 0; i < TRIES && rc != DFC_OK; i++) {
        rc = try_once(a, &size, &err);
        if (rc != DFC_OK && !another_try_helps(a, &err))
            break;
    }
    if (rc == DFC_OK) {
        tally_done(a->files.tally, size);
        return;
    }
    explain(a, &err);
    tally_fail(a->files.tally, a->name, &err);
}

/* --- what is to be added ---------------------------------------------------------------------- */

static int check_bounds(const struct gathered *g, struct error *err)
{
    uint64_t names = 0;
    for (size_t i = 0; i < g->plan.count; i++)
        names += strlen(g->plan.files[i].member);
    if (g->plan.count <= DFC_APPEND_MEMBERS_MAX && names <= DFC_APPEND_NAMES_MAX)
        return 0;
    return error_set(err, E_ARCHIVE_LIMIT,
                     "%zu files with %llu bytes of names: one append takes at most %d files and "
                     "%u bytes of names; append them in parts",
                     g->plan.count, (unsigned long long)names, DFC_APPEND_MEMBERS_MAX,
                     DFC_APPEND_NAMES_MAX);
}

static void append_checked(struct addition *a)
{
    struct error e = ERROR_INIT;
    if (check_bounds(&a->files, &e) != 0)
        tally_fail_common(a->files.tally, a->name, &e);
    else
        append(a);
}

int archive_append(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct addition a = {.ctl = ctl, .name = args->words[0], .overwrite = args->given[F_overwrite]};
    _cleanup_(object_name_done)
    struct object_name to = {0};
    if (object_name_parse(a.name, &to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (to.key[0] == '\0' || to.key[strlen(to.key) - 1] == '/')
        return ctl_usage(ctl, "'%s' names no object: it must be BUCKET/KEY", a.name);
    a.to = to;
    a.bar = progress_new(ctl, "append");
    a.files.tally = tally_new(ctl, "append", a.bar);
    for (size_t i = 1; i < args->word_count && !interrupted(); i++)
        gathered_add(&a.files, args->words[i]);
    gathered_end(&a.files);
    if (tally_count(a.files.tally) > 0)
        ctl_remark(ctl, "nothing was stored: every file must be in the archive");
    else if (a.files.plan.count == 0)
        tally_nothing(a.files.tally, args->words[1], "there is no file in it");
    else
        append_checked(&a);
    progress_free(a.bar);
    gathered_done(&a.files);
    return tally_end(a.files.tally);
}
