/* The metastore in etcd: an election under a lease, and changes that the election fences.
 *
 * Which call of the election comes next, and what its answer means, proxy/metastore/election.h
 * decides; a thread makes them, of its own, so that nothing else keeps a lease from being renewed.
 * Nothing depends on clocks, for every change is fenced (proxy/metastore/etcd_documents.h).
 *
 * A change whose answer does not come is sent again, to the next member, until an answer says what
 * became of it: as it stands in the store it cannot be made twice.  Where none comes until the
 * lease is over, or for commit_timeout, it is in doubt, and this proxy is the primary no longer:
 * the next one reads what was made of it before it answers anything. */
#include "proxy/metastore/etcd.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "proxy/metastore/election.h"
#include "proxy/metastore/etcd_documents.h"
#include "proxy/metastore/metastore.h"

enum {
    PAGE_KEYS = 500,
    LOAD_TRIES = 5, /* compacted meanwhile */
    PAUSE_MS = 50,  /* after a failed attempt */
};

struct etcd_store {
    struct metastore base;
    struct etcd_client *client;
    char *prefix;
    char *primary_key;
    uint64_t ttl_ms, commit_timeout_ms, request_max;
    struct metastore_primary self;
    void (*changed)(void *arg);
    void *changed_arg;
    pthread_t thread;
    bool running;
    bool failing;         /* etcd did not answer the thread's last call */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool closing;
    struct election election;
    uint64_t told; /* the election of which changed() has told */
    enum metastore_known known;
    struct metastore_primary primary;
    /* The last load's or commit's; one of these runs at a time. */
    struct etcd_fence fence;
};

static struct etcd_store *store(struct metastore *m)
{
    return (struct etcd_store *)m; /* base is its first member */
}

/* --- waiting --------------------------------------------------------------------------------- */

static void pause_locked(struct etcd_store *e, uint64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

/* False when the store is being closed. */
static bool pause_for(struct etcd_store *e, uint64_t ms)
{
    pthread_mutex_lock(&e->lock);
    if (!e->closing)
        pause_locked(e, ms);
    bool open = !e->closing;
    pthread_mutex_unlock(&e->lock);
    return open;
}

static uint64_t attempt_ms(const struct etcd_store *e)
{
    return e->ttl_ms / 3;
}

/* --- the election, as others see it ----------------------------------------------------------- */

static uint64_t etcd_election(struct metastore *m)
{
    struct etcd_store *e = store(m);
    pthread_mutex_lock(&e->lock);
    uint64_t elected = election_held(&e->election, clock_ms());
    pthread_mutex_unlock(&e->lock);
    return elected;
}

static void copy_primary(const struct metastore_primary *from, struct metastore_primary *to)
{
    *to = (struct metastore_primary){.id = xstrdup(from->id),
                                     .public_url = xstrdup(from->public_url),
                                     .control_url = xstrdup(from->control_url)};
}

static enum metastore_known etcd_primary(struct metastore *m, struct metastore_primary *out)
{
    struct etcd_store *e = store(m);
    pthread_mutex_lock(&e->lock);
    enum metastore_known known = e->known;
    if (known == PRIMARY_KNOWN)
        copy_primary(&e->primary, out);
    pthread_mutex_unlock(&e->lock);
    return known;
}

static void give_up(struct metastore *m, void (*how)(struct election *e))
{
    struct etcd_store *e = store(m);
    pthread_mutex_lock(&e->lock);
    how(&e->election);
    pthread_cond_broadcast(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

static void etcd_resign(struct metastore *m)
{
    give_up(m, election_resign);
}

static void etcd_withdraw(struct metastore *m)
{
    give_up(m, election_withdraw);
}

/* Takes what `p` holds. */
static void note_primary(struct etcd_store *e, enum metastore_known known,
                         struct metastore_primary *p)
{
    pthread_mutex_lock(&e->lock);
    bool is_news = known != e->known || (known == PRIMARY_KNOWN &&
                                         (strcmp(p->id, e->primary.id) != 0 ||
                                          strcmp(p->control_url, e->primary.control_url) != 0));
    if (is_news) {
        struct metastore_primary old = e->primary;
        e->known = known;
        e->primary = *p;
        *p = old;
    }
    pthread_mutex_unlock(&e->lock);
    if (is_news)
        e->changed(e->changed_arg);
}

/* --- observing ------------------------------------------------------------------------------- */

static int primary_of_value(struct buf *value, struct metastore_primary *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *id;
    const char *public_url;
    const char *control_url;
    int r;
    if ((r = json_parse(buf_str(value), value->len, &doc, err)) != 0 ||
        (r = json_need_str(doc, "", "id", &id, err)) != 0 ||
        (r = json_need_str(doc, "", "public_url", &public_url, err)) != 0 ||
        (r = json_need_str(doc, "", "control_url", &control_url, err)) != 0)
        return r;
    *out = (struct metastore_primary){
        .id = xstrdup(id), .public_url = xstrdup(public_url), .control_url = xstrdup(control_url)};
    return 0;
}

static int get_primary(struct etcd_store *e, struct etcd_kvs *out, struct error *err)
{
    _cleanup_free_ char *end = etcd_key(e->prefix, "primary0");
    _cleanup_json_ json_t *body = etcd_range(e->primary_key, end, 0, 1);
    _cleanup_json_ json_t *reply = NULL;
    int r = etcd_call(e->client, "/v3/kv/range", body, attempt_ms(e), &reply, err);
    return r != 0 ? r : etcd_kvs_parse(reply, out, err);
}

static int observe(struct etcd_store *e, struct election_answer *a, struct error *err)
{
    _cleanup_(metastore_primary_done)
    struct metastore_primary p = {0};
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs kvs = {0};
    enum metastore_known known = PRIMARY_UNKNOWN;
    int r = get_primary(e, &kvs, err);
    if (r == 0 && kvs.count == 0)
        known = PRIMARY_NONE;
    else if (r == 0 && (r = primary_of_value(&kvs.kvs[0].value, &p, err)) == 0)
        known = PRIMARY_KNOWN;
    a->nobody = known == PRIMARY_NONE;
    note_primary(e, known, &p);
    return r;
}

/* --- leases ---------------------------------------------------------------------------------- */

static json_t *lease_body(const char *field, uint64_t lease)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)lease);
    return json_pack("{s:s}", field, text);
}

