/* The set in force, who holds which, and where names belong. */
#include "target/disk/mountpaths_parts.h"

#include <assert.h>
#include <errno.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

static const struct set_impl *set_impl_of(const struct mountpath_set *set)
{
    return (const struct set_impl *)set;
}

/* --- making a set ----------------------------------------------------------------------------- */

static void placement_add(struct placement *p, const char *id, uint32_t weight, size_t member)
{
    p->nodes[p->count] = (struct hrw_node){.seed = hrw_seed(id), .weight = weight};
    p->members[p->count++] = member;
}

static void placement_alloc(struct placement *p, size_t count)
{
    p->nodes = xcalloc(count + 1, sizeof *p->nodes);
    p->members = xcalloc(count + 1, sizeof *p->members);
}

static void placement_free(struct placement *p)
{
    free(p->nodes);
    free(p->members);
}

static void placement_now(struct placement *p, const struct roster *r)
{
    placement_alloc(p, r->count);
    for (size_t i = 0; i < r->count; i++) {
        if (!r->members[i].leaving)
            placement_add(p, r->members[i].id, r->members[i].weight, i);
    }
}

/* One that is no member any more was given up: what lay there is gone. */
static void placement_earlier(struct placement *p, const struct roster *r,
                              const struct roster_placement *was)
{
    placement_alloc(p, was->count);
    for (size_t i = 0; i < was->count; i++)
        placement_add(p, was->shares[i].id, was->shares[i].weight,
                      roster_find_id(r, was->shares[i].id));
}

static struct mountpath *find_open(struct mountpath *const *open, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(mountpath_id(open[i]), id) == 0)
            return open[i];
    }
    return NULL;
}

static void set_fill(struct set_impl *s, struct mountpath *const *open, size_t open_count)
{
    const struct roster *r = s->roster;
    s->set.all = xcalloc(r->count + 1, sizeof *s->set.all);
    s->set.each = xcalloc(r->count + 1, sizeof *s->set.each);
    for (size_t i = 0; i < r->count; i++) {
        if (r->members[i].disabled)
            continue;
        s->set.each[i] = find_open(open, open_count, r->members[i].id);
        if (s->set.each[i] != NULL && !r->members[i].leaving)
            s->set.all[s->set.count++] = s->set.each[i];
    }
    s->set.placed = s->set.count;
    for (size_t i = 0; i < r->count; i++) {
        if (s->set.each[i] != NULL && r->members[i].leaving)
            s->set.all[s->set.count++] = s->set.each[i];
    }
}

static struct set_impl *set_new(struct mountpaths *m, struct roster *r,
                                struct mountpath *const *open, size_t count)
{
    struct set_impl *s = xcalloc(1, sizeof *s);
    s->owner = m;
    s->roster = r;
    s->set.roster = r;
    s->set.settled = r->settled;
    set_fill(s, open, count);
    placement_now(&s->now, r);
    s->earlier = xcalloc(r->earlier_count + 1, sizeof *s->earlier);
    for (size_t i = 0; i < r->earlier_count; i++)
        placement_earlier(&s->earlier[i], r, &r->earlier[i]);
    atomic_init(&s->refs, 1);
    return s;
}

static void set_free(struct set_impl *s)
{
    placement_free(&s->now);
    for (size_t i = 0; i < s->roster->earlier_count; i++)
        placement_free(&s->earlier[i]);
    free(s->earlier);
    free(s->set.all);
    free(s->set.each);
    roster_free(s->roster);
    free(s);
}

void mountpaths_install(struct mountpaths *m, struct roster *r, struct mountpath *const *open,
                        size_t count)
{
    struct set_impl *s = set_new(m, r, open, count);
    pthread_mutex_lock(&m->lock);
    struct set_impl *old = m->current;
    s->serial = m->next_serial++;
    for (size_t i = 0; i < s->set.count; i++)
        s->set.all[i]->sets++;
    s->next = m->live;
    m->live = s;
    m->current = s;
    pthread_mutex_unlock(&m->lock);
    if (old != NULL)
        mountpath_set_unref(&old->set);
}

/* --- holding ---------------------------------------------------------------------------------- */

const struct mountpath_set *mountpaths_current(const struct mountpaths *all)
{
    struct mountpaths *m = (struct mountpaths *)all; /* only its lock changes */
    pthread_mutex_lock(&m->lock);
    struct set_impl *s = m->current;
    atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&m->lock);
    return &s->set;
}

const struct mountpath_set *mountpath_set_ref(const struct mountpath_set *set)
{
    atomic_fetch_add(&((struct set_impl *)set)->refs, 1);
    return set;
}

