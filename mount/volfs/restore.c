/* What a process that has died leaves in the ledger: handles, and marks of bytes that were not
 * committed.
 *
 *     a handle has the stamp of a mark   it wrote bytes that are lost
 *     such a handle gets RESTORE_LOST    from now on the ledger says so without the mark
 *     the marks are removed
 *
 * A kill in between leaves the marks, and the same begins again. */
#include "mount/volfs/restore.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volfs/volfs_parts.h"

struct mark {
    uint64_t number, ino, stamp;
};

struct left {
    struct volfs *v;
    struct mark *marks;
    size_t count, room;
};

static void take_mark(void *context, uint64_t number, const struct ledger_record *r)
{
    struct left *l = context;
    if (r->kind != LEDGER_UNSAVED)
        return;
    if (l->count == l->room) {
        l->room = 2 * l->room + 16;
        l->marks = xrealloc(l->marks, l->room * sizeof *l->marks);
    }
    l->marks[l->count++] = (struct mark){number, r->node, r->uses};
}

static bool is_lost(const struct left *l, const struct ledger_record *r)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->marks[i].ino == r->node && l->marks[i].stamp == r->uses)
            return true;
    }
    return r->uses == RESTORE_LOST;
}

static void take_handle(void *context, uint64_t number, const struct ledger_record *r)
{
    struct left *l = context;
    if (r->kind == LEDGER_DIRECTORY)
        volfs_restore_directory(l->v, number, r);
    if (r->kind != LEDGER_FILE)
        return;
    bool lost = is_lost(l, r);
    if (lost)
        ledger_uses(l->v->ledger, number, RESTORE_LOST);
    volfs_restore_file(l->v, number, r, lost);
}

static void take_place(void *context, uint64_t number, const struct ledger_record *r)
{
    if (r->kind == LEDGER_PLACE)
        volfs_restore_place(context, number, r);
}

void volfs_restore(struct volfs *v)
{
    struct left l = {.v = v};
    ledger_each(v->ledger, take_mark, &l);
    ledger_each(v->ledger, take_handle, &l);
    ledger_each(v->ledger, take_place, v);
    v->lost = xcalloc(l.count + 1, sizeof *v->lost);
    for (size_t i = 0; i < l.count; i++) {
        v->lost[v->lost_count++] = l.marks[i].ino;
        log_warn("written bytes are lost: the process that had them has died",
                 lu64("inode", l.marks[i].ino));
        ledger_remove(v->ledger, l.marks[i].number);
    }
    free(l.marks);
}
