/* Attach, enable, disable, detach, settle.  One change at a time; each is a new roster, written
 * down on the disks and put in force.  A crash in between leaves the old one or the new one: either
 * is a state to go on from, since no object has moved by the change itself. */
#include "target/disk/mountpaths_parts.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/disk/version_floor.h"
#include "target/index/child.h"

/* A change that is being made, with `change` held. */
struct change {
    struct mountpaths *m;
    const struct mountpath_set *set; /* as it was */
    struct roster *next;
    size_t count;
    struct mountpath *open[MOUNTPATHS_MAX + 1]; /* after it */
};

static void change_begin(struct change *c, struct mountpaths *m)
{
    mountpaths_reap(m);
    pthread_mutex_lock(&m->change);
    *c = (struct change){.m = m, .set = mountpaths_current(m)};
    c->next = roster_copy(c->set->roster);
    c->count = c->set->count;
    memcpy(c->open, c->set->all, c->count * sizeof *c->open);
}

static void change_end(struct change *c)
{
    mountpath_set_unref(c->set);
    roster_free(c->next);
    pthread_mutex_unlock(&c->m->change);
    mountpaths_reap(c->m);
}

static void change_install(struct change *c)
{
    mountpaths_install(c->m, steal(c->next), c->open, c->count);
}

int mountpaths_write_down(const struct mountpaths *m, const struct roster *r,
                          struct mountpath *const *open, size_t count, struct error *err)
{
    int first = 0;
    for (size_t i = 0; i < count; i++) {
        struct error why = ERROR_INIT;
        format_set_roster(open[i]->format, r);
        format_set_cluster(open[i]->format, m->cluster);
        int code = mountpath_save_format(open[i], &why);
        if (code == 0)
            continue;
        mountpath_failed(open[i], code);
        log_error("mountpaths not written down", lstr("mountpath", open[i]->path), lerr(&why));
        if (first == 0 && err != NULL)
            *err = why;
        first = first == 0 ? code : first;
    }
    return first;
}

/* What was written down on some of them is overruled by what is in force. */
static void take_back(struct change *c)
{
    struct roster *again = roster_copy(c->set->roster);
    again->generation = c->next->generation + 1;
    (void)mountpaths_write_down(c->m, again, c->set->all, c->set->count, NULL);
    mountpaths_install(c->m, again, c->set->all, c->set->count);
}

static int change_commit(struct change *c, struct error *err)
{
    int code = mountpaths_write_down(c->m, c->next, c->open, c->count, err);
    if (code == 0)
        change_install(c);
    else
        take_back(c);
    return code;
}

static int find_member(const struct change *c, const char *which, size_t *i, struct error *err)
{
    *i = roster_find_path(c->next, which);
    if (*i == SIZE_MAX)
        *i = roster_find_id(c->next, which);
    if (*i != SIZE_MAX)
        return 0;
    return error_set(err, E_NOT_FOUND, "target '%s' has no mountpath '%s'", c->m->target_id, which);
}

static void change_close(struct change *c, const char *id)
{
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(mountpath_id(c->open[i]), id) != 0)
            continue;
        c->open[i] = c->open[--c->count];
        return;
    }
}

/* --- attach, enable --------------------------------------------------------------------------- */

static int check_not_member(const struct change *c, const char *path, const struct format *f,
                            struct error *err)
{
    size_t i = roster_find_path(c->next, path);
    if (i == SIZE_MAX && f != NULL)
        i = roster_find_id(c->next, f->mountpath);
    if (i == SIZE_MAX)
        return 0;
    return error_set(err, E_EXISTS, "'%s' is a mountpath of this target already, and %s",
                     c->next->members[i].path, roster_state_name(&c->next->members[i]));
}

static int check_cluster(const struct change *c, const struct mountpath *mp, struct error *err)
{
    const char *theirs = mp->format->cluster;
    if (*theirs == '\0' || *c->m->cluster == '\0' || strcmp(theirs, c->m->cluster) == 0)
        return 0;
    return error_set(err, E_MOUNTPATH_STATE, "'%s' belongs to cluster '%s', this is '%s'", mp->path,
                     theirs, c->m->cluster);
}

