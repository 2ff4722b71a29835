/* object cp of a pattern: jobs take a prefix or a list of names, so that a pattern becomes one
 * of them. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/names/glob.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/job_wait.h"
#include "api/ctl/names/name_batch.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct copying {
    struct ctl *ctl;
    const struct args *args;
    const char *bucket;
    const char *pattern;
    json_t *value; /* of the request, but for the names */
};

static int fail(const struct copying *c, const struct dfc_error *err)
{
    _cleanup_free_ char *what = xprintf("cp '%s/%s'", c->bucket, c->pattern);
    return ctl_fail(c->ctl, err, what);
}

static int begin(const struct copying *c, const char *matched)
{
    struct dfc_error err;
    _cleanup_free_ char *text = json_text(c->value);
    _cleanup_free_ char *id = NULL;
    if (dfc_bucket_copy_objects(c->ctl->client, c->bucket, text, &id, &err) != DFC_OK)
        return fail(c, &err);
    ctl_remark(c->ctl, "dfcctl: %s '%s'; job %s copies them%s%s", matched, c->pattern, id,
               c->args->given[F_wait] ? "" : ", follow it with: dfcctl job wait ",
               c->args->given[F_wait] ? "" : id);
    return job_started(c->ctl, c->args, id);
}

static int next_match(void *context, const char **name, struct dfc_error *err)
{
    const struct dfc_entry *entry;
    int rc = glob_next(context, &entry, err);
    if (rc > 0)
        *name = entry->name;
    return rc;
}

/* Several jobs, one after the other: the next names are asked for when a job has ended.  Copies in
 * the same bucket might match, too, and there would be no end. */
static bool may_be_several(const struct copying *c)
{
    return c->args->given[F_wait] && !c->ctl->json && strcmp(c->bucket, c->args->words[1]) != 0;
}

static int copy_batch(const struct copying *c, json_t *names)
{
    _cleanup_free_ char *matched = xprintf("%zu objects match", json_array_size(names));
    json_object_set(c->value, "list", names);
    return begin(c, matched);
}

static int copy_listed(const struct copying *c, struct glob_list *g)
{
    _cleanup_(name_batch_done)
    struct name_batch batch = NAME_BATCH_INIT;
    int more = 1, code = EXIT_OK;
    while (more > 0 && code == EXIT_OK && !interrupted()) {
        struct dfc_error err;
        more = name_batch_read(&batch, next_match, g, &err);
        if (more < 0)
            return fail(c, &err);
        if (more > 0 && !may_be_several(c))
            return ctl_usage(c->ctl,
                             "the objects that match '%s' are too many for one job (%d names, %d "
                             "KiB of names); several jobs copy them, one after another, only with "
                             "--wait, without -o json, and to another bucket",
                             c->pattern, NAME_BATCH_NAMES, NAME_BATCH_BYTES >> 10);
        if (json_array_size(batch.names) > 0)
            code = copy_batch(c, batch.names);
    }
    return interrupted() ? EXIT_INTERRUPTED : code;
}

/* One name tells whether there is any: the job would say so when the command has ended. */
static int copy_prefix(const struct copying *c, struct glob_list *g)
{
    struct dfc_error err;
    const struct dfc_entry *entry;
    _cleanup_free_ char *prefix = glob_prefix(c->pattern);
    int rc = glob_next(g, &entry, &err);
    if (rc < 0)
        return fail(c, &err);
    json_object_set_new(c->value, "prefix", json_string(prefix));
    return rc > 0 ? begin(c, "the names of all objects that begin so match") : EXIT_OK;
}

static int end(const struct copying *c, const struct glob_list *g)
{
    struct error e = ERROR_INIT;
    if (g->matched > 0 || interrupted())
        return EXIT_OK;
    if (c->args->given[F_allow_empty]) {
        if (c->ctl->json)
            ctl_print_json(c->ctl, json_pack("{s:n}", "id"));
        ctl_remark(c->ctl, "dfcctl: no object matches '%s'; no job was started", c->pattern);
        return EXIT_OK;
    }
    error_set(&e, E_NOTHING_MATCHED, "no object matches '%s' (--allow-empty accepts that)",
              c->pattern);
    return ctl_fail_common(c->ctl, &e, EXIT_NOTHING);
}

int object_cp_pattern(struct ctl *ctl, const struct args *args, const char *bucket,
                      const char *pattern, json_t *value)
{
    struct dfc_error err;
    struct glob_list g;
    const struct copying c = {
        .ctl = ctl, .args = args, .bucket = bucket, .pattern = pattern, .value = value};
    if (glob_open(ctl->client, bucket, pattern, &g, &err) != DFC_OK)
        return fail(&c, &err);
    int code = glob_only_prefix(pattern) ? copy_prefix(&c, &g) : copy_listed(&c, &g);
    if (code == EXIT_OK)
        code = end(&c, &g);
    glob_close(&g);
    return code;
}
