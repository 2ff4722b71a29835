/* sync: the destination gets what the source has.
 *
 * Both sides come in the order of their names, so that one pass over both finds what to send, to
 * compare and to remove.  The pass removes; threads compare and send. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/files/landing.h"
#include "api/ctl/files/walk.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/glob.h"
#include "api/ctl/parallel.h"
#include "api/ctl/put_flags.h"
#include "api/ctl/sync/side.h"
#include "api/ctl/sync/transfer.h"
#include "api/ctl/tally.h"
#include "api/ctl/workers.h"
#include "common/cleanup.h"
#include "common/internal_name.h"
#include "common/mem.h"

struct sync {
    struct ctl *ctl;
    const struct args *args;
    struct sync_end from, to;
    struct side *source, *destination;
    struct tally *tally;
    struct progress *bar;
    struct workers *workers;
    uint64_t total_bytes, total_names;
    char **left; /* directories that files were removed from */
    size_t left_count, left_room;
    bool unreadable; /* a part of the source: nothing is removed */
};

struct sync_item {
    struct sync_entry entry;  /* of the source; texts are owned */
    struct sync_entry object; /* with SYNC_COMPARE: of the side that has the checksum */
    enum sync_verdict verdict;
};

/* ---- in threads ---- */

static void say(struct sync *s, const char *what, const char *name)
{
    if (s->args->given[F_dry_run] && !s->ctl->json)
        fprintf(s->ctl->out, "%s %s\n", what, name);
}

static int item_same(struct sync *s, const struct sync_item *item, bool *same,
                     struct dfc_error *err)
{
    const struct sync_end *files = s->from.path != NULL ? &s->from : &s->to;
    *same = false;
    if (item->verdict != SYNC_COMPARE)
        return DFC_OK;
    return sync_read_file(files, item->entry.name, &item->object, same, err);
}

static void item_do(struct sync *s, const struct sync_item *item)
{
    struct dfc_error err;
    bool same;
    struct progress_part part = {.all = s->bar};
    int rc = item_same(s, item, &same, &err);
    if (rc == DFC_OK && same) {
        tally_kept(s->tally);
        return;
    }
    if (rc == DFC_OK && !s->args->given[F_dry_run])
        rc = sync_send(s->ctl->client, &s->from, &s->to, &item->entry, &part, &err);
    if (rc != DFC_OK) {
        tally_fail(s->tally, item->entry.name, &err);
        return;
    }
    say(s, "send", item->entry.name);
    tally_done(s->tally, item->entry.size);
}

static void item_run(void *context, void *arg)
{
    struct sync *s = context;
    struct sync_item *item = arg;
    if (tally_hopeless(s->tally))
        tally_skip(s->tally);
    else
        item_do(s, item);
    progress_add(s->bar, 0, 1);
    free((char *)item->entry.name);
    free((char *)item->object.checksum_type);
    free((char *)item->object.checksum);
    free(item);
}

/* ---- the pass ---- */

static void give(struct sync *s, const struct sync_entry *from, const struct sync_entry *to,
                 enum sync_verdict verdict)
{
    struct sync_item *item = xcalloc(1, sizeof *item);
    item->entry = *from;
    item->entry.name = xstrdup(from->name);
    item->verdict = verdict;
    if (verdict == SYNC_COMPARE) {
        const struct sync_entry *object = from->local ? to : from;
        item->object.checksum_type = xstrdup(object->checksum_type);
        item->object.checksum = xstrdup(object->checksum);
    }
    s->total_bytes += from->size;
    progress_total(s->bar, s->total_bytes, ++s->total_names);
    workers_give(s->workers, item);
}

/* The directory may be empty now.  It is looked at when no file lands any more. */
static void note_left(struct sync *s, const char *name)
{
    const char *slash = strrchr(name, '/');
    if (s->to.path == NULL || slash == NULL)
        return;
    _cleanup_free_ char *directory = xstrndup(name, (size_t)(slash - name));
    if (s->left_count > 0 && strcmp(s->left[s->left_count - 1], directory) == 0)
        return;
    if (s->left_count == s->left_room) {
        s->left_room = s->left_room * 2 + 16;
        s->left = xrealloc(s->left, s->left_room * sizeof *s->left);
    }
    s->left[s->left_count++] = steal(directory);
}

