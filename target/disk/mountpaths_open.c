/* The start: which directories are opened, and what the roster is then.
 *
 *   look      format.json of each directory of the list, and of each member: nothing is changed
 *   open      the list's and the members', but what is disabled, detached or missing
 *   bring up  indexes and disk threads, side by side
 *   agree     who is missing is lost, disabled, or stops the start; who is new joins
 *   write     the roster onto all */
#include "target/disk/mountpaths_parts.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/disk/version_floor.h"
#include "target/disk/reindexer.h"

/* A directory that may be opened. */
struct candidate {
    char *path;            /* without symbolic links, where it is there */
    struct format *format; /* NULL: none, or unreadable */
    bool listed;
    struct mountpath *mp; /* once it is open */
    struct error why;     /* it is not */
};

struct opening {
    struct mountpaths *m;
    const struct mountpaths_config *config;
    struct roster *roster;
    size_t count;
    struct candidate all[2 * MOUNTPATHS_MAX];
};

static void opening_done(struct opening *o)
{
    for (size_t i = 0; i < o->count; i++) {
        free(o->all[i].path);
        format_free(o->all[i].format);
        mountpaths_take_down(o->all[i].mp);
    }
    roster_free(o->roster);
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Where a link leads to, or NULL.  In front of a relative one stands its own directory. */
static char *link_target(const char *path)
{
    char text[PATH_MAX];
    ssize_t n = readlink(path, text, sizeof text - 1);
    const char *slash = strrchr(path, '/');
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    if (text[0] == '/' || slash == NULL)
        return xstrdup(text);
    return xprintf("%.*s/%s", (int)(slash - path), path, text);
}

/* As the roster knows it, without symbolic links: also where the last of it is not there, since its
 * disk is not mounted.  Else it would be taken for a new one, by another name. */
static char *resolved(const char *path, int links)
{
    enum { LINKS_MAX = 40 };
    char *real = realpath(path, NULL);
    if (real != NULL)
        return real;
    _cleanup_free_ char *next = links < LINKS_MAX ? link_target(path) : NULL;
    if (next != NULL)
        return resolved(next, links + 1);
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return xstrdup(path);
    _cleanup_free_ char *parent = xstrndup(path, (size_t)(slash - path));
    _cleanup_free_ char *above = resolved(parent, links);
    return slash[1] == '\0' ? steal(above)
                            : xprintf("%s%s", strcmp(above, "/") != 0 ? above : "", slash);
}

static struct candidate *candidate_add(struct opening *o, const char *path, bool listed)
{
    struct candidate *c = &o->all[o->count++];
    *c = (struct candidate){.path = resolved(path, 0), .listed = listed, .why = ERROR_INIT};
    struct error err = ERROR_INIT;
    if (mountpath_peek(c->path, &c->format, &err) != 0) {
        log_warn("format.json not readable", lstr("mountpath", c->path), lerr(&err));
        c->why = err;
    }
    return c;
}

static int look_at_list(struct opening *o, struct error *err)
{
    _cleanup_free_ char *list = xstrdup(o->config->list);
    char *rest = list;
    for (char *path; (path = strsep(&rest, ",")) != NULL;) {
        if (*path == '\0')
            continue;
        if (o->count == MOUNTPATHS_MAX)
            return error_set(err, E_INVALID, "more than %d mountpaths", MOUNTPATHS_MAX);
        candidate_add(o, path, true);
    }
    return o->count > 0 ? 0 : error_set(err, E_INVALID, "no mountpath is given");
}

static const struct candidate *find_candidate(const struct opening *o, const char *id)
{
    for (size_t i = 0; i < o->count; i++) {
        if (o->all[i].format != NULL && strcmp(o->all[i].format->mountpath, id) == 0)
            return &o->all[i];
    }
    return NULL;
}

static bool is_own(const struct opening *o, const struct candidate *c)
{
    return c->format != NULL && strcmp(c->format->target, o->config->target_id) == 0;
}

static bool any_joined(const struct opening *o)
{
    for (size_t i = 0; i < o->count; i++) {
        if (is_own(o, &o->all[i]) && o->all[i].format->cluster[0] != '\0')
            return true;
    }
    return false;
}

/* Another target's says nothing about ours.  Nor does what a start has made in the directories of
 * disks that were not mounted: no cluster has let that in. */
static size_t own_formats(const struct opening *o, const struct format **formats)
{
    bool joined = any_joined(o);
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++) {
        const struct candidate *c = &o->all[i];
        if (is_own(o, c) && (!joined || c->format->cluster[0] != '\0'))
            formats[n++] = c->format;
    }
    return n;
}