static int grant(struct etcd_store *e, struct election_answer *a, struct error *err)
{
    _cleanup_json_ json_t *body = lease_body("TTL", (e->ttl_ms + 999) / 1000);
    _cleanup_json_ json_t *reply = NULL;
    int r;
    if ((r = etcd_call(e->client, "/v3/lease/grant", body, attempt_ms(e), &reply, err)) != 0 ||
        (r = etcd_u64(reply, "ID", &a->lease, err)) != 0)
        return r;
    return etcd_u64(reply, "TTL", &a->ttl_s, err);
}

/* E_NOT_FOUND: etcd has ended it. */
static int renew(struct etcd_store *e, const struct election_step *step, struct election_answer *a,
                 struct error *err)
{
    _cleanup_json_ json_t *body = lease_body("ID", step->lease);
    _cleanup_json_ json_t *reply = NULL;
    json_t *result = NULL;
    int r;
    if ((r = etcd_call(e->client, "/v3/lease/keepalive", body, step->timeout_ms, &reply, err)) !=
            0 ||
        (r = json_get_object(reply, "", "result", &result, err)) != 0)
        return r;
    if (result != NULL && (r = etcd_u64(result, "TTL", &a->ttl_s, err)) != 0)
        return r;
    return a->ttl_s != 0 ? 0 : error_set(err, E_NOT_FOUND, "etcd has ended the lease");
}

static void give_back(struct etcd_store *e, uint64_t lease)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *body = lease_body("ID", lease);
    _cleanup_json_ json_t *reply = NULL;
    int r = etcd_call(e->client, "/v3/lease/revoke", body, attempt_ms(e), &reply, &err);
    if (r != 0 && r != E_NOT_FOUND)
        log_warn("lease not given back", lerr(&err));
}

/* --- the campaign ---------------------------------------------------------------------------- */

/* The value of P/primary, which no other campaign writes. */
static char *campaign_value(const struct etcd_store *e, uint64_t lease)
{
    _cleanup_free_ char *number = xprintf("%llu", (unsigned long long)lease);
    _cleanup_json_ json_t *value =
        json_pack("{s:s, s:s, s:s, s:s}", "id", e->self.id, "lease", number, "public_url",
                  e->self.public_url, "control_url", e->self.control_url);
    return json_text(value);
}

