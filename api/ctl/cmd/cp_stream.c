/* object cp to another key: through this program, as jobs keep the names. */
#include "api/ctl/commands.h"

#include <unistd.h>

#include "api/ctl/copy_object.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "api/ctl/tally.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/mem.h"

static int copy_one(struct ctl *ctl, const struct object_name *from, const struct object_name *to)
{
    struct dfc_error err;
    char size[24];
    uint64_t bytes;
    struct progress *bar = progress_new(ctl, "cp");
    struct progress_part part = {.all = bar, .alone = true};
    int rc = copy_object(ctl->client, from, to, progress_part_moved, &part, &bytes, &err);
    progress_free(bar);
    if (rc != DFC_OK) {
        _cleanup_free_ char *what = xprintf("cp '%s/%s'", from->bucket, from->key);
        return ctl_fail(ctl, &err, what);
    }
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s, s:I}", "bucket", to->bucket, "name", to->key,
                                      "size", (json_int_t)bytes));
    else
        ctl_say(ctl, "%s/%s  %s", to->bucket, to->key, ctl_size(ctl, bytes, size));
    return EXIT_OK;
}

/* ---- everything below a prefix ---- */

struct copying {
    struct ctl *ctl;
    const struct object_name *from, *to; /* prefixes */
    struct tally *tally;
    struct progress *bar;
};

static void copy_item(struct copying *c, char *key)
{
    struct dfc_error err;
    uint64_t bytes;
    struct progress_part part = {.all = c->bar};
    _cleanup_free_ char *new_key = xprintf("%s%s", c->to->key, key + strlen(c->from->key));
    const struct object_name from = {c->from->bucket, key}, to = {c->to->bucket, new_key};
    if (copy_object(c->ctl->client, &from, &to, progress_part_moved, &part, &bytes, &err) == DFC_OK)
        tally_done(c->tally, bytes);
    else
        tally_fail(c->tally, key, &err);
}

static void item_run(void *context, void *arg)
{
    struct copying *c = context;
    _cleanup_free_ char *key = arg;
    if (tally_hopeless(c->tally))
        tally_skip(c->tally);
    else
        copy_item(c, key);
    progress_add(c->bar, 0, 1);
}

static uint64_t give_all(struct copying *c, struct dfc_list *list, struct workers *workers)
{
    struct dfc_error err;
    const struct dfc_entry *entry;
    uint64_t objects = 0, bytes = 0;
    int rc = 0;
    while (!interrupted() && (rc = dfc_list_next(list, &entry, &err)) > 0) {
        bytes += entry->size;
        progress_total(c->bar, bytes, ++objects);
        workers_give(workers, xstrdup(entry->name));
    }
    if (rc < 0)
        tally_fail(c->tally, c->from->bucket, &err);
    return objects;
}

static int copy_below(struct ctl *ctl, const struct args *args, const struct object_name *from,
                      const struct object_name *to)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_list_options options = {.prefix = from->key};
    struct copying c = {.ctl = ctl, .from = from, .to = to};
    if (dfc_list_open(ctl->client, from->bucket, &options, &list, &err) != DFC_OK)
        return ctl_fail(ctl, &err, args->words[0]);
    c.bar = progress_new(ctl, "cp");
    c.tally = tally_new(ctl, "cp", c.bar);
    struct workers *workers = workers_start(parallel_of(args), item_run, &c);
    uint64_t objects = give_all(&c, list, workers);
    workers_finish(workers);
    dfc_list_close(list);
    if (objects == 0 && tally_count(c.tally) == 0 && !args->given[F_allow_empty] && !interrupted())
        tally_nothing(c.tally, args->words[0], "no object has a name that begins so");
    progress_free(c.bar);
    return tally_end(c.tally);
}

/* ---- names ---- */

/* A job's flags, of a copy that is none. */
static int refuse_flags(struct ctl *ctl, const struct args *args)
{
    static const enum flag_id of_jobs[] = {F_template, F_prefix,      F_internal, F_list,
                                           F_prepend,  F_description, F_timeout};
    for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs; i++) {
        if (args->given[of_jobs[i]])
            return ctl_usage(ctl,
                             "--%s is of the job that copies to a BUCKET; '%s' is a key, or the "
                             "copy is --recursive",
                             flag_table[of_jobs[i]].name, args->words[1]);
    }
    return EXIT_OK;
}

static int copy_tree(struct ctl *ctl, const struct args *args, struct object_name *from,
                     struct object_name *to)
{
    object_name_make_prefix(from);
    object_name_make_prefix(to);
    if (names_overlap(from, to))
        return ctl_usage(ctl, "'%s' and '%s' have names in common: a copy would meet its source",
                         args->words[0], args->words[1]);
    return copy_below(ctl, args, from, to);
}

int object_cp_of_file(struct ctl *ctl, const char *path)
{
    return ctl_usage(ctl, "'%s' is a file here, and 'cp' copies objects: 'put' stores files", path);
}

int object_cp_stream(struct ctl *ctl, const struct args *args, struct object_name *from,
                     struct object_name *to)
{
    int code = refuse_flags(ctl, args);
    if (code != EXIT_OK)
        return code;
    if (glob_is(from->key))
        return ctl_usage(ctl, "'%s' is a pattern: its copies need a BUCKET, not '%s'",
                         args->words[0], args->words[1]);
    char *plain = glob_name(from->key);
    free(from->key);
    from->key = plain;
    if (args->given[F_recursive])
        return copy_tree(ctl, args, from, to);
    if (from->key[0] == '\0' && access(args->words[0], F_OK) == 0)
        return object_cp_of_file(ctl, args->words[0]);
    if (from->key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: --recursive copies all of a bucket",
                         args->words[0]);
    if (to->key[strlen(to->key) - 1] == '/') {
        char *key = xprintf("%s%s", to->key, name_base(from->key));
        free(to->key);
        to->key = key;
    }
    if (strcmp(from->bucket, to->bucket) == 0 && strcmp(from->key, to->key) == 0)
        return ctl_usage(ctl, "'%s/%s' would be copied onto itself", to->bucket, to->key);
    return copy_one(ctl, from, to);
}
