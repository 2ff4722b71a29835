#include "target/node/state_sync.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/placement/owners.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "target/disk/state_file.h"
#include "target/disk/boot_id.h"

struct state_sync {
    struct mountpaths *mountpaths;
    const char *target_id; /* not copied */
    struct state_sync_hooks hooks;
    struct state_holder *holder;
    pthread_mutex_t turn; /* of who takes a state; nothing else is locked before it */
    bool told;            /* of one that came; in turn */
    bool quiet;           /* nobody is told any more; in turn */
    /* Written in turn, read by all.  A reader between the two sees a pair that never was: then it
     * refuses or takes a request that is just being overtaken, and either is right. */
    atomic_ullong placement_term, placement_version;
    atomic_ullong owners_term, owners_version;
};

static void set_placement(struct state_sync *k, const struct cluster_state *s)
{
    atomic_store(&k->placement_version, s->version);
    atomic_store(&k->placement_term, s->term);
}

static void set_owners(struct state_sync *k, const struct cluster_state *s)
{
    atomic_store(&k->owners_version, s->version);
    atomic_store(&k->owners_term, s->term);
}

int state_sync_new(struct mountpaths *m, const char *target_id,
                   const struct state_sync_hooks *hooks, struct state_sync **out,
                   struct state_holder **holder, struct error *err)
{
    struct cluster_state *saved = NULL;
    int code = state_file_load(m, &saved, err);
    if (code != 0)
        return code;
    if (saved == NULL)
        saved = state_new(mountpaths_cluster(m));
    struct state_sync *k = xcalloc(1, sizeof *k);
    k->mountpaths = m;
    k->target_id = target_id;
    k->hooks = *hooks;
    pthread_mutex_init(&k->turn, NULL);
    set_placement(k, saved);
    set_owners(k, saved);
    k->holder = state_holder_new(saved);
    *out = k;
    *holder = k->holder;
    return 0;
}

void state_sync_free(struct state_sync *k)
{
    if (k == NULL)
        return;
    state_holder_free(k->holder);
    pthread_mutex_destroy(&k->turn);
    free(k);
}

void state_sync_quiet(struct state_sync *k)
{
    pthread_mutex_lock(&k->turn);
    k->quiet = true;
    pthread_mutex_unlock(&k->turn);
}

bool state_sync_has_state(struct state_sync *k)
{
    _cleanup_state_ const struct cluster_state *s = state_current(k->holder);
    return s->version > 0;
}

void state_sync_placement(struct state_sync *k, uint64_t *term, uint64_t *version)
{
    *term = atomic_load(&k->placement_term);
    *version = atomic_load(&k->placement_version);
}

void state_sync_owners(struct state_sync *k, uint64_t *term, uint64_t *version)
{
    *term = atomic_load(&k->owners_term);
    *version = atomic_load(&k->owners_version);
}

/* The first state that it takes in says whose the mountpaths are. */
static int belong_to(struct state_sync *k, const struct cluster_state *s, struct error *err)
{
    const char *ours = mountpaths_cluster(k->mountpaths);
    return *ours == '\0' ? mountpaths_set_cluster(k->mountpaths, s->cluster_id, err) : 0;
}

static bool places_alike(const struct cluster_state *a, const struct cluster_state *b)
{
    return a->smap.version == b->smap.version && a->bmd.version == b->bmd.version;
}

static int take_in_turn(struct state_sync *k, const struct cluster_state *s, struct error *err)
{
    _cleanup_state_ const struct cluster_state *old = state_current(k->holder);
    bool newer;
    int code = state_accept(old, s, &newer, err);
    if (code != 0 || !newer || (code = belong_to(k, s, err)) != 0)
        return code;
    /* With full disks it is in force all the same: to go on with an older one would be worse, and
     * after a restart the newest is fetched again. */
    if (state_file_save(k->mountpaths, s) == 0)
        log_error("cluster state saved nowhere", lu64("version", s->version));
    else if (old->version == 0)
        boot_id_forget(k->mountpaths);
    /* Before it is in force: nobody who has the new state still hears who knows the old owners. */
    if (owners_are_news(old, s, k->target_id))
        set_owners(k, s);
    if (!places_alike(s, old))
        set_placement(k, s);
    state_advance(k->holder, s);
    metric_set(metric_get(M_cluster_state_version, NULL), (int64_t)s->version);
    log_debug("cluster state", lu64("term", s->term), lu64("version", s->version));
    k->told = true;
    if (!k->quiet)
        k->hooks.changed(k->hooks.ctx, s);
    return 0;
}

void state_sync_tell_again(struct state_sync *k)
{
    pthread_mutex_lock(&k->turn);
    _cleanup_state_ const struct cluster_state *s = state_current(k->holder);
    if (k->told && !k->quiet)
        k->hooks.changed(k->hooks.ctx, s);
    pthread_mutex_unlock(&k->turn);
}

int state_sync_take(struct state_sync *k, const struct cluster_state *s, struct error *err)
{
    pthread_mutex_lock(&k->turn);
    int code = take_in_turn(k, s, err);
    pthread_mutex_unlock(&k->turn);
    return code;
}

int state_sync_take_json(struct state_sync *k, const char *text, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    struct cluster_state *s = NULL;
    int code = json_parse(text, len, &doc, err);
    if (code == 0)
        code = state_from_json(doc, &s, err);
    if (code == 0)
        code = state_sync_take(k, s, err);
    state_unref(s);
    return code;
}

int state_sync_take_push(struct state_sync *k, const char *text, size_t len, struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(k->holder);
    struct cluster_state *s = NULL;
    if (now->version == 0)
        return 0;
    int code = push_body_read(now, text, len, &s, err);
    if (code == 0 && s != NULL)
        code = state_sync_take(k, s, err);
    state_unref(s);
    return code;
}

struct push_reply state_sync_reply(struct state_sync *k)
{
    _cleanup_state_ const struct cluster_state *s = state_current(k->holder);
    return (struct push_reply){.term = s->term, .version = s->version, .deltas = true};
}

int state_sync_renew_json(struct state_sync *k, const char *text, size_t len, struct error *err)
{
    return state_sync_has_state(k) ? state_sync_take_json(k, text, len, err) : 0;
}