static json_t *campaign_body(const struct etcd_store *e, const char *value, uint64_t lease)
{
    json_t *compare = json_pack("[o]", etcd_if_created(e->primary_key, 0));
    json_t *put = json_pack("[o]", etcd_put(e->primary_key, value, strlen(value), lease));
    return etcd_txn(compare, put, json_pack("[o]", etcd_get(e->primary_key)));
}

/* An earlier attempt whose answer was lost may have won.  0: another proxy has. */
static int campaign_result(const char *value, json_t *reply, uint64_t *elected, struct error *err)
{
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs now = {0};
    bool won;
    int r = etcd_txn_parse(reply, &won, elected, err);
    if (r != 0 || won)
        return r;
    *elected = 0;
    if ((r = etcd_txn_kvs_parse(reply, 0, &now, err)) != 0)
        return r;
    if (now.count > 0 && strcmp(buf_str(&now.kvs[0].value), value) == 0)
        *elected = now.kvs[0].create_revision;
    return 0;
}

/* 0 with a->elected 0: another one was faster. */
static int stand(struct etcd_store *e, uint64_t lease, struct election_answer *a, struct error *err)
{
    _cleanup_free_ char *value = campaign_value(e, lease);
    _cleanup_json_ json_t *body = campaign_body(e, value, lease);
    _cleanup_json_ json_t *reply = NULL;
    int r = etcd_call(e->client, "/v3/kv/txn", body, attempt_ms(e), &reply, err);
    return r != 0 ? r : campaign_result(value, reply, &a->elected, err);
}

/* --- the thread ------------------------------------------------------------------------------ */

/* With the lock held: the election that others are to be told of, now that it has begun or ended.
 */
static bool role_changed(struct etcd_store *e, uint64_t *before, uint64_t *now)
{
    *before = e->told;
    *now = e->election.elected;
    e->told = *now;
    if (*before != *now && *now == 0)
        e->known = PRIMARY_UNKNOWN;
    return *before != *now;
}

static void tell_role(struct etcd_store *e)
{
    uint64_t before;
    uint64_t now;
    pthread_mutex_lock(&e->lock);
    bool changed = role_changed(e, &before, &now);
    pthread_mutex_unlock(&e->lock);
    if (!changed)
        return;
    if (now != 0)
        log_info("elected primary", lu64("election", now));
    else
        log_info("no longer primary", lu64("election", before));
    e->changed(e->changed_arg);
}

static void note_reached(struct etcd_store *e, int code, const struct error *err)
{
    bool reached = code == 0 || code == E_NOT_FOUND;
    if (!reached && !e->failing)
        log_warn("etcd does not answer", lerr(err));
    else if (reached && e->failing)
        log_info("etcd answers again");
    e->failing = !reached;
}

static struct election_answer make_call(struct etcd_store *e, const struct election_step *step)
{
    struct election_answer a = {.sent_ms = clock_ms()};
    struct error err = ERROR_INIT;
    if (step->call == ELECTION_OBSERVE)
        a.code = observe(e, &a, &err);
    else if (step->call == ELECTION_GRANT)
        a.code = grant(e, &a, &err);
    else if (step->call == ELECTION_STAND)
        a.code = stand(e, step->lease, &a, &err);
    else if (step->call == ELECTION_RENEW)
        a.code = renew(e, step, &a, &err);
    else
        give_back(e, step->lease);
    if (step->call != ELECTION_REVOKE)
        note_reached(e, a.code, &err);
    return a;
}

static struct election_step await_step(struct etcd_store *e)
{
    struct election_step step;
    pthread_mutex_lock(&e->lock);
    while ((step = election_next(&e->election, clock_ms())).call == ELECTION_WAIT)
        pause_locked(e, step.wait_ms);
    pthread_mutex_unlock(&e->lock);
    return step;
}

