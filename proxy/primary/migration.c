#include "proxy/primary/migration.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/primary/etcd_params.h"
#include "proxy/metastore/moved.h"
#include "proxy/primary/primary.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/term.h"

enum { LOOK_MS = 20 };

static char *metastore_dir(const struct proxy *p)
{
    return xprintf("%s/metastore", p->params.dir);
}

/* --- the election there ----------------------------------------------------------------------- */

static void ignore_news(void *arg)
{
    (void)arg; /* it is looked at now and then */
}

static int stand(struct proxy *p, struct metastore *store, struct error *err)
{
    const struct metastore_primary self = {
        .id = (char *)p->id, .public_url = p->public_url, .control_url = p->control_url};
    return store->ops->campaign(store, &self, ignore_news, NULL, err);
}

/* This proxy's own key may be left from a try that was cut short: that one ends with its lease. */
static int check_rival(const struct proxy *p, struct metastore *store, struct error *err)
{
    _cleanup_(metastore_primary_done)
    struct metastore_primary other = {0};
    if (store->ops->primary(store, &other) != PRIMARY_KNOWN || strcmp(other.id, p->id) == 0)
        return 0;
    return error_set(err, E_EXISTS,
                     "proxy '%s' is the primary there already: stop it until the documents have "
                     "moved",
                     other.id);
}

/* Where nobody answers, the election would not say why it does not come. */
static int check_reached(struct metastore *store, const char *to, struct error *err)
{
    struct cluster_state *found = NULL;
    int r = store->ops->load(store, &found, err);
    state_unref(found);
    return r != 0 ? error_recode(err, r == E_IN_DOUBT ? E_TIMEOUT : r, "%s", to) : 0;
}

static int await_election(struct proxy *p, struct metastore *store, const char *to,
                          uint64_t *election, struct error *err)
{
    uint64_t end_ms = clock_ms() + p->params.call_timeout;
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    int r = 0;
    while (r == 0 && (*election = store->ops->election(store)) == 0) {
        if (clock_ms() >= end_ms)
            return error_set(err, E_TIMEOUT, "%s has not let this proxy lead within %llu ms", to,
                             (unsigned long long)p->params.call_timeout);
        nanosleep(&look, NULL);
        r = check_rival(p, store, err);
    }
    return r;
}

/* --- the fence -------------------------------------------------------------------------------- */

static void set_fence(void *arg)
{
    struct proxy *p = arg;
    p->fenced = true;
}

static void take_fence(void *arg)
{
    struct proxy *p = arg;
    p->fenced = false;
}

/* --- the steps -------------------------------------------------------------------------------- */

struct going {
    struct proxy *proxy;
    struct metastore *store;
    char *dir;
    struct moved mark; /* its texts are borrowed */
    uint64_t election;
};

/* *there: an earlier try, whose end was in doubt, has brought them. */
static int look_there(const struct going *g, bool *there, struct error *err)
{
    struct cluster_state *found = NULL;
    _cleanup_(moved_done)
    struct moved mark = {0};
    int r = g->store->ops->load(g->store, &found, err);
    if (r != 0)
        return r;
    *there = found != NULL && moved_read(g->dir, &mark, NULL) == 0 &&
             strcmp(mark.cluster, found->cluster_id) == 0 &&
             strcmp(mark.prefix, g->mark.prefix) == 0;
    if (found != NULL && !*there)
        r = error_set(err, E_EXISTS,
                      "there are documents of cluster '%s' below '%s' in etcd already: give "
                      "another prefix, or remove them",
                      found->cluster_id, g->mark.prefix);
    state_unref(found);
    return r;
}

static int commit_there(const struct going *g, const struct cluster_state *last, struct error *err)
{
    struct proxy *p = g->proxy;
    _cleanup_state_ const struct cluster_state *next = NULL;
    const struct node self = {
        .id = p->id,
        .role = NODE_PROXY,
        .public_url = p->public_url,
        .control_url = p->control_url,
        .data_url = "",
        .boot = p->boot,
    };
    const struct command cmd = term_begin(last, &self, g->election, true, clock_wall_ms());
    int r = command_apply(last, &cmd, &next, err);
    if (r != 0)
        return r;
    r = g->store->ops->commit(g->store, NULL, next, err);
    (void)fault_errno("migrate.written");
    return r;
}

static int mark_and_commit(struct going *g, struct error *err)
{
    _cleanup_state_ const struct cluster_state *last = state_current(g->proxy->state);
    g->mark.cluster = last->cluster_id;
    g->mark.term = last->term;
    g->mark.version = last->version;
    int r = moved_write(g->dir, &g->mark, err);
    (void)fault_errno("migrate.marked"); /* a place to be killed at */
    if (r == 0)
        r = commit_there(g, last, err);
    if (r == 0 || r == E_IN_DOUBT)
        return r;
    struct error late = ERROR_INIT;
    if (moved_remove(g->dir, &late) != 0)
        log_error("the mark of a migration that failed could not be removed", lerr(&late));
    return r;
}