/* Names came in order: the deeper directories are the later ones. */
static void prune(struct sync *s)
{
    while (s->left_count > 0) {
        char *directory = s->left[--s->left_count];
        landing_prune_below(s->to.root, directory);
        free(directory);
    }
    free(s->left);
}

/* A part of other objects in the destination's bucket, which a source need not have. */
static bool is_part_of_others(const struct sync *s, const char *name)
{
    if (s->to.path != NULL || name_is_internal(s->to.name.key))
        return false;
    _cleanup_free_ char *key = xprintf("%s%s", s->to.name.key, name);
    return name_is_internal(key);
}

static void remove_surplus(struct sync *s, const char *name)
{
    struct dfc_error err;
    if (!s->args->given[F_delete] || s->unreadable || is_part_of_others(s, name))
        return;
    say(s, "remove", name);
    if (!s->args->given[F_dry_run]) {
        if (sync_remove(s->ctl->client, &s->to, name, &err) != DFC_OK) {
            tally_fail(s->tally, name, &err);
            return;
        }
        note_left(s, name);
    }
    tally_removed(s->tally);
}

static void both(struct sync *s, const struct sync_entry *from, const struct sync_entry *to)
{
    enum sync_verdict verdict = sync_compare(from, to, s->args->given[F_quick]);
    if (verdict == SYNC_SAME)
        tally_kept(s->tally);
    else
        give(s, from, to, verdict);
}

static bool excluded(const struct sync *s, const char *name)
{
    for (size_t i = 0; i < s->args->list_count[F_exclude]; i++) {
        if (glob_matches(s->args->list[F_exclude][i], name))
            return true;
    }
    return false;
}

/* Of either side; what is excluded is on none. */
static int next(struct sync *s, struct side *side, const struct sync_entry **e, bool *any)
{
    struct dfc_error err;
    int rc;
    while ((rc = side_next(side, e, &err)) > 0) {
        *any = true;
        if (!excluded(s, (*e)->name))
            return rc;
    }
    *e = NULL;
    if (rc < 0)
        tally_fail(s->tally, side == s->source ? s->args->words[0] : s->args->words[1], &err);
    return rc;
}

static void merge(struct sync *s)
{
    const struct sync_entry *from, *to = NULL;
    bool any = false, any_there = false;
    int rc = next(s, s->source, &from, &any);
    if (rc == 0 && !any && !s->unreadable && !s->args->given[F_allow_empty]) {
        tally_nothing(s->tally, s->args->words[0], "there is nothing in it");
        return;
    }
    if (rc >= 0)
        rc = next(s, s->destination, &to, &any_there);
    while (rc >= 0 && (from != NULL || to != NULL) && !interrupted()) {
        int order = from == NULL ? 1 : to == NULL ? -1 : strcmp(from->name, to->name);
        if (order < 0)
            give(s, from, NULL, SYNC_DIFFERS);
        else if (order > 0)
            remove_surplus(s, to->name);
        else
            both(s, from, to);
        if (order >= 0)
            rc = next(s, s->destination, &to, &any_there);
        if (order <= 0 && rc >= 0)
            rc = next(s, s->source, &from, &any);
    }
}

/* ---- the sides ---- */

static void source_problem(void *context, const char *path, const struct error *err)
{
    struct sync *s = context;
    if (!s->unreadable && s->args->given[F_delete])
        ctl_remark(s->ctl, "dfcctl: nothing is removed, as a part of the source cannot be read");
    s->unreadable = true;
    tally_fail_common(s->tally, path, err);
}

/* What is no file there stays as it is. */
static void destination_problem(void *context, const char *path, const struct error *err)
{
    struct sync *s = context;
    ctl_remark(s->ctl, "dfcctl: '%s' stays: %s", path, err->message);
}