/* Objects from before it was taken out could be ones that were deleted or replaced since. */
static int check_empty(const struct mountpath *mp, struct error *err)
{
    bool has;
    int code = mountpath_has_objects(mp, &has, err);
    if (code != 0 || !has)
        return code;
    return error_set(err, E_MOUNTPATH_STATE,
                     "'%s' holds objects from an earlier time, which may have been deleted or "
                     "replaced since: remove its .dfc first",
                     mp->path);
}

static int join_roster(struct change *c, struct mountpath *mp, struct error *err)
{
    bool empty = true;
    uint32_t weight;
    int code = 0;
    for (size_t i = 0; i < c->count && code == 0 && empty; i++) {
        bool has = false;
        code = mountpath_has_objects(c->open[i], &has, err);
        empty = !has;
    }
    empty = empty && !roster_has_disabled(c->next);
    if (code == 0)
        code = mountpaths_weigh(mp, c->next, c->open, c->count, &weight, err);
    if (code == 0)
        code =
            roster_attach(c->next, mountpath_id(mp), mp->path, weight, empty, clock_wall_ms(), err);
    return code;
}

static int attach_opened(struct change *c, struct mountpath *mp, struct error *err)
{
    int code;
    if ((code = check_cluster(c, mp, err)) != 0 || (code = check_empty(mp, err)) != 0 ||
        (code = mountpaths_bring_up(c->m, mp, err)) != 0 ||
        (code = version_floor_join(c->m, mp, err)) != 0 || (code = join_roster(c, mp, err)) != 0)
        return code;
    c->open[c->count++] = mp;
    return change_commit(c, err);
}

/* Before anything is made there: one that holds members would be in their way from then on. */
static int check_apart(const struct change *c, const char *path, struct error *err)
{
    _cleanup_free_ char *real = realpath(path, NULL);
    for (size_t i = 0; real != NULL && i < c->next->count; i++) {
        const char *member = c->next->members[i].path;
        if (strcmp(real, member) != 0 && mountpath_paths_nest(real, member))
            return error_set(err, E_MOUNTPATH_STATE,
                             "one mountpath would be inside another: '%s' and '%s'", real, member);
    }
    return 0;
}

static int enable_disabled(struct change *c, size_t i, struct error *err);

/* One that was missing at a start is there again. */
static bool was_missing(const struct change *c, const char *path, size_t *i)
{
    _cleanup_free_ char *real = realpath(path, NULL);
    *i = real != NULL ? roster_find_path(c->next, real) : SIZE_MAX;
    return *i != SIZE_MAX && c->next->members[*i].missing;
}

static int attach(struct change *c, const char *path, struct error *err)
{
    size_t i;
    _cleanup_(format_freep)
    struct format *format = NULL;
    _cleanup_(mountpaths_take_downp)
    struct mountpath *mp = NULL;
    if (*path != '/')
        return error_set(err, E_INVALID, "'%s' is no absolute path", path);
    if (was_missing(c, path, &i))
        return enable_disabled(c, i, err);
    int code = mountpath_peek(path, &format, err);
    if (code == 0)
        code = check_not_member(c, path, format, err);
    if (code == 0)
        code = check_apart(c, path, err);
    if (code == 0 && mountpath_open(path, c->m->target_id, false, &mp, err) != 0)
        code = error_recode(err, E_MOUNTPATH_STATE, "attach");
    if (code == 0) /* again, by its real path */
        code = check_not_member(c, mp->path, NULL, err);
    if (code == 0)
        code = attach_opened(c, mp, err);
    if (code != 0)
        return code;
    log_info("mountpath attached", lstr("mountpath", mp->path));
    mp = NULL; /* the set's */
    return 0;
}

int mountpaths_attach(struct mountpaths *m, const char *path, struct error *err)
{
    struct change c;
    change_begin(&c, m);
    int code = attach(&c, path, err);
    change_end(&c);
    return code;
}