static void finish(struct going *g)
{
    struct proxy *p = g->proxy;
    migration_finished(p);
    atomic_store(&p->moved, true);
    primary_end(p);
    log_info("the documents have moved", lstr("metastore", g->mark.metastore),
             lstr("prefix", g->mark.prefix));
}

/* Under the election: what comes there now is ours alone. */
static int go(struct going *g, struct error *err)
{
    struct proxy *p = g->proxy;
    bool there;
    int r = look_there(g, &there, err);
    if (r != 0)
        return r;
    loop_call(p->loop, set_fence, p);
    proxy_commit_barrier(p);
    if (!there)
        r = mark_and_commit(g, err);
    if (r == 0)
        finish(g);
    else if (r != E_IN_DOUBT)
        loop_call(p->loop, take_fence, p);
    return r;
}

static int go_elected(struct proxy *p, struct metastore *store, const char *to, const char *prefix,
                      struct error *err)
{
    struct going g = {
        .proxy = p, .store = store, .mark = {.metastore = (char *)to, .prefix = (char *)prefix}};
    int r;
    if ((r = check_reached(store, to, err)) != 0 || (r = stand(p, store, err)) != 0 ||
        (r = await_election(p, store, to, &g.election, err)) != 0)
        return r;
    g.dir = metastore_dir(p);
    r = go(&g, err);
    free(g.dir);
    return r;
}

/* The call that is made again: its reply was lost. */
static int check_moved(const struct proxy *p, const char *to, const char *prefix, struct error *err)
{
    _cleanup_free_ char *dir = metastore_dir(p);
    _cleanup_(moved_done)
    struct moved mark = {0};
    int r = moved_read(dir, &mark, err);
    if (r != 0 || (strcmp(mark.metastore, to) == 0 && strcmp(mark.prefix, prefix) == 0))
        return r;
    return error_set(err, E_EXISTS, "the documents have moved to %s (prefix '%s')", mark.metastore,
                     mark.prefix);
}

int migration_run(struct proxy *p, const char *to, const char *prefix, struct error *err)
{
    const struct etcd_store_config etcd = etcd_params(&p->params, to, prefix);
    const struct metastore_config config = {.etcd = &etcd};
    struct metastore *store = NULL;
    int r;
    if (p->is_shared)
        return error_set(err, E_EXISTS, "the documents are in %s already", p->params.metastore);
    if (atomic_load(&p->moved))
        return check_moved(p, to, prefix, err);
    if (!proxy_is_primary(p))
        return error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary", p->id);
    if ((r = etcd_params_check(&etcd, "the prefix", err)) != 0 ||
        (r = metastore_etcd.open(&config, &store, err)) != 0)
        return r;
    r = go_elected(p, store, to, prefix, err);
    store->ops->close(store);
    return r;
}

/* --- afterwards ------------------------------------------------------------------------------- */

static int load_marked(const char *dir, struct cluster_state **out, struct error *err)
{
    const struct metastore_config config = {.dir = dir, .fold_bytes = UINT64_MAX, .moved_ok = true};
    struct metastore *m = NULL;
    int r = metastore_embedded.open(&config, &m, err);
    if (r != 0)
        return r;
    r = m->ops->load(m, out, err);
    m->ops->close(m);
    return r;
}

static int load_if(const struct proxy *p,
                   bool (*wanted)(const struct proxy *p, const struct moved *mark),
                   struct cluster_state **out, struct error *err)
{
    _cleanup_free_ char *dir = metastore_dir(p);
    _cleanup_(moved_done)
    struct moved mark = {0};
    *out = NULL;
    int r = moved_read(dir, &mark, err);
    if (r == E_NOT_FOUND)
        return 0;
    return r == 0 && wanted(p, &mark) ? load_marked(dir, out, err) : r;
}

static bool is_any(const struct proxy *p, const struct moved *mark)
{
    (void)p;
    (void)mark;
    return true;
}

static bool is_source(const struct proxy *p, const struct moved *mark)
{
    return !mark->done && strcmp(mark->prefix, p->params.etcd_prefix) == 0;
}

int migration_last(const struct proxy *p, struct cluster_state **out, struct error *err)
{
    return load_if(p, is_any, out, err);
}

int migration_source(const struct proxy *p, struct cluster_state **out, struct error *err)
{
    return load_if(p, is_source, out, err);
}

void migration_finished(const struct proxy *p)
{
    _cleanup_free_ char *dir = metastore_dir(p);
    _cleanup_(moved_done)
    struct moved mark = {0};
    struct error err = ERROR_INIT;
    int r = moved_read(dir, &mark, &err);
    if (r == E_NOT_FOUND || mark.done)
        return;
    mark.done = true;
    if (r != 0 || moved_write(dir, &mark, &err) != 0)
        log_warn("the mark of a migration does not say that it is done", lerr(&err));
}
