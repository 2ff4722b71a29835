/* object rm: objects by name, by a pattern, or everything below a prefix. */
#include "api/ctl/commands.h"

#include "api/ctl/names/ambiguous.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/parallel.h"
#include "api/ctl/tally.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/mem.h"

struct removal {
    struct ctl *ctl;
    struct tally *tally;
    struct progress *bar;
    struct workers *workers;
    bool internal; /* also names that lists leave out */
};

static void give(struct removal *r, const char *bucket, const char *key)
{
    struct object_name *item = xcalloc(1, sizeof *item);
    *item = (struct object_name){.bucket = xstrdup(bucket), .key = xstrdup(key)};
    workers_give(r->workers, item);
}

static void item_run(void *context, void *arg)
{
    struct removal *r = context;
    struct object_name *item = arg;
    struct dfc_error err;
    if (tally_hopeless(r->tally)) {
        tally_skip(r->tally);
    } else if (dfc_delete(r->ctl->client, item->bucket, item->key, &err) == DFC_OK) {
        tally_done(r->tally, 0);
    } else {
        _cleanup_free_ char *name = xprintf("%s/%s", item->bucket, item->key);
        tally_fail(r->tally, name, &err);
    }
    progress_add(r->bar, 0, 1);
    object_name_done(item);
    free(item);
}

/* Names come and go while they are listed: the list goes on by name, so that it misses none that
 * stays. */
static void give_below(struct removal *r, const struct object_name *below, bool may_be_empty)
{
    uint64_t given = 0;
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *entry;
    const struct dfc_list_options options = {.prefix = below->key, .internal = r->internal};
    int rc = dfc_list_open(r->ctl->client, below->bucket, &options, &list, &err);
    if (rc == DFC_OK) {
        for (; !interrupted() && (rc = dfc_list_next(list, &entry, &err)) > 0; given++)
            give(r, below->bucket, entry->name);
        dfc_list_close(list);
    }
    _cleanup_free_ char *name = xprintf("%s/%s", below->bucket, below->key);
    if (rc < 0)
        tally_fail(r->tally, name, &err);
    else if (given == 0 && !may_be_empty && !interrupted())
        tally_nothing(r->tally, name, "no object has a name that begins so");
}

static void give_matching(struct removal *r, const struct object_name *which, bool may_be_empty)
{
    int rc;
    struct dfc_error err;
    struct glob_list g;
    const struct dfc_entry *entry;
    rc = glob_open(r->ctl->client, which->bucket, which->key, &g, &err);
    while (rc >= 0 && !interrupted() && (rc = glob_next(&g, &entry, &err)) > 0)
        give(r, which->bucket, entry->name);
    glob_close(&g);
    _cleanup_free_ char *name = xprintf("%s/%s", which->bucket, which->key);
    if (rc < 0)
        tally_fail(r->tally, name, &err);
    else if (g.matched == 0 && !may_be_empty && !interrupted())
        tally_nothing(r->tally, name, "no object matches");
    else
        tally_matched(r->tally, name, g.matched);
}

/* Of a command that is not --recursive. */
static void give_named(struct removal *r, const struct object_name *which, bool may_be_empty)
{
    _cleanup_free_ char *name = glob_name(which->key);
    if (glob_is(which->key))
        give_matching(r, which, may_be_empty);
    else
        give(r, which->bucket, name);
}

static int check_words(struct ctl *ctl, const struct args *args, struct object_name *names)
{
    struct error e = ERROR_INIT;
    for (size_t i = 0; i < args->word_count; i++) {
        if (object_name_parse(args->words[i], &names[i], &e) != 0)
            return ctl_fail_common(ctl, &e, EXIT_USAGE);
        if (args->given[F_recursive] && glob_is(names[i].key))
            return ctl_usage(ctl, PATTERN_NOT_RECURSIVE, args->words[i]);
        if (names[i].key[0] == '\0' && !args->given[F_recursive])
            return ctl_usage(ctl, "'%s' names no object; for all of a bucket, add --recursive",
                             args->words[i]);
        int code = ambiguous_check(ctl, args, args->words[i], &names[i]);
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

static char *question_of(const struct object_name *n)
{
    if (n->key[0] == '\0')
        return xprintf("Remove every object of bucket '%s'?", n->bucket);
    if (glob_is(n->key))
        return xprintf("Remove every object of bucket '%s' whose name matches '%s'?", n->bucket,
                       n->key);
    return xprintf("Remove every object of bucket '%s' whose name begins with '%s'?", n->bucket,
                   n->key);
}

static int confirm_words(struct ctl *ctl, const struct args *args, const struct object_name *names)
{
    for (size_t i = 0; i < args->word_count; i++) {
        if (!args->given[F_recursive] && !glob_is(names[i].key))
            continue;
        _cleanup_free_ char *question = question_of(&names[i]);
        int code = ctl_confirm(ctl, args, question);
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

static int remove_all(struct ctl *ctl, const struct args *args, const struct object_name *names)
{
    struct removal r = {
        .ctl = ctl, .bar = progress_new(ctl, "rm"), .internal = args->given[F_internal]};
    r.tally = tally_new(ctl, "rm", r.bar);
    r.workers = workers_start(parallel_of(args), item_run, &r);
    for (size_t i = 0; i < args->word_count; i++) {
        if (args->given[F_recursive])
            give_below(&r, &names[i], args->given[F_allow_empty] || names[i].key[0] == '\0');
        else
            give_named(&r, &names[i], args->given[F_allow_empty]);
    }
    workers_finish(r.workers);
    progress_free(r.bar);
    return tally_end(r.tally);
}

int object_rm(struct ctl *ctl, const struct args *args)
{
    bool by_job = args->given[F_template] || args->given[F_prefix] || args->given[F_list];
    if (by_job && args->given[F_pattern])
        return ctl_usage(ctl, "--pattern does not go with --template, --prefix and --list");
    if (by_job)
        return object_rm_by_job(ctl, args);
    if (args->given[F_wait] || args->given[F_timeout] || args->given[F_description])
        return ctl_usage(ctl, "--wait, --timeout and --description are for the jobs that "
                              "--template, --prefix and --list start");
    struct object_name *names = xcalloc(args->word_count, sizeof *names);
    int code = check_words(ctl, args, names);
    if (code == EXIT_OK)
        code = confirm_words(ctl, args, names);
    if (code == EXIT_OK)
        code = remove_all(ctl, args, names);
    for (size_t i = 0; i < args->word_count; i++)
        object_name_done(&names[i]);
    free(names);
    return code;
}
