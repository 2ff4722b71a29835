/* The end of what is in the trash: hours whose days are over.
 *
 * What cannot be removed, as an inode is damaged, is logged and stays; all else goes.  So an hour
 * is removed whole first, and name by name only if that fails; and so is each directory in it. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/rmr.h"

enum { PAGE = 100, RENEWALS_IN_LEASE = 3 };

struct cleaning {
    struct volume *v;
    const struct volume_caller *outer;
    struct volume_caller caller;
    uint64_t lease_ms;
    int64_t renewed_ns;
    int first;       /* error */
    uint64_t *whole; /* directories that could not be removed whole */
    size_t count, room;
};

/* ---- the lease ---- */

static bool renew(struct cleaning *c)
{
    bool held;
    const int64_t now_ns = volume_now(c->v);
    const int64_t age_ms = (now_ns - c->renewed_ns) / 1000000;
    if (c->lease_ms == 0 || age_ms < (int64_t)(c->lease_ms / RENEWALS_IN_LEASE))
        return true;
    c->renewed_ns = now_ns;
    return volume_lease(c->v, c->lease_ms, &held) == 0 && held;
}

/* Between any two transactions. */
static bool stops(void *context)
{
    struct cleaning *c = context;
    const struct volume_caller *outer = c->outer;
    if (outer != NULL && outer->stops != NULL && outer->stops(outer->context))
        return true;
    return !renew(c);
}

/* ---- names ---- */

/* An hour is kept for a day at least: clones are built there. */
static int64_t kept_ms(struct volume *v)
{
    const int64_t days = atomic_load(&v->trash_days);
    return (days > 0 ? days : 1) * TRASH_DAY_MS;
}

static int engine_now(struct volume *v, int64_t *now_ms)
{
    struct error err = ERROR_INIT;
    const int rc = v->meta->ops->now(v->meta, now_ms, &err);
    return rc == 0 ? 0 : txn_engine_error("clock", &err);
}

/* 0: others may go, whatever became of this one. */
static int failed(struct cleaning *c, const char *where, const char *name, int rc)
{
    int64_t now_ms;
    if (rc == 0 || rc == -ENOENT) /* another client removed it */
        return 0;
    if (rc == -EINTR)
        return rc;
    c->first = c->first != 0 ? c->first : rc;
    log_warn("what cannot be removed stays in the trash; 'fs fsck' tells what is damaged",
             lstr("volume", c->v->format.name), lstr("in", where), lstr("name", name),
             li64("error", -rc));
    return engine_now(c->v, &now_ms); /* without the engine all others would fail, too */
}

typedef int clean_take(struct cleaning *c, const struct volume_name *n, void *context);

static int each(struct cleaning *c, uint64_t directory, clean_take *take, void *context)
{
    struct arena *arena = arena_new(4096);
    struct volume_name *names;
    size_t count = 0;
    bool more = false;
    char after[META_NAME_MAX + 1] = "";
    int rc;
    do {
        arena_reset(arena);
        rc = volume_readdir(c->v, directory, after, PAGE, arena, &names, &count, &more);
        for (size_t i = 0; i < count && rc == 0; i++) {
            snprintf(after, sizeof after, "%s", names[i].name);
            rc = take(c, &names[i], context);
        }
    } while (rc == 0 && more);
    arena_free(arena);
    return rc == -ENOENT ? 0 : rc; /* there is none, or another client cleaned it */
}

static void push(struct cleaning *c, uint64_t directory)
{
    if (c->count == c->room) {
        c->room = 2 * c->room + 16;
        c->whole = xrealloc(c->whole, c->room * sizeof *c->whole);
    }
    c->whole[c->count++] = directory;
}

struct place {
    const char *hour;
    uint64_t directory; /* the hour, or below it */
};

static int remove_name(struct cleaning *c, const struct volume_name *n, void *place)
{
    struct volume_tally tally;
    const struct place *p = place;
    if (stops(c))
        return -EINTR;
    const int rc = remove_tree(c->v, p->directory, n->name, &c->caller, &tally);
    if (rc != 0 && rc != -ENOENT && n->known && attr_is_directory(&n->attr))
        push(c, n->ino);
    return failed(c, p->hour, tally.name[0] != '\0' ? tally.name : n->name, rc);
}

/* A directory with damage somewhere below: names beside it, level by level. */
static int remove_names(struct cleaning *c, const struct volume_name *hour)
{
    struct place p = {.hour = hour->name, .directory = hour->ino};
    c->count = 0;
    int rc = each(c, p.directory, remove_name, &p);
    while (rc == 0 && c->count > 0) {
        p.directory = c->whole[--c->count];
        rc = failed(c, p.hour, "", each(c, p.directory, remove_name, &p));
    }
    return rc;
}

static int remove_hour(struct cleaning *c, const struct volume_name *n, void *now)
{
    struct volume_tally tally;
    const int64_t *now_ms = now;
    if (trash_hour_end_ms(n->ino) + kept_ms(c->v) > *now_ms)
        return 0;
    if (stops(c))
        return -EINTR;
    int rc = remove_tree(c->v, TRASH_INO, n->name, &c->caller, &tally);
    if (rc == 0 || rc == -ENOENT || rc == -EINTR)
        return rc == -EINTR ? rc : 0;
    rc = remove_names(c, n);
    if (rc == 0)
        rc = remove_directory(c->v, TRASH_INO, n->name);
    return rc == -ENOTEMPTY ? 0 : failed(c, TRASH_NAME, n->name, rc);
}

int volume_trash_clean(struct volume *v, const struct volume_caller *caller, uint64_t lease_ms)
{
    struct cleaning c = {
        .v = v, .outer = caller, .lease_ms = lease_ms, .renewed_ns = volume_now(v)};
    int64_t now_ms;
    c.caller = (struct volume_caller){.uid = 0, .stops = stops, .context = &c};
    int rc = engine_now(v, &now_ms);
    if (rc == 0)
        rc = each(&c, TRASH_INO, remove_hour, &now_ms);
    free(c.whole);
    return rc != 0 ? rc : c.first;
}
