#include "mount/volume/trees/rights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "mount/volume/trees/access.h"

enum { PAGE = 64 };

struct frame {
    uint64_t ino;
    struct attr attr;
    char name[META_NAME_MAX + 1], after[META_NAME_MAX + 1];
};

struct look {
    struct volume *v;
    const struct volume_caller *caller;
    struct frame *frames; /* the top one is read on from `after` */
    size_t depth, room;
    char *at;
};

static int fail_at(struct look *l, const char *name, int rc)
{
    snprintf(l->at, META_NAME_MAX + 1, "%s", name);
    return rc;
}

/* An empty directory needs no rights. */
static int push(struct look *l, const char *name, uint64_t ino, const struct attr *a)
{
    if (a->entries == 0)
        return 0;
    if (!access_may(a, l->caller, ACCESS_READ | ACCESS_WRITE | ACCESS_SEARCH))
        return fail_at(l, name, -EACCES);
    if (l->depth == l->room) {
        l->room = 2 * l->room + 16;
        l->frames = xrealloc(l->frames, l->room * sizeof *l->frames);
    }
    struct frame *f = &l->frames[l->depth++];
    *f = (struct frame){.ino = ino, .attr = *a};
    snprintf(f->name, sizeof f->name, "%s", name);
    return 0;
}

static int check_name(struct look *l, const struct attr *directory, const struct volume_name *n)
{
    if (!n->known)
        return fail_at(l, n->name, -EIO);
    if (!access_may_remove(directory, &n->attr, l->caller))
        return fail_at(l, n->name, -EACCES);
    return attr_is_directory(&n->attr) ? push(l, n->name, n->ino, &n->attr) : 0;
}

/* A page of the top directory; its directories are on top then. */
static int step(struct look *l, struct arena *arena)
{
    struct frame *top = &l->frames[l->depth - 1];
    const struct attr directory = top->attr; /* the stack may move */
    struct volume_name *names;
    size_t count;
    bool more;
    int rc = volume_readdir(l->v, top->ino, top->after, PAGE, arena, &names, &count, &more);
    if (rc != 0 && rc != -ENOENT)
        return fail_at(l, top->name, rc);
    if (rc != 0 || !more)
        l->depth--;
    if (rc != 0) /* another client removed it */
        return 0;
    if (count > 0)
        snprintf(top->after, sizeof top->after, "%s", names[count - 1].name);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = check_name(l, &directory, &names[i]);
    return rc;
}

int rights_check_below(struct volume *v, const struct volume_inode *top, const char *name,
                       const struct volume_caller *caller, char at[static META_NAME_MAX + 1])
{
    struct look l = {.v = v, .caller = caller, .at = at};
    if (caller == NULL || caller->uid == 0)
        return 0;
    struct arena *arena = arena_new(4096);
    int rc = push(&l, name, top->ino, &top->attr);
    while (l.depth > 0 && rc == 0) {
        arena_reset(arena);
        rc = caller->stops != NULL && caller->stops(caller->context) ? -EINTR : step(&l, arena);
    }
    free(l.frames);
    arena_free(arena);
    return rc;
}
