/* gc: objects of a volume's bucket that no file names.  Nothing is changed without --delete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "mount/program/tool.h"
#include "mount/volfs/garbage.h"
#include "mount/volfs/gc.h"

static int list_objects(struct tool *t, struct gc *gc)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_entry *e;
    _cleanup_free_ char *prefix = xprintf("%s/b/", t->format.name);
    const struct dfc_list_options options = {.prefix = prefix};
    int rc = dfc_list_open(t->client, t->bucket, &options, &list, &err);
    if (rc != DFC_OK)
        return tool_fail(&err);
    while ((rc = dfc_list_next(list, &e, &err)) > 0)
        gc_object(gc, e->name, e->size, e->modified_ms);
    dfc_list_close(list);
    return rc == 0 ? PROGRAM_OK : tool_fail(&err);
}

/* Each object by its name; one that cannot be deleted is told, and the others are deleted. */
static int tell_objects(struct tool *t, const struct gc *gc, bool is_deleting)
{
    int code = PROGRAM_OK;
    for (size_t i = 0; i < gc_tally(gc)->garbage; i++) {
        struct dfc_error err;
        _cleanup_free_ char *key = gc_garbage(gc, i);
        int rc = is_deleting ? dfc_delete(t->client, t->bucket, key, &err) : DFC_OK;
        if (rc != DFC_OK && rc != DFC_NOT_FOUND) {
            tool_fail(&err);
            code = PROGRAM_PARTLY;
        } else {
            printf("%s %s\n", is_deleting ? "deleted" : "garbage", key);
        }
    }
    return code;
}

static int delete_due(struct tool *t)
{
    struct garbage_tally removed;
    const struct volfs_store store = {.context = t, .remove = tool_remove};
    int code = tool_open_volume(t);
    if (code != PROGRAM_OK)
        return code;
    int rc = garbage_remove(t->volume, &store, &removed);
    printf("deleted %llu slices whose grace is over, %llu bytes\n",
           (unsigned long long)removed.slices, (unsigned long long)removed.bytes);
    return rc == 0 ? PROGRAM_OK
                   : program_fail(PROGRAM_PARTLY, "slices of the queue: %s", strerror(-rc));
}

static void tell(const struct gc_tally *t)
{
    printf("%llu objects, %llu bytes: %llu are garbage, %llu bytes\n",
           (unsigned long long)t->objects, (unsigned long long)t->bytes,
           (unsigned long long)t->garbage, (unsigned long long)t->garbage_bytes);
    printf(
        "not looked at: %llu are younger than --grace, %llu may be of mounts that are there, %llu "
        "are no blocks\n",
        (unsigned long long)t->young, (unsigned long long)t->living,
        (unsigned long long)t->foreign);
    printf("%llu parts of removed files, %llu bytes, are kept for 15 minutes; over for %llu\n",
           (unsigned long long)t->queued, (unsigned long long)t->queued_bytes,
           (unsigned long long)t->due);
}

static int collect(const struct options *o, struct tool *t)
{
    struct gc *gc;
    struct error err = ERROR_INIT;
    const struct gc_options options = {.older_ms = clock_wall_ms() - (int64_t)o->grace_ms};
    if (gc_new(t->meta, &t->format, &options, &gc, &err) != 0)
        return program_fail(client_exit_of_code(err.code), "%s", err.message);
    int code = list_objects(t, gc);
    if (code == PROGRAM_OK && gc_look(gc, &err) != 0)
        code = program_fail(client_exit_of_code(err.code), "%s", err.message);
    if (code == PROGRAM_OK) {
        code = tell_objects(t, gc, o->delete_found);
        tell(gc_tally(gc));
        int rest = o->delete_found ? delete_due(t) : PROGRAM_OK;
        code = code != PROGRAM_OK ? code : rest;
    }
    gc_free(gc);
    return code;
}

int program_gc(const struct options *o)
{
    struct tool t;
    int code = tool_open(o, &t);
    if (code == PROGRAM_OK)
        code = collect(o, &t);
    tool_close(&t);
    return code;
}