/* The members that the list does not have may know a later roster yet. */
static void look_at_members(struct opening *o)
{
    const struct format *formats[2 * MOUNTPATHS_MAX];
    o->roster = format_newest_roster(formats, own_formats(o, formats));
    for (size_t i = 0; i < o->roster->count; i++) {
        const struct roster_member *m = &o->roster->members[i];
        if (m->disabled || find_candidate(o, m->id) != NULL)
            continue;
        struct candidate *c = candidate_add(o, m->path, false);
        if (c->format == NULL || strcmp(c->format->mountpath, m->id) == 0)
            continue;
        error_set(&c->why, E_MOUNTPATH, "another mountpath is there, of target '%s'",
                  c->format->target);
        format_free(steal(c->format));
    }
    roster_free(o->roster);
    o->roster = format_newest_roster(formats, own_formats(o, formats));
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool is_member(const struct opening *o, const struct candidate *c)
{
    return is_own(o, c) && roster_find_id(o->roster, c->format->mountpath) != SIZE_MAX;
}

static bool is_disabled_member(const struct opening *o, const struct candidate *c)
{
    size_t i = c->format != NULL ? roster_find_id(o->roster, c->format->mountpath)
                                 : roster_find_path(o->roster, c->path);
    return i != SIZE_MAX && o->roster->members[i].disabled;
}

/* At the place of a member that is nowhere else there is no disk, or another one.  What is there
 * must not be taken for a new mountpath. */
static bool is_missing_member(const struct opening *o, const struct candidate *c)
{
    size_t i = roster_find_path(o->roster, c->path);
    _cleanup_free_ char *root = xprintf("%s/.dfc", c->path);
    if (i == SIZE_MAX || (c->listed && o->config->lost_ok))
        return false;
    if (c->format == NULL)
        return o->config->missing_ok || access(root, F_OK) != 0;
    return o->config->missing_ok && !is_member(o, c) &&
           find_candidate(o, o->roster->members[i].id) == NULL;
}

static bool is_wanted(const struct opening *o, const struct candidate *c)
{
    if (!c->listed && c->format == NULL)
        return false;
    if (roster_is_detached(o->roster, c->path)) {
        log_info("mountpath was detached, and is not opened", lstr("mountpath", c->path));
        return false;
    }
    return !is_disabled_member(o, c) && !is_missing_member(o, c);
}

/* One that may be missing may also be broken.  One that is whole, and was made at another path, may
 * be a copy: that is for the operator to say.  Nor is a lack of descriptors or memory a disk's
 * fault. */
static bool may_fail(const struct opening *o, const struct candidate *c)
{
    if (!is_member(o, c) || c->why.code == E_OVERLOAD || c->why.code == E_NOMEM)
        return false;
    bool moved = strcmp(c->format->path, c->path) != 0 && !o->config->moved_ok;
    return (o->config->missing_ok && !moved) || (o->config->lost_ok && !c->listed);
}

/* One that is given twice has a lock that says so. */
static int check_apart(const struct opening *o, struct error *err)
{
    for (size_t i = 0; i < o->count; i++) {
        for (size_t k = 0; k < i; k++) {
            const char *a = o->all[i].path, *b = o->all[k].path;
            if (strcmp(a, b) != 0 && mountpath_paths_nest(a, b))
                return error_set(err, E_MOUNTPATH, "one mountpath is inside another: '%s' and '%s'",
                                 b, a);
        }
    }
    return 0;
}

static int open_wanted(struct opening *o, struct error *err)
{
    for (size_t i = 0; i < o->count; i++) {
        struct candidate *c = &o->all[i];
        if (!is_wanted(o, c))
            continue;
        int code =
            mountpath_open(c->path, o->config->target_id, o->config->moved_ok, &c->mp, &c->why);
        if (code == 0 || may_fail(o, c))
            continue;
        *err = c->why;
        return code;
    }
    return 0;
}

static size_t opened(const struct opening *o, struct mountpath **open)
{
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++) {
        if (o->all[i].mp != NULL)
            open[n++] = o->all[i].mp;
    }
    return n;
}