static void drop_locked(struct mountpaths *m, struct set_impl *s)
{
    struct set_impl **at = &m->live;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    for (size_t i = 0; i < s->set.count; i++) {
        struct mountpath *mp = s->set.all[i];
        if (--mp->sets > 0)
            continue;
        mp->next_closing = m->closing;
        m->closing = mp;
    }
    pthread_cond_broadcast(&m->freed);
}

void mountpath_set_unref(const struct mountpath_set *set)
{
    if (set == NULL)
        return;
    struct set_impl *s = (struct set_impl *)set;
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    struct mountpaths *m = s->owner;
    pthread_mutex_lock(&m->lock);
    drop_locked(m, s);
    pthread_mutex_unlock(&m->lock);
    set_free(s);
}

static void close_one(struct mountpath *mp)
{
    _cleanup_free_ char *path = xstrdup(mp->path);
    bool erase = mp->erase;
    struct error err = ERROR_INIT;
    mountpaths_take_down(mp);
    if (erase && mountpath_erase(path, &err) != 0)
        log_warn("detached mountpath not emptied", lstr("mountpath", path), lerr(&err));
    else
        log_info("mountpath closed", lstr("mountpath", path), lbool("emptied", erase));
}

bool mountpaths_to_reap(struct mountpaths *m)
{
    pthread_mutex_lock(&m->lock);
    bool any = m->closing != NULL;
    pthread_mutex_unlock(&m->lock);
    return any;
}

void mountpaths_reap(struct mountpaths *m)
{
    pthread_mutex_lock(&m->lock);
    struct mountpath *mp = m->closing;
    m->closing = NULL;
    m->reaping += mp != NULL;
    pthread_mutex_unlock(&m->lock);
    if (mp == NULL)
        return;
    while (mp != NULL) {
        struct mountpath *next = mp->next_closing;
        close_one(mp);
        mp = next;
    }
    pthread_mutex_lock(&m->lock);
    m->reaping--;
    pthread_cond_broadcast(&m->freed);
    pthread_mutex_unlock(&m->lock);
}

bool mountpath_set_is_current(const struct mountpath_set *set)
{
    struct mountpaths *m = set_impl_of(set)->owner;
    pthread_mutex_lock(&m->lock);
    bool current = &m->current->set == set;
    pthread_mutex_unlock(&m->lock);
    return current;
}

static bool older_held(struct mountpaths *m, uint64_t serial)
{
    for (const struct set_impl *s = m->live; s != NULL; s = s->next) {
        if (s->serial < serial)
            return true;
    }
    return false;
}

static bool opened_held(const struct mountpaths *m, const char *id)
{
    for (const struct set_impl *s = m->live; s != NULL; s = s->next) {
        for (size_t i = 0; i < s->set.count; i++) {
            if (strcmp(mountpath_id(s->set.all[i]), id) == 0)
                return true;
        }
    }
    return false;
}

/* With the lock held: until a set goes, or for a while. */
static void await_freed(struct mountpaths *m)
{
    enum { STEP_MS = 100 }; /* what else is waited for has no signal of its own */
    uint64_t at = clock_ms() + STEP_MS;
    struct timespec ts = {.tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000) * 1000000};
    pthread_cond_timedwait(&m->freed, &m->lock, &ts);
}

bool mountpaths_wait_closed(struct mountpaths *m, const char *id, uint64_t timeout_ms)
{
    uint64_t until = clock_ms() + timeout_ms;
    pthread_mutex_lock(&m->lock);
    while (opened_held(m, id) && clock_ms() < until)
        await_freed(m);
    bool held = opened_held(m, id);
    pthread_mutex_unlock(&m->lock);
    if (held)
        return false;
    mountpaths_reap(m);
    pthread_mutex_lock(&m->lock);
    while (m->reaping > 0 && clock_ms() < until) /* another thread may be at it */
        await_freed(m);
    pthread_mutex_unlock(&m->lock);
    return true;
}

bool mountpaths_wait_older(struct mountpaths *m, const struct mountpath_set *set,
                           const atomic_bool *stop, uint64_t timeout_ms)
{
    uint64_t serial = set_impl_of(set)->serial, until = clock_ms() + timeout_ms;
    pthread_mutex_lock(&m->lock);
    while (older_held(m, serial) && !atomic_load(stop) && clock_ms() < until)
        await_freed(m);
    bool held = older_held(m, serial);
    pthread_mutex_unlock(&m->lock);
    return !held;
}

/* --- where names belong ----------------------------------------------------------------------- */

static int disabled(const struct mountpath_set *set, size_t member, const char *what,
                    struct error *err)
{
    const struct roster_member *m = &set->roster->members[member];
    return error_set(err, E_MOUNTPATH_DISABLED, "%s mountpath '%s' of target '%s', which is %s%s%s",
                     what, m->path, set_impl_of(set)->owner->target_id,
                     m->disabled ? "disabled" : "not open", m->why != NULL ? ": " : "",
                     m->why != NULL ? m->why : "");
}