static void *run(void *arg)
{
    struct etcd_store *e = arg;
    for (struct election_step step; (step = await_step(e)).call != ELECTION_END;) {
        tell_role(e);
        struct election_answer a = make_call(e, &step);
        pthread_mutex_lock(&e->lock);
        election_answered(&e->election, &a, clock_ms());
        pthread_mutex_unlock(&e->lock);
        tell_role(e);
    }
    return NULL;
}

static int etcd_campaign(struct metastore *m, const struct metastore_primary *self,
                         void (*changed)(void *arg), void *arg, struct error *err)
{
    struct etcd_store *e = store(m);
    e->changed = changed;
    e->changed_arg = arg;
    const struct election_rules rules = {.ttl_ms = e->ttl_ms, .stands = self != NULL};
    pthread_mutex_lock(&e->lock); /* others may ask already */
    election_init(&e->election, &rules);
    pthread_mutex_unlock(&e->lock);
    if (self != NULL)
        copy_primary(self, &e->self);
    int r = thread_start("election", run, e, &e->thread, err);
    e->running = r == 0;
    return r;
}

/* --- documents ------------------------------------------------------------------------------- */

/* Reads are repeated for as long as a commit would be. */
static int call_until(struct etcd_store *e, const char *path, const json_t *body, uint64_t end_ms,
                      json_t **reply, struct error *err)
{
    int r;
    do {
        r = etcd_call(e->client, path, body, attempt_ms(e), reply, err);
    } while (r == E_IN_DOUBT && clock_ms() < end_ms && pause_for(e, PAUSE_MS));
    return r;
}

static int next_page(struct etcd_store *e, struct etcd_gather *g, const char *first,
                     uint64_t revision, struct etcd_kvs *page, struct error *err)
{
    /* '0' follows '/'. */
    _cleanup_free_ char *end = xprintf("%s0", e->prefix);
    _cleanup_json_ json_t *body = etcd_range(first, end, revision, PAGE_KEYS);
    _cleanup_json_ json_t *reply = NULL;
    int r;
    if ((r = call_until(e, "/v3/kv/range", body, clock_ms() + e->commit_timeout_ms, &reply, err)) !=
            0 ||
        (r = etcd_kvs_parse(reply, page, err)) != 0)
        return r;
    return etcd_gather_take(g, page, err);
}

/* All pages as of one revision.  E_RANGE: it was compacted meanwhile. */
static int gather(struct etcd_store *e, struct etcd_gather *g, struct error *err)
{
    _cleanup_free_ char *first = etcd_key(e->prefix, "");
    uint64_t revision = 0;
    for (bool more = true; more;) {
        _cleanup_(etcd_kvs_done)
        struct etcd_kvs page = {0};
        int r = next_page(e, g, first, revision, &page, err);
        if (r != 0)
            return r;
        if (revision == 0)
            revision = page.revision;
        more = page.more && page.count > 0;
        if (more) {
            free(first);
            /* The least key that follows the last one, but for keys that nobody makes. */
            first = xprintf("%s\x01", page.kvs[page.count - 1].key);
        }
    }
    return 0;
}

static int etcd_load(struct metastore *m, struct cluster_state **out, struct error *err)
{
    struct etcd_store *e = store(m);
    e->fence = (struct etcd_fence){.prefix = e->prefix, .election = etcd_election(m)};
    int r = E_RANGE;
    for (int i = 0; r == E_RANGE && i < LOAD_TRIES; i++) {
        _cleanup_(etcd_gather_done)
        struct etcd_gather g = {.prefix = e->prefix};
        if ((r = gather(e, &g, err)) == 0 && (r = etcd_gather_state(&g, out, err)) == 0)
            e->fence.head = g.head;
    }
    if (r != 0)
        error_wrap(err, "read the documents");
    return r;
}

/* --- commits --------------------------------------------------------------------------------- */

static int note_verdict(struct etcd_store *e, enum etcd_verdict verdict, uint64_t head,
                        struct error *err)
{
    if (verdict == ETCD_MADE) {
        e->fence.head = head;
        return 0;
    }
    etcd_resign(&e->base);
    if (verdict != ETCD_FOREIGN)
        return error_set(err, E_NOT_PRIMARY,
                         "this proxy is no longer the primary; the change was not made, repeat it");
    log_error("another writer uses this cluster's prefix in etcd", lstr("prefix", e->prefix));
    return error_set(err, E_NOT_PRIMARY,
                     "another program changed the documents below '%s' in etcd; the change "
                     "was not made, repeat it",
                     e->prefix);
}