/* The same disk, brought up anew. */
static int reopen(const struct change *c, size_t i, struct mountpath **mp, struct error *err)
{
    const struct roster_member *member = &c->next->members[i];
    _cleanup_(format_freep)
    struct format *format = NULL;
    int code = mountpath_peek(member->path, &format, err);
    if (code != 0)
        return error_recode(err, E_MOUNTPATH_STATE, "enable '%s'", member->path);
    if (format == NULL || strcmp(format->mountpath, member->id) != 0)
        return error_set(err, E_MOUNTPATH_STATE,
                         "'%s' %s: mount the disk that was disabled and enable it; or, if that "
                         "disk is lost, detach it with --lost, and then attach the new disk",
                         member->path,
                         format != NULL ? "is another disk" : "is missing, or an empty directory");
    code = mountpath_open(member->path, c->m->target_id, false, mp, err);
    if (code == 0)
        code = mountpaths_bring_up(c->m, *mp, err);
    if (code == 0)
        code = version_floor_join(c->m, *mp, err);
    return code == 0 ? 0 : error_recode(err, E_MOUNTPATH_STATE, "enable '%s'", member->path);
}

static int enable_disabled(struct change *c, size_t i, struct error *err)
{
    _cleanup_(mountpaths_take_downp)
    struct mountpath *mp = NULL;
    int code = reopen(c, i, &mp, err);
    if (code != 0)
        return code;
    roster_enable(c->next, i, clock_wall_ms());
    c->open[c->count++] = mp;
    if ((code = change_commit(c, err)) == 0)
        mp = NULL; /* the set's */
    return code;
}

static int enable(struct change *c, const char *which, struct error *err)
{
    size_t i;
    int code = find_member(c, which, &i, err);
    if (code != 0)
        return code;
    const struct roster_member *member = &c->next->members[i];
    if (!member->disabled && !member->leaving)
        return 0;
    if (member->disabled)
        code = enable_disabled(c, i, err);
    else if ((code = roster_stay(c->next, i, clock_wall_ms(), err)) == 0)
        code = change_commit(c, err);
    if (code == 0)
        log_info("mountpath enabled", lstr("mountpath", which));
    return code;
}

/* Requests and jobs may still hold what was disabled a moment ago. */
static int await_closed(struct mountpaths *m, const char *which, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    size_t i = roster_find_path(set->roster, which);
    if (i == SIZE_MAX)
        i = roster_find_id(set->roster, which);
    if (i == SIZE_MAX || !set->roster->members[i].disabled ||
        mountpaths_wait_closed(m, set->roster->members[i].id, m->config.close_wait_ms))
        return 0;
    return error_set(
        err, E_MOUNTPATH_STATE,
        "mountpath '%s' is still being closed: a request or a job uses it; try again, or "
        "raise mountpath_close_wait",
        which);
}

int mountpaths_enable(struct mountpaths *m, const char *which, struct error *err)
{
    struct change c;
    int closed = await_closed(m, which, err);
    if (closed != 0)
        return closed;
    change_begin(&c, m);
    int code = enable(&c, which, err);
    change_end(&c);
    return code;
}

/* --- disable ---------------------------------------------------------------------------------- */

enum { COUNT_SOON_MS = 2000, COUNT_TIMEOUT_MS = 20000 };

/* A child has the locks as they were when it was made: one that somebody held then is never free.
 */
static int count_apart(const struct mountpath *mp, struct roster_member *member, struct error *err)
{
    _cleanup_free_ char *dir = xprintf("%s/.dfc/index", mp->path);
    int code =
        index_child_sum(mp->index, dir, COUNT_SOON_MS, &member->objects, &member->bytes, err);
    if (code == E_TIMEOUT)
        code = index_child_sum(mp->index, dir, COUNT_TIMEOUT_MS, &member->objects, &member->bytes,
                               err);
    return code;
}

/* By its index, which may be as unreadable as the rest: then it stays uncounted. */

static void count_held(struct roster_member *member, const struct mountpath *mp)
{
    struct error err = ERROR_INIT;
    int code = index_check(mp->index, &err);
    if (code == 0)
        code = count_apart(mp, member, &err);
    member->counted = code == 0;
    if (code != 0)
        log_warn("mountpath's objects not counted", lstr("mountpath", mp->path), lerr(&err));
}

