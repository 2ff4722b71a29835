#include "mount/fuse/volume_control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "mount/fuse/operations.h"
#include "mount/volfs/volfs.h"

struct request {
    fuse_req_t req;
    uint64_t node;
    struct volfs *volfs;
    struct volume *volume;
    const struct tickets *tickets;
    struct volume_caller caller;
};

/* ---- the caller ---- */

static bool stops(void *req)
{
    return operations_interrupted(req);
}

/* malloc'ed. */
static uint32_t *groups_of(fuse_req_t req, size_t *count)
{
    int room = 64, found;
    gid_t *groups = NULL;
    do {
        room *= 2;
        groups = xrealloc(groups, (size_t)room * sizeof *groups);
        found = fuse_req_getgroups(req, room, groups);
    } while (found > room);
    *count = found > 0 ? (size_t)found : 0; /* of a process that has gone */
    return groups;
}

/* ---- verbs ---- */

static int remove_tree(struct request *r, void *data)
{
    struct control_remove *c = data;
    struct volume_tally tally;
    c->name[CONTROL_NAME - 1] = '\0';
    c->error = -volume_rmr(r->volume, r->node, c->name, &r->caller, c->for_ever != 0, &tally);
    c->is_moved = tally.is_moved;
    c->removed = tally.inodes;
    memcpy(c->at, tally.name, sizeof c->at);
    struct fuse_session *fuse = ((struct operations *)fuse_req_userdata(r->req))->fuse;
    if (c->removed > 0) /* ENOENT: the kernel does not know the name */
        fuse_lowlevel_notify_inval_entry(fuse, r->node, c->name, strlen(c->name));
    return 0;
}

static int make_ticket(struct request *r, void *data)
{
    struct control_ticket *c = data;
    c->ticket = tickets_make(r->tickets, r->node, clock_boot_ms());
    return 0;
}

/* Also what this mount has not committed yet. */
static int clone_tree(struct request *r, void *data)
{
    struct control_clone *c = data;
    struct volume_tally tally = {0};
    const uint64_t directory = c->directory.directory;
    c->name[CONTROL_NAME - 1] = '\0';
    int rc = tickets_know(r->tickets, &c->directory, clock_boot_ms()) ? 0 : -ESTALE;
    if (rc == 0)
        rc = volfs_sync(r->volfs);
    if (rc == 0)
        rc = volume_clone(r->volume, r->node, directory, c->name, &r->caller, &tally);
    c->error = -rc;
    c->made = tally.inodes;
    memcpy(c->at, tally.name, sizeof c->at);
    return 0;
}

static void fill_rows(struct control_trash *c, const struct volume_trash_page *page)
{
    for (c->count = 0; c->count < page->count; c->count++) {
        const struct volume_trashed *row = &page->rows[c->count];
        struct control_trashed *out = &c->rows[c->count];
        *out = (struct control_trashed){
            .length = row->length, .removed_ns = row->removed_ns, .type = row->type};
        memcpy(out->name, row->name, strlen(row->name) + 1);
    }
}

/* The next rows of the hour.  Hours come and go meanwhile. */
static int list_hour(struct request *r, struct control_trash *c, struct arena *arena, bool *more)
{
    struct volume_trash_page page;
    int rc = volume_trash_list(r->volume, c->hour, c->after, CONTROL_TRASH_ROWS, &r->caller, arena,
                               &page);
    *more = rc == 0 && page.more;
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    fill_rows(c, &page);
    if (page.last[0] != '\0')
        memcpy(c->after, page.last, sizeof c->after);
    return 0;
}

static int list_trash(struct request *r, void *data)
{
    struct control_trash *c = data;
    struct arena *arena = arena_new(4096);
    bool more = c->hour[0] != '\0'; /* of the hour */
    int rc = 0;
    c->hour[CONTROL_NAME - 1] = c->after[CONTROL_NAME - 1] = '\0';
    for (c->ends = c->count = 0; rc == 0 && c->count == 0 && c->ends == 0;) {
        arena_reset(arena);
        if (!more) {
            rc = volume_trash_hour(r->volume, c->hour, c->hour);
            c->after[0] = '\0';
            c->ends = rc == -ENOENT;
        }
        if (rc == 0)
            rc = list_hour(r, c, arena, &more);
        if (rc == 0 && stops(r->req))
            rc = -EINTR;
    }
    arena_free(arena);
    return c->ends != 0 ? 0 : rc;
}

static int restore(struct request *r, void *data)
{
    struct control_restore *c = data;
    c->hour[CONTROL_NAME - 1] = c->name[CONTROL_NAME - 1] = '\0';
    c->error = -volume_restore(r->volume, c->hour, c->name, &r->caller);
    return 0;
}

/* What an open file of it may ask.  The trash is of the whole volume: so is its open file. */
enum place { ANYTHING, DIRECTORY, ROOT };

static const struct {
    unsigned command;
    size_t size;
    enum place place;
    int (*run)(struct request *r, void *data);
} verbs[] = {
    {CONTROL_REMOVE, sizeof(struct control_remove), DIRECTORY, remove_tree},
    {CONTROL_TICKET, sizeof(struct control_ticket), DIRECTORY, make_ticket},
    {CONTROL_CLONE, sizeof(struct control_clone), ANYTHING, clone_tree},
    {CONTROL_TRASH, sizeof(struct control_trash), ROOT, list_trash},
    {CONTROL_RESTORE, sizeof(struct control_restore), ROOT, restore},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

void volume_control_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
                          struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                          size_t out_size)
{
    const struct operations *o = fuse_req_userdata(req);
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    struct request r = {.req = req,
                        .node = node,
                        .volfs = o->volfs,
                        .volume = volfs_volume(o->volfs),
                        .tickets = &o->tickets};
    size_t i = 0;
    while (i < VERBS && verbs[i].command != command)
        i++;
    if (i == VERBS) { /* of all mounts */
        control_ioctl(req, node, command, arg, fi, flags, in, in_size, out_size);
        return;
    }
    if (in_size != verbs[i].size || out_size != verbs[i].size ||
        (verbs[i].place != ANYTHING && (flags & FUSE_IOCTL_DIR) == 0)) {
        fuse_reply_err(req, ENOTTY);
        return;
    }
    if (verbs[i].place == ROOT && node != VOLUME_ROOT) {
        fuse_reply_err(req, EPERM);
        return;
    }
    if (!o->writable) { /* the kernel does not know that an ioctl changes something */
        fuse_reply_err(req, EROFS);
        return;
    }
    uint32_t *groups = groups_of(req, &r.caller.group_count);
    r.caller.uid = ctx->uid;
    r.caller.gid = ctx->gid;
    r.caller.groups = groups;
    r.caller.stops = stops;
    r.caller.context = req;
    void *data = xmalloc(in_size);
    memcpy(data, in, in_size);
    int rc = verbs[i].run(&r, data);
    if (rc != 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_ioctl(req, 0, data, out_size);
    free(data);
    free(groups);
}