static int open_side(struct sync *s, const struct sync_end *end, const struct side_problems *p,
                     struct side **side, struct dfc_error *err)
{
    if (end->path == NULL)
        return side_of_objects(s->ctl->client, &end->name, side, err);
    *side = side_of_files(end->path, p);
    return DFC_OK;
}

static int run(struct sync *s)
{
    struct dfc_error err;
    const struct side_problems of_source = {source_problem, s};
    const struct side_problems of_destination = {destination_problem, s};
    s->bar = progress_new(s->ctl, "sync");
    s->tally = tally_new(s->ctl, "sync", s->bar);
    tally_name_kept(s->tally, "the same");
    if (s->args->given[F_dry_run])
        tally_is_dry(s->tally);
    s->workers = workers_start(parallel_of(s->args), item_run, s);
    if (open_side(s, &s->from, &of_source, &s->source, &err) != DFC_OK)
        tally_fail(s->tally, s->args->words[0], &err);
    else if (open_side(s, &s->to, &of_destination, &s->destination, &err) != DFC_OK)
        tally_fail(s->tally, s->args->words[1], &err);
    else
        merge(s);
    workers_finish(s->workers);
    prune(s);
    side_free(s->source);
    side_free(s->destination);
    progress_free(s->bar);
    return tally_end(s->tally);
}

/* ---- words ---- */

static int end_parse(struct ctl *ctl, const char *word, struct sync_end *end)
{
    struct error e = ERROR_INIT;
    *end = (struct sync_end){.root = -1};
    if (strncmp(word, "dfc://", strlen("dfc://")) != 0) {
        end->path = word;
        return word[0] != '\0' ? EXIT_OK : ctl_usage(ctl, "the path of the directory is empty");
    }
    if (object_name_parse(word, &end->name, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    object_name_make_prefix(&end->name);
    return EXIT_OK;
}

static int check_ends(struct sync *s, const char *const *words)
{
    const struct sync_end *from = &s->from, *to = &s->to;
    if (from->path != NULL && to->path != NULL)
        return ctl_usage(s->ctl,
                         "'%s' and '%s' are both directories here: one side must be "
                         "dfc://BUCKET/PREFIX",
                         words[0], words[1]);
    if (from->path == NULL && to->path == NULL && names_overlap(&from->name, &to->name))
        return ctl_usage(s->ctl, "'%s' and '%s' have names in common", words[0], words[1]);
    if (from->path != NULL && !walk_is_directory(from->path))
        return ctl_usage(s->ctl, "'%s' is no directory ('put' stores one file)", words[0]);
    return EXIT_OK;
}

static int open_root(struct sync *s)
{
    struct error e = ERROR_INIT;
    const char *path = s->to.path;
    if (path == NULL || s->args->given[F_dry_run])
        return EXIT_OK;
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        s->to.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->to.root >= 0)
        return EXIT_OK;
    error_errno(&e, errno, "open directory '%s'", path);
    return ctl_fail_common(s->ctl, &e, EXIT_FAILED);
}

static int confirm(struct sync *s)
{
    if (!s->args->given[F_delete] || s->args->given[F_dry_run])
        return EXIT_OK;
    _cleanup_free_ char *question =
        xprintf("Remove from '%s' what '%s' does not have?", s->args->words[1], s->args->words[0]);
    return ctl_confirm(s->ctl, s->args, question);
}

int object_sync(struct ctl *ctl, const struct args *args)
{
    struct sync s = {.ctl = ctl, .args = args, .from.root = -1, .to.root = -1};
    int code = part_size_of(ctl, args, &s.from.part_size);
    if (code == EXIT_OK)
        code = end_parse(ctl, args->words[0], &s.from);
    if (code == EXIT_OK)
        code = end_parse(ctl, args->words[1], &s.to);
    if (code == EXIT_OK)
        code = check_ends(&s, args->words);
    if (code == EXIT_OK)
        code = confirm(&s);
    if (code == EXIT_OK)
        code = open_root(&s);
    if (code == EXIT_OK)
        code = run(&s);
    if (s.to.root >= 0)
        close(s.to.root);
    object_name_done(&s.from.name);
    object_name_done(&s.to.name);
    return code;
}