static int disable(struct change *c, const char *which, const char *why, bool bad,
                   struct error *err)
{
    size_t i;
    int code = find_member(c, which, &i, err);
    if (code != 0 || c->next->members[i].disabled)
        return code;
    struct mountpath *mp = c->set->each[i];
    mp->bad = bad;
    roster_disable(c->next, i, why, clock_wall_ms());
    change_close(c, mountpath_id(mp));
    mountpaths_install(c->m, roster_copy(c->next), c->open, c->count);
    /* It is out.  On itself it is written down as well, where that still works. */
    (void)mountpaths_write_down(c->m, c->next, c->set->all, c->set->count, NULL);
    struct roster_member *member = &c->next->members[i];
    count_held(member, mp);
    c->next->generation++;
    (void)mountpaths_write_down(c->m, c->next, c->open, c->count, NULL);
    log_error("mountpath disabled", lstr("mountpath", member->path), lstr("why", why),
              lu64("objects", member->objects), lu64("bytes", member->bytes));
    change_install(c);
    return 0;
}

int mountpaths_disable(struct mountpaths *m, const char *which, const char *why, bool bad,
                       struct error *err)
{
    struct change c;
    change_begin(&c, m);
    int code = disable(&c, which, why, bad, err);
    change_end(&c);
    return code;
}

/* --- detach, settle --------------------------------------------------------------------------- */

static int give_up(struct change *c, size_t i, struct error *err)
{
    _cleanup_free_ char *path = xstrdup(c->next->members[i].path);
    change_close(c, c->next->members[i].id);
    roster_give_up(c->next, i);
    if (!roster_has_place(c->next))
        return error_set(err, E_MOUNTPATH_STATE,
                         "'%s' is the only mountpath that is not leaving: enable another one first",
                         path);
    int code = version_floor_step(c->m, err); /* nobody knows its versions any more */
    if (code == 0)
        code = change_commit(c, err);
    if (code == 0)
        log_warn("mountpath given up", lstr("mountpath", path));
    return code;
}

static int leave(struct change *c, size_t i, struct error *err)
{
    const struct roster_member *member = &c->next->members[i];
    if (member->disabled)
        return error_set(err, E_MOUNTPATH_STATE,
                         "'%s' is disabled, so that nothing can be moved off: enable it first, or "
                         "give it up with --lost, with the objects that only it has",
                         member->path);
    if (member->leaving)
        return 0;
    int code = mountpaths_check_room(c->set, i, err);
    if (code == 0 && roster_leave(c->next, i, clock_wall_ms(), err) != 0)
        code = error_recode(err, E_MOUNTPATH_STATE, "detach");
    if (code == 0)
        code = change_commit(c, err);
    if (code == 0)
        log_info("mountpath is leaving", lstr("mountpath", c->set->roster->members[i].path));
    return code;
}

int mountpaths_detach(struct mountpaths *m, const char *which, bool lost, struct error *err)
{
    struct change c;
    size_t i;
    change_begin(&c, m);
    int code = find_member(&c, which, &i, err);
    if (code == 0)
        code = lost ? give_up(&c, i, err) : leave(&c, i, err);
    change_end(&c);
    return code;
}

int mountpaths_ask_resilver(struct mountpaths *m, struct error *err)
{
    struct change c;
    int code = 0;
    change_begin(&c, m);
    if (!c.next->settled) {
        c.next->generation++;
        code = change_commit(&c, err);
    }
    change_end(&c);
    return code;
}

static int settle(struct change *c, const struct mountpath_set *set, struct error *err)
{
    if (c->set != set)
        return error_set(err, E_MOUNTPATH_STATE, "the mountpaths were changed meanwhile");
    struct mountpath *gone[ROSTER_MEMBERS_MAX];
    size_t count = 0;
    roster_settle(c->next);
    for (size_t i = 0; i < c->set->roster->count; i++) {
        const char *id = c->set->roster->members[i].id;
        if (c->set->each[i] == NULL || roster_find_id(c->next, id) != SIZE_MAX)
            continue;
        gone[count++] = c->set->each[i];
        change_close(c, id);
    }
    int code = change_commit(c, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        gone[i]->erase = true;
        log_info("mountpath detached", lstr("mountpath", gone[i]->path));
    }
    return code;
}

int mountpaths_settle(struct mountpaths *m, const struct mountpath_set *set, struct error *err)
{
    struct change c;
    change_begin(&c, m);
    int code = settle(&c, set, err);
    change_end(&c);
    return code;
}