static int check_together(struct opening *o, struct error *err)
{
    struct mountpath *open[2 * MOUNTPATHS_MAX];
    const struct format *formats[2 * MOUNTPATHS_MAX];
    size_t n = opened(o, open);
    const char *cluster;
    for (size_t i = 0; i < n; i++)
        formats[i] = open[i]->format;
    int code = format_check_together(formats, n, &cluster, err);
    if (code == 0)
        o->m->cluster = xstrdup(cluster);
    return code;
}

/* --- bringing up ------------------------------------------------------------------------------ */

static int start_index(const struct mountpaths *m, struct mountpath *mp, struct error *err)
{
    const char *fresh;
    _cleanup_free_ char *dir = xprintf("%s/.dfc/index", mp->path);
    /* With the marker everything was on the disk when power was lost. */
    bool marked = index_is_marked(dir);
    bool anew = m->config.reindex || (crash_state_power_lost(mp->crash_state) && !marked);
    int code = index_open(dir, m->config.index_map_size, anew, &mp->index, &fresh, err);
    if (code != 0)
        return code;
    if (fresh == NULL && marked)
        crash_state_set_checked(mp->crash_state);
    struct reindex_report report = {.on_progress = m->config.on_progress,
                                    .ctx = m->config.progress_ctx};
    code = fresh == NULL ? reindex_intents(mp, &report, err) : reindex(mp, &report, err);
    if (code == E_NO_SPACE) { /* objects can be read all the same; lists say what is wrong */
        log_error("index not rebuilt", lstr("mountpath", mp->path), lerr(err));
        index_set_stale(mp->index, err);
        return 0;
    }
    if (code == 0 && (fresh != NULL || report.looked_at > 0))
        log_info(fresh != NULL ? "index rebuilt" : "index brought into step",
                 lstr("mountpath", mp->path), lstr("why", fresh != NULL ? fresh : "killed"),
                 lu64("objects", report.objects), lu64("lost", report.lost),
                 lu64("unreadable", report.unreadable), lu64("ms", report.ms));
    return code;
}

int mountpaths_bring_up(const struct mountpaths *m, struct mountpath *mp, struct error *err)
{
    int code = start_index(m, mp, err);
    if (code != 0)
        return error_recode(err, E_MOUNTPATH, "mountpath '%s'", mp->path);
    code = reindexer_new(mp, &mp->reindexer, err);
    if (code == 0)
        code = m->config.plain_io ? disk_open_plain("disk", m->config.disk_depth, &mp->disk, err)
                                  : disk_open("disk", m->config.disk_depth, &mp->disk, err);
    if (code == 0)
        disk_measure(mp->disk, mp->meter);
    if (code == 0)
        code = reader_new(mp->path, m->config.readers, m->config.readers_queue, &mp->reader, err);
    if (code == 0)
        reader_measure(mp->reader, mp->meter);
    return code == 0 ? 0 : error_wrap(err, "mountpath '%s'", mp->path);
}

void mountpaths_take_down(struct mountpath *mp)
{
    if (mp == NULL)
        return;
    reindexer_free(mp->reindexer);
    mountpath_close(mp);
}

static int bring_up_one(void *ctx, size_t i, struct error *err)
{
    struct opening *o = ctx;
    struct candidate *c = &o->all[i];
    if (c->mp == NULL || mountpaths_bring_up(o->m, c->mp, &c->why) == 0)
        return 0;
    mountpaths_take_down(steal(c->mp));
    if (may_fail(o, c))
        return 0;
    *err = c->why;
    return c->why.code;
}

