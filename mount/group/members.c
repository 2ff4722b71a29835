#include "mount/group/members.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/cache_group.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"

struct group_members {
    struct group_members_options options;
    bool started;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    struct group_map *map;
    bool drains, hurry, stop;
    bool failing; /* the thread's: the last call failed */
    bool empty;   /* the thread's: the log has that there are no members */
};

/* ---- one call ---- */

static char *report_text(struct group_members *m, bool leaves)
{
    const struct group_self *self = m->options.self;
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s, s:I, s:b, s:b}", "boot", self->boot, "url",
                                           self->url, "weight", (json_int_t)self->weight, "drains",
                                           (int)group_members_drains(m), "leaves", (int)leaves);
    return json_text(doc);
}

static int call(struct group_members *m, bool leaves, char **text, struct dfc_error *err)
{
    const struct group_members_options *o = &m->options;
    if (o->self == NULL)
        return cache_group_show(o->client, o->group, text, err);
    _cleanup_free_ char *report = report_text(m, leaves);
    return cache_group_report(o->client, o->group, o->self->id, report, text, err);
}

static int code_of(const struct dfc_error *err)
{
    int code = error_from_name(err->code);
    return code != 0 ? code : E_NET;
}

static int refresh(struct group_members *m, struct error *err)
{
    struct dfc_error told;
    struct group_map *map = NULL;
    _cleanup_free_ char *text = NULL;
    if (call(m, false, &text, &told) != DFC_OK)
        return error_set(err, code_of(&told), "cache group '%s': %s", m->options.group,
                         told.message);
    struct group_map *before = group_members_map(m);
    int rc = group_map_parse(text, before, &map, err);
    group_map_unref(before);
    if (rc != 0)
        return error_wrap(err, "cache group '%s'", m->options.group);
    pthread_mutex_lock(&m->lock);
    before = m->map;
    m->map = map;
    pthread_mutex_unlock(&m->lock);
    group_map_unref(before);
    return 0;
}

/* ---- the thread ---- */

static bool pause_ends(struct group_members *m)
{
    const struct timespec until = clock_after(m->options.interval_ms);
    pthread_mutex_lock(&m->lock);
    while (!m->stop && !m->hurry) {
        if (pthread_cond_timedwait(&m->news, &m->lock, &until) != 0)
            break;
    }
    m->hurry = false;
    bool stop = m->stop;
    pthread_mutex_unlock(&m->lock);
    return !stop;
}

static void tell(struct group_members *m, int rc, const struct error *err)
{
    if (rc != 0 && !m->failing)
        log_warn("the members of the cache group are not known anew", lerr(err));
    else if (rc == 0 && m->failing)
        log_info("the members of the cache group are known again", lstr("group", m->options.group));
    m->failing = rc != 0;
}

/* For a mount, which goes on without.  True: there are none. */
static bool tell_empty(struct group_members *m)
{
    struct group_map *map = group_members_map(m);
    const bool is_empty = m->options.self == NULL && map != NULL && map->count == 0;
    group_map_unref(map);
    if (is_empty && !m->empty)
        log_warn("the cache group has no members", lstr("group", m->options.group));
    return is_empty;
}

static void *follow(void *context)
{
    struct group_members *m = context;
    while (pause_ends(m)) {
        struct error err = ERROR_INIT;
        int rc = refresh(m, &err);
        tell(m, rc, &err);
        m->empty = tell_empty(m);
    }
    return NULL;
}

/* ---- its life ---- */

int group_members_open(const struct group_members_options *options, struct group_members **out,
                       struct error *err)
{
    _cleanup_(group_members_closep)
    struct group_members *m = xcalloc(1, sizeof *m);
    m->options = *options;
    pthread_mutex_init(&m->lock, NULL);
    condition_init(&m->news);
    int rc = refresh(m, err);
    if (rc != 0 && options->self != NULL)
        return rc;
    tell(m, rc, err);
    tell_empty(m); /* to the caller of a mount, who has no log yet; the thread tells the log */
    if (pthread_create(&m->thread, NULL, follow, m) != 0)
        return error_set(err, E_NOMEM, "a thread that follows the cache group cannot be started");
    m->started = true;
    *out = steal(m);
    return 0;
}

static void leave(struct group_members *m)
{
    struct dfc_error told;
    _cleanup_free_ char *text = NULL;
    if (call(m, true, &text, &told) != DFC_OK)
        log_warn("the cluster was not told that this member leaves", lstr("error", told.message));
}

void group_members_leave(struct group_members *m)
{
    if (m == NULL || !m->started)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->news);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    m->started = false;
    if (m->options.self != NULL)
        leave(m);
}

void group_members_close(struct group_members *m)
{
    if (m == NULL)
        return;
    group_members_leave(m);
    group_map_unref(m->map);
    pthread_cond_destroy(&m->news);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- looking ---- */

struct group_map *group_members_map(struct group_members *m)
{
    pthread_mutex_lock(&m->lock);
    struct group_map *map = m->map != NULL ? group_map_ref(m->map) : NULL;
    pthread_mutex_unlock(&m->lock);
    return map;
}

void group_members_drain(struct group_members *m)
{
    pthread_mutex_lock(&m->lock);
    m->drains = true;
    m->hurry = true;
    pthread_cond_signal(&m->news);
    pthread_mutex_unlock(&m->lock);
}

bool group_members_drains(struct group_members *m)
{
    pthread_mutex_lock(&m->lock);
    bool drains = m->drains;
    pthread_mutex_unlock(&m->lock);
    return drains;
}
