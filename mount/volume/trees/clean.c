/* The end of what is in the trash: hours whose days are over. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "mount/volume/trash.h"
#include "mount/volume/trees/rmr.h"

enum { HOURS = 100 }; /* of a page */

/* An hour is kept for a day at least: clones are built there. */
static int64_t kept_ms(struct volume *v)
{
    const int64_t days = atomic_load(&v->trash_days);
    return (days > 0 ? days : 1) * TRASH_DAY_MS;
}

int volume_trash_clean(struct volume *v, const struct volume_caller *caller)
{
    struct arena *arena = arena_new(4096);
    struct volume_name *names;
    struct volume_tally tally;
    struct error err = ERROR_INIT;
    size_t count = 0;
    int64_t now_ms;
    bool more = false;
    char after[META_NAME_MAX + 1] = "";
    int rc = v->meta->ops->now(v->meta, &now_ms, &err);
    if (rc != 0)
        rc = txn_engine_error("clock", &err);
    do {
        arena_reset(arena);
        if (rc == 0)
            rc = volume_readdir(v, TRASH_INO, after, HOURS, arena, &names, &count, &more);
        for (size_t i = 0; i < count && rc == 0; i++) {
            snprintf(after, sizeof after, "%s", names[i].name);
            if (trash_hour_end_ms(names[i].ino) + kept_ms(v) <= now_ms)
                rc = remove_tree(v, TRASH_INO, names[i].name, caller, &tally);
        }
    } while (rc == 0 && more);
    arena_free(arena);
    return rc == -ENOENT ? 0 : rc; /* there is no trash, or another client cleaned it */
}