static int bring_up(struct opening *o, struct error *err)
{
    return parallel_for("start", (unsigned)o->count, o->count, bring_up_one, o, err);
}

/* --- agreeing --------------------------------------------------------------------------------- */

static struct mountpath *find_opened(const struct opening *o, const char *id)
{
    const struct candidate *c = find_candidate(o, id);
    return c != NULL ? c->mp : NULL;
}

/* Why a member is not open: of those that were looked at under its id, or at its path. */
static const char *why_not_open(const struct opening *o, const struct roster_member *m)
{
    const char *why = "it was missing at the start";
    for (size_t i = 0; i < o->count; i++) {
        const struct candidate *c = &o->all[i];
        bool same = c->format != NULL && strcmp(c->format->mountpath, m->id) == 0;
        if (c->why.code != 0 && (same || strcmp(c->path, m->path) == 0))
            why = c->why.message;
    }
    return why;
}

static int treat_missing(struct opening *o, size_t i, struct error *err)
{
    const struct roster_member *m = &o->roster->members[i];
    const char *why = why_not_open(o, m);
    if (o->config->lost_ok) {
        log_warn("mountpath given up", lstr("mountpath", m->path), lstr("why", why));
        roster_give_up(o->roster, i);
    } else if (o->config->missing_ok) {
        log_error("mountpath disabled", lstr("mountpath", m->path), lstr("why", why));
        _cleanup_free_ char *copy = xstrdup(why);
        roster_miss(o->roster, i, copy, clock_wall_ms());
    } else {
        return error_set(err, E_MOUNTPATH,
                         "mountpath '%s' is missing: without it its objects would seem not to "
                         "exist; start with --mountpath-missing-ok to have it disabled, or, "
                         "where it is lost for good, once with --mountpath-lost-ok",
                         m->path);
    }
    return 0;
}

/* A target without one disk that works has nothing to serve, and must not begin anew. */
static int check_one_works(const struct opening *o, struct error *err)
{
    const struct roster_member *first = NULL;
    for (size_t i = 0; i < o->roster->count; i++) {
        const struct roster_member *m = &o->roster->members[i];
        if (m->disabled)
            continue;
        if (find_opened(o, m->id) != NULL)
            return 0;
        first = first != NULL ? first : m;
    }
    if (first == NULL || !o->config->missing_ok || o->config->lost_ok)
        return 0;
    return error_set(
        err, E_MOUNTPATH,
        "no mountpath works; '%s': %s. Mount the disks and start again, or, where they "
        "are lost for good, start once with --mountpath-lost-ok",
        first->path, why_not_open(o, first));
}

static int agree_on_missing(struct opening *o, struct error *err)
{
    int code = check_one_works(o, err);
    for (size_t i = o->roster->count; i-- > 0 && code == 0;) {
        const struct roster_member *m = &o->roster->members[i];
        if (!m->disabled && find_opened(o, m->id) == NULL)
            code = treat_missing(o, i, err);
    }
    return code;
}

/* --mountpath-moved-ok: the roster learns where they are now. */
static void agree_on_paths(struct opening *o)
{
    for (size_t i = 0; i < o->count; i++) {
        const struct mountpath *mp = o->all[i].mp;
        size_t k = mp != NULL ? roster_find_id(o->roster, mountpath_id(mp)) : SIZE_MAX;
        if (k == SIZE_MAX || strcmp(o->roster->members[k].path, mp->path) == 0)
            continue;
        free(o->roster->members[k].path);
        o->roster->members[k].path = xstrdup(mp->path);
        o->roster->generation++;
    }
}

int mountpaths_weigh(const struct mountpath *mp, const struct roster *r,
                     struct mountpath *const *open, size_t count, uint32_t *weight,
                     struct error *err)
{
    uint64_t bytes, available, other_weight = 0, other_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = roster_find_id(r, mountpath_id(open[i]));
        if (k == SIZE_MAX || mountpath_capacity(open[i], &bytes, &available, NULL) != 0)
            continue;
        other_weight += r->members[k].weight;
        other_bytes += bytes;
    }
    int code = mountpath_capacity(mp, &bytes, &available, err);
    *weight = code == 0 ? roster_weight(bytes, other_weight, other_bytes) : 0;
    return code;
}