/* A client of ours can do something about some refusals; the others are between etcd and us. */
static int refused(int code, struct error *err)
{
    if (code == E_TOO_LARGE || code == E_NO_SPACE || code == E_OVERLOAD)
        return code;
    return error_recode(err, E_NET, "the change was not made");
}

static enum election_verdict kind_of(enum etcd_verdict verdict)
{
    return verdict == ETCD_OVERTAKEN ? VERDICT_OVERTAKEN : VERDICT_FINAL;
}

static int commit_attempts(struct etcd_store *e, const json_t *body, const struct cluster_state *to,
                           struct error *err)
{
    struct election_change change = {.end_ms = clock_ms() + e->commit_timeout_ms};
    enum election_outcome outcome;
    do {
        _cleanup_json_ json_t *reply = NULL;
        enum etcd_verdict verdict;
        uint64_t head;
        int r = etcd_call(e->client, "/v3/kv/txn", body, attempt_ms(e), &reply, err);
        bool judged =
            r == 0 && etcd_change_verdict(reply, &e->fence, to, &verdict, &head, err) == 0;
        bool leads = etcd_election(&e->base) == e->fence.election;
        outcome = election_change_ended(&change, r, judged ? kind_of(verdict) : VERDICT_NONE, leads,
                                        clock_ms());
        if (outcome == CHANGE_KNOWN) {
            if (err != NULL)
                *err = ERROR_INIT; /* an attempt before may have left one */
            return note_verdict(e, verdict, head, err);
        }
        if (outcome == CHANGE_REFUSED)
            return refused(r, err);
    } while (outcome == CHANGE_AGAIN && pause_for(e, PAUSE_MS));
    etcd_resign(&e->base);
    return error_recode(err, E_IN_DOUBT,
                        "whether the change was made is not known; repeating it is safe");
}

static int etcd_commit(struct metastore *m, const struct cluster_state *from,
                       const struct cluster_state *to, struct error *err)
{
    struct etcd_store *e = store(m);
    _cleanup_json_ json_t *body = NULL;
    if (e->fence.election == 0 || etcd_election(m) != e->fence.election)
        return error_set(err, E_NOT_PRIMARY, "this proxy is not the primary any more; repeat it");
    int r = etcd_change(&e->fence, from, to, e->request_max, &body, err);
    return r != 0 ? r : commit_attempts(e, body, to, err);
}

/* --- opening --------------------------------------------------------------------------------- */

static void etcd_close(struct metastore *m)
{
    if (m == NULL)
        return;
    struct etcd_store *e = store(m);
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    election_close(&e->election);
    pthread_cond_broadcast(&e->wake);
    pthread_mutex_unlock(&e->lock);
    if (e->running)
        pthread_join(e->thread, NULL);
    etcd_client_free(e->client);
    metastore_primary_done(&e->primary);
    metastore_primary_done(&e->self);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    free(e->primary_key);
    free(e->prefix);
    free(e);
}

static int etcd_open(const struct metastore_config *config, struct metastore **out,
                     struct error *err)
{
    const struct etcd_store_config *c = config->etcd;
    struct etcd_store *e = xcalloc(1, sizeof *e);
    e->base.ops = &metastore_etcd;
    e->prefix = xstrdup(c->prefix);
    e->primary_key = etcd_key(c->prefix, "primary");
    e->ttl_ms = c->lease_ttl_ms;
    e->commit_timeout_ms = c->commit_timeout_ms;
    e->request_max = c->request_max;
    pthread_mutex_init(&e->lock, NULL);
    condition_init(&e->wake);
    int r = etcd_client_new(&c->endpoints, &e->client, err);
    if (r != 0) {
        etcd_close(&e->base);
        return r;
    }
    *out = &e->base;
    return 0;
}

const struct metastore_ops metastore_etcd = {
    .scheme = "etcd",
    .open = etcd_open,
    .load = etcd_load,
    .commit = etcd_commit,
    .close = etcd_close,
    .campaign = etcd_campaign,
    .election = etcd_election,
    .primary = etcd_primary,
    .resign = etcd_resign,
    .withdraw = etcd_withdraw,
};
