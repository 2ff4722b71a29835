/*              elected: load, begin a term
 *   follower ──────────────────────────────▶ primary
 *      ▲  └─ could not begin: resign           │
 *      └───────────────────────────────────────┘
 *         not elected any more: end all parts
 *
 * That commits stop at once when a lease is lost does not depend on this thread: see
 * proxy_is_primary() and proxy/metastore/metastore.h. */
#include "proxy/primary/candidate.h"

#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/thread.h"
#include "proxy/primary/follower.h"
#include "proxy/primary/migration.h"
#include "proxy/primary/primary.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/root.h"
#include "proxy/primary/state_file.h"
#include "proxy/primary/term.h"

struct candidate {
    struct proxy *proxy;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool news;
    bool stopping;
    uint64_t leads; /* the election under which it is primary; 0: none.  The thread's */
};

static void changed(void *arg)
{
    struct candidate *c = arg;
    pthread_mutex_lock(&c->lock);
    c->news = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* --- documents ------------------------------------------------------------------------------- */

/* A migration was cut short before they came here (proxy/primary/migration.h). */
static int take_along(const struct proxy *p, const struct cluster_state *now,
                      struct cluster_state **s, struct error *err)
{
    int r = migration_source(p, s, err);
    if (r != 0 || *s == NULL)
        return r;
    if (strcmp((*s)->cluster_id, now->cluster_id) == 0 && state_compare(now, *s) <= 0) {
        log_info("taking the documents along", lu64("term", (*s)->term),
                 lu64("version", (*s)->version));
        return 0;
    }
    state_unref(*s);
    *s = NULL;
    return 0;
}

static int begin_documents(const struct proxy *p, const struct cluster_state *now,
                           struct primary_base *base, struct error *err)
{
    struct cluster_state *s = NULL;
    int r = 0;
    base->is_first = true;
    if (p->params.import[0] != '\0')
        r = state_file_read(p->params.import, &s, err);
    else if ((r = take_along(p, now, &s, err)) == 0 && s == NULL)
        r = term_check_base(now, NULL, p->params.etcd_prefix, err);
    if (r != 0)
        return r;
    base->next_epoch = s != NULL;
    if (s == NULL) {
        char id[16];
        random_id("c-", id);
        s = state_new(id);
        log_info("a new cluster", lstr("cluster", id));
    }
    base->state = s;
    return 0;
}

static int check_documents(const struct proxy *p, const struct cluster_state *now,
                           const struct cluster_state *s, struct error *err)
{
    if (p->params.import[0] != '\0' && !atomic_load(&p->ready))
        return error_set(err, E_EXISTS,
                         "--import: there are documents below '%s' in etcd already; it is for an "
                         "empty prefix",
                         p->params.etcd_prefix);
    return term_check_base(now, s, p->params.etcd_prefix, err);
}

static int documents(struct proxy *p, struct primary_base *base, struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    struct cluster_state *s = NULL;
    int r = p->metastore->ops->load(p->metastore, &s, err);
    if (r != 0)
        return r;
    base->state = s;
    return s == NULL ? begin_documents(p, now, base, err) : check_documents(p, now, s, err);
}

/* --- roles ----------------------------------------------------------------------------------- */

static void close_follower(void *arg)
{
    struct proxy *p = arg;
    follower_close(p->follower);
}

static void open_follower(void *arg)
{
    struct proxy *p = arg;
    follower_open(p->follower);
}

static int begin(struct proxy *p, uint64_t election, struct error *err)
{
    struct primary_base base = {0};
    int r = documents(p, &base, err);
    if (r == 0) {
        loop_call(p->loop, close_follower, p);
        if ((r = primary_begin(p, &base, election, err)) != 0)
            loop_call(p->loop, open_follower, p);
        else
            migration_finished(p);
    }
    state_unref(base.state);
    return r;
}

/* No time makes these good. */
static bool is_final(int code)
{
    return code == E_WRONG_CLUSTER || code == E_STALE_MAP || code == E_CORRUPT ||
           code == E_EXISTS || code == E_NODE_STATE;
}

static void try_to_lead(struct candidate *c, uint64_t election)
{
    struct proxy *p = c->proxy;
    struct error err = ERROR_INIT;
    if (begin(p, election, &err) == 0) {
        c->leads = election;
        log_info("begins as primary", lu64("election", election));
        root_soon(p);
        proxy_start_succeeded(p);
        return;
    }
    log_error("elected, but cannot be primary", lerr(&err));
    p->metastore->ops->resign(p->metastore);
    if (is_final(err.code))
        proxy_start_failed(p, &err);
}

static void stop_leading(struct candidate *c)
{
    if (c->leads == 0)
        return;
    primary_end(c->proxy);
    loop_call(c->proxy->loop, open_follower, c->proxy);
    log_info("a follower from now on", lu64("election", c->leads));
    c->leads = 0;
}

/* False when it stops. */
static bool await_news(struct candidate *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->news && !c->stopping)
        pthread_cond_wait(&c->wake, &c->lock);
    c->news = false;
    bool goes_on = !c->stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void *run(void *arg)
{
    struct candidate *c = arg;
    struct metastore *m = c->proxy->metastore;
    while (await_news(c)) {
        uint64_t election = m->ops->election(m);
        if (election != c->leads)
            stop_leading(c);
        if (election != 0 && c->leads == 0)
            try_to_lead(c, election);
    }
    stop_leading(c);
    return NULL;
}

/* --- starting -------------------------------------------------------------------------------- */

int candidate_start(struct proxy *p, struct candidate **out, struct error *err)
{
    const struct metastore_primary self = {
        .id = (char *)p->id, .public_url = p->public_url, .control_url = p->control_url};
    struct candidate *c = xcalloc(1, sizeof *c);
    c->proxy = p;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    *out = c;
    int r = thread_start("role", run, c, &c->thread, err);
    c->running = r == 0;
    if (r != 0)
        return r;
    return p->metastore->ops->campaign(p->metastore, p->params.electable ? &self : NULL, changed, c,
                                       err);
}

void candidate_stop(struct candidate *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->running)
        pthread_join(c->thread, NULL);
    c->running = false;
    c->proxy->metastore->ops->withdraw(c->proxy->metastore);
}

void candidate_free(struct candidate *c)
{
    if (c == NULL)
        return;
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