static int any_has_objects(struct mountpath *const *open, size_t count, bool *has,
                           struct error *err)
{
    int code = 0;
    *has = false;
    for (size_t i = 0; i < count && code == 0 && !*has; i++)
        code = mountpath_has_objects(open[i], has, err);
    return code;
}

static int agree_on_new(struct opening *o, struct mountpath *const *open, size_t count,
                        struct error *err)
{
    bool has_objects;
    int code = any_has_objects(open, count, &has_objects, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        bool brings = false;
        uint32_t weight;
        if (roster_find_id(o->roster, mountpath_id(open[i])) != SIZE_MAX)
            continue;
        code = mountpaths_weigh(open[i], o->roster, open, count, &weight, err);
        if (code == 0)
            code = mountpath_has_objects(open[i], &brings, err);
        if (code == 0)
            code = roster_attach(o->roster, mountpath_id(open[i]), open[i]->path, weight,
                                 !has_objects, clock_wall_ms(), err);
        if (code == 0 && brings)
            roster_scatter(o->roster); /* where those came to lie nobody knows */
    }
    return code;
}

static int agree(struct opening *o, struct error *err)
{
    struct mountpath *open[2 * MOUNTPATHS_MAX];
    int code = agree_on_missing(o, err);
    size_t count = opened(o, open);
    if (code == 0) {
        agree_on_paths(o);
        code = agree_on_new(o, open, count, err);
    }
    if (code == 0)
        code = mountpaths_write_down(o->m, o->roster, open, count, err);
    if (code != 0)
        return code;
    mountpaths_install(o->m, steal(o->roster), open, count);
    for (size_t i = 0; i < o->count; i++)
        o->all[i].mp = NULL; /* the set's */
    return 0;
}

/* A target that cannot join must not format a directory: a corrected start may name another one. */
static int check_joined(const struct opening *o, struct error *err)
{
    if (!o->config->joined_only || any_joined(o))
        return 0;
    return error_set(err, E_INVALID,
                     "--join is empty, and this target has not joined before; no mountpath was "
                     "touched");
}

static int open_steps(struct opening *o, struct error *err)
{
    int code = look_at_list(o, err);
    if (code != 0)
        return code;
    look_at_members(o);
    if ((code = check_joined(o, err)) != 0 || (code = check_apart(o, err)) != 0 ||
        (code = open_wanted(o, err)) != 0 || (code = check_together(o, err)) != 0 ||
        (code = bring_up(o, err)) != 0)
        return code;
    return agree(o, err);
}

static struct mountpaths *mountpaths_new(const struct mountpaths_config *config)
{
    struct mountpaths *m = xcalloc(1, sizeof *m);
    m->config = *config;
    m->config.list = NULL; /* the caller's */
    m->target_id = xstrdup(config->target_id);
    m->config.target_id = m->target_id;
    pthread_mutex_init(&m->change, NULL);
    pthread_mutex_init(&m->lock, NULL);
    condition_init(&m->freed);
    pthread_rwlock_init(&m->listing, NULL);
    return m;
}

static bool any_lost_power(const struct mountpaths *m)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        if (crash_state_power_lost(set->all[i]->crash_state))
            return true;
    }
    return false;
}

int mountpaths_open(const struct mountpaths_config *config, struct mountpaths **out,
                    struct error *err)
{
    struct opening *o = xcalloc(1, sizeof *o);
    o->m = mountpaths_new(config);
    o->config = config;
    int code = open_steps(o, err);
    if (code == 0) {
        version_floor_begin(o->m, config->lost_ok || any_lost_power(o->m));
        *out = o->m;
        (*out)->config.reindex = false; /* of one that is enabled later only where it is needed */
        (*out)->config.on_progress = NULL;
    } else {
        mountpaths_close(o->m);
    }
    opening_done(o);
    free(o);
    return code;
}