int mountpath_set_pick(const struct mountpath_set *set, uint64_t bucket_id, const char *name,
                       struct mountpath **out, struct error *err)
{
    const struct placement *p = &set_impl_of(set)->now;
    size_t best = hrw_best(hrw_key(bucket_id, name, strlen(name)), p->nodes, p->count);
    *out = NULL;
    if (best == SIZE_MAX)
        return error_set(err, E_MOUNTPATH_DISABLED, "target '%s' has no mountpath",
                         set_impl_of(set)->owner->target_id);
    *out = set->each[p->members[best]];
    return *out != NULL ? 0 : disabled(set, p->members[best], "the name belongs to", err);
}

static int first_not_open(const struct mountpath_set *set, const char *what, struct error *err)
{
    for (size_t i = 0; i < set->roster->count; i++) {
        if (set->each[i] == NULL)
            return disabled(set, i, what, err);
    }
    return 0;
}

int mountpath_set_check_miss(const struct mountpath_set *set, uint64_t bucket_id, const char *name,
                             struct error *err)
{
    static const char what[] = "the object may be on";
    const struct set_impl *s = set_impl_of(set);
    if (set->settled)
        return 0;
    if (set->roster->anywhere)
        return first_not_open(set, what, err);
    uint64_t key = hrw_key(bucket_id, name, strlen(name));
    for (size_t i = 0; i < set->roster->earlier_count; i++) {
        const struct placement *p = &s->earlier[i];
        size_t best = hrw_best(key, p->nodes, p->count);
        size_t member = best != SIZE_MAX ? p->members[best] : SIZE_MAX;
        if (member != SIZE_MAX && set->each[member] == NULL)
            return disabled(set, member, what, err);
    }
    return 0;
}

size_t mountpath_set_missing(const struct mountpath_set *set)
{
    size_t missing = 0;
    for (size_t i = 0; i < set->roster->count; i++)
        missing += set->each[i] == NULL;
    return missing;
}

int mountpath_set_check_whole(const struct mountpath_set *set, struct error *err)
{
    return first_not_open(set, "objects are on", err);
}

/* --- lists ------------------------------------------------------------------------------------ */

void mountpaths_listing_begin(struct mountpaths *m)
{
    pthread_rwlock_rdlock(&m->listing);
}

void mountpaths_listing_end(struct mountpaths *m)
{
    pthread_rwlock_unlock(&m->listing);
}

int mountpaths_unlist(struct mountpaths *m, struct mountpath *mp, uint64_t bucket_id,
                      const char *name, struct error *err)
{
    pthread_rwlock_wrlock(&m->listing);
    int code = index_delete(mp->index, bucket_id, name, err);
    pthread_rwlock_unlock(&m->listing);
    return code;
}

/* --- all of them ------------------------------------------------------------------------------ */

const char *mountpaths_cluster(const struct mountpaths *m)
{
    return m->cluster;
}

int mountpaths_set_cluster(struct mountpaths *m, const char *cluster_id, struct error *err)
{
    pthread_mutex_lock(&m->change);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    int code = 0;
    for (size_t i = 0; i < set->count && code == 0; i++) {
        format_set_cluster(set->all[i]->format, cluster_id);
        code = mountpath_save_format(set->all[i], err);
    }
    if (code == 0 && strcmp(m->cluster, cluster_id) != 0) {
        free(m->cluster);
        m->cluster = xstrdup(cluster_id);
    }
    pthread_mutex_unlock(&m->change);
    return code;
}

static bool device_counted(const struct mountpath_set *set, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (set->all[k]->device == set->all[i]->device)
            return true;
    }
    return false;
}

int mountpaths_capacity(struct mountpaths *m, uint64_t *total_bytes, uint64_t *available_bytes,
                        struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    *total_bytes = *available_bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        uint64_t total, available;
        if (device_counted(set, i))
            continue;
        int code = mountpath_capacity(set->all[i], &total, &available, err);
        if (code != 0)
            return code;
        *total_bytes += total;
        *available_bytes += available;
    }
    return 0;
}

void mountpaths_close(struct mountpaths *m)
{
    if (m == NULL)
        return;
    if (m->current != NULL)
        mountpath_set_unref(&m->current->set);
    assert(m->live == NULL);
    struct mountpath *mp = m->closing;
    while (mp != NULL) {
        struct mountpath *next = mp->next_closing;
        if (mp->erase)
            close_one(mp);
        else
            mountpaths_take_down(mp);
        mp = next;
    }
    pthread_rwlock_destroy(&m->listing);
    pthread_cond_destroy(&m->freed);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->change);
    free(m->cluster);
    free(m->target_id);
    free(m);
}
