#include "target/node/member.h"

#include <pthread.h>

#include "access/exposure_gate.h"
#include "common/build.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/node/admit.h"
#include "target/node/state_sync.h"
#include "target/node/member_plan.h"
#include "target/node/own_stats.h"
#include "target/store/quarantine.h"
#include "target/node/quotas.h"
#include "target/node/readiness.h"
#include "target/disk/space_watch.h"
#include "target/node/state_fetch.h"
#include "target/node/target.h"

/* Everything but `target` belongs to the control loop's thread. */
struct member {
    struct target *target;
    struct member_hooks hooks;
    struct loop_timer *timer;
    struct member_plan plan;
    char *last_complaint; /* so that the same failure is logged once */
    bool closing;
    bool quiet; /* it stops: no keepalive follows its word */
    struct own_stats *stats;
    struct state_fetch *fetch;
    pthread_mutex_t lock; /* of what follows */
    struct error refused; /* by the primary, when it was asked last; code 0: it was not */
};

/* --- the one call that is under way: register or keepalive ------------------------------------ */

struct attempt {
    struct member *m;
    enum member_action action;
    size_t candidates;
    uint64_t sent_ms;
    char *url; /* of the proxy */
    char *body;
    char *state_text; /* what register gave */
    size_t state_len;
    struct error err;
};

static void attempt_free(struct attempt *a)
{
    free(a->url);
    free(a->body);
    free(a->state_text);
    free(a);
}

static void complain(struct member *m, struct attempt *a)
{
    const char *what = a->action == MEMBER_REGISTER ? "not registered" : "keepalive not taken";
    if (m->last_complaint != NULL && strcmp(m->last_complaint, a->err.message) == 0)
        return;
    free(m->last_complaint);
    m->last_complaint = xstrdup(a->err.message);
    if (a->err.code == E_ROUTE)
        error_wrap(&a->err, "--join has to be a proxy's control address");
    log_warn(what, lstr("proxy", a->url), lerr(&a->err));
}

static void rejoice(struct member *m, const struct attempt *a)
{
    if (a->action == MEMBER_REGISTER)
        log_info("registered", lstr("proxy", a->url));
    else if (m->last_complaint != NULL)
        log_info("keepalive taken again", lstr("proxy", a->url));
    free(m->last_complaint);
    m->last_complaint = NULL;
}

/* Only an answer to a registration changes it: a primary that does not answer refuses nobody. */
static void note_refusal(struct member *m, const struct attempt *a)
{
    bool refused = readiness_is_refusal(a->err.code);
    if (a->action != MEMBER_REGISTER || (a->err.code != 0 && !refused))
        return;
    pthread_mutex_lock(&m->lock);
    m->refused = refused ? a->err : ERROR_INIT;
    pthread_mutex_unlock(&m->lock);
    target_ready_changed(m->target);
}

bool member_is_refused(struct member *m, struct error *why)
{
    pthread_mutex_lock(&m->lock);
    *why = m->refused;
    pthread_mutex_unlock(&m->lock);
    return why->code != 0;
}

static void attempt_end(struct attempt *a)
{
    struct member *m = a->m;
    if (!m->closing) {
        exposure_gate_hear(m->target->gate, a->err.code);
        note_refusal(m, a);
        if (a->err.code == 0)
            rejoice(m, a);
        else
            complain(m, a);
        uint64_t delay = member_plan_result(&m->plan, a->err.code, a->candidates,
                                            param_live(m->target->params.keepalive_interval));
        if (!m->quiet)
            loop_timer_start(m->timer, delay, 0);
    }
    state_fetch_let_in(m->fetch);
    attempt_free(a);
}

static void attempt_end_posted(void *arg)
{
    attempt_end(arg);
}

static void take_registered_state(void *arg)
{
    struct attempt *a = arg;
    struct target *t = a->m->target;
    (void)fault_errno("member.let_in"); /* a place to be killed at */
    if (state_sync_take_json(t->state_sync, a->state_text, a->state_len, &a->err) == 0)
        a->err = ERROR_INIT;
    loop_post(t->control, attempt_end_posted, a);
}

static void register_done(struct attempt *a, struct http_result *r)
{
    a->state_len = r->body.len;
    a->state_text = buf_steal(&r->body);
    if (pool_submit(a->m->target->workers, take_registered_state, a, &a->err) != 0)
        attempt_end(a);
}

static int keepalive_done(struct attempt *a, struct http_result *r)
{
    _cleanup_json_ json_t *doc = NULL;
    uint64_t term = 0, version = 0, lease_ms = 0;
    int code = json_parse(buf_str(&r->body), r->body.len, &doc, &a->err);
    if (code == 0)
        code = json_need_u64(doc, "", "term", &term, &a->err);
    if (code == 0)
        code = json_need_u64(doc, "", "version", &version, &a->err);
    if (code == 0)
        code = json_get_u64(doc, "", "lease_ms", &lease_ms, &a->err);
    if (code == 0)
        code = quotas_hear(a->m->target->quotas, json_object_get(doc, "quotas"), &a->err);
    if (code != 0)
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(a->m->target->state);
    bool behind = admit_is_newer(term, version, s);
    a->m->plan.behind = behind;
    if (behind)
        state_fetch_begin(a->m->fetch);
    if (!behind || lease_ms == 0) /* what was missed under the newer state is not known here yet */
        a->m->hooks.lease(a->m->target, a->sent_ms, lease_ms);
    return 0;
}

static void attempt_done(void *arg, struct http_result *r)
{
    struct attempt *a = arg;
    int code = http_result_error(r, a->url, &a->err);
    if (code == 0 && a->action == MEMBER_REGISTER && !a->m->closing) {
        register_done(a, r);
        return;
    }
    if (code == 0 && !a->m->closing)
        code = keepalive_done(a, r);
    if (code == 0)
        a->err = ERROR_INIT;
    attempt_end(a);
}

/* The map's entry, and what this node has seen of the cluster: the primary refuses a node of
 * another one, one that has seen more than itself, and one that has forgotten all but its name
 * (unless that is known: lost). */
static json_t *node_doc(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    return json_pack("{ss ss ss ss ss ss sI ss sI ss sI sI sb ss}", "id", t->id, "role",
                     node_role_name(NODE_TARGET), "state", node_state_name(NODE_ACTIVE),
                     "public_url", t->urls[LISTEN_PUBLIC], "control_url", t->urls[LISTEN_CONTROL],
                     "data_url", t->urls[LISTEN_DATA], "weight", (json_int_t)t->params.weight,
                     "boot", t->boot, "since", (json_int_t)0, "cluster", s->cluster_id, "term",
                     (json_int_t)s->term, "version", (json_int_t)s->version, "lost",
                     t->params.mountpath_lost_ok, "exposure", exposure_name(t->exposure));
}

/* A disk that does not say has its errors counted elsewhere. */
static uint64_t quarantine_sum(const struct mountpath_set *set)
{
    uint64_t sum = 0, files;
    for (size_t i = 0; i < set->count; i++)
        sum += quarantine_count(set->all[i], &files, NULL) == 0 ? files : 0;
    return sum;
}

/* Disks that a start has missed, which an operator has not decided about yet. */
static void add_missing(json_t *capacity, const struct roster *r)
{
    json_int_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->members[i].missing && count++ == 0)
            json_object_set_new(capacity, "disk_missing", json_string_escaped(r->members[i].path));
    }
    json_object_set_new(capacity, "disks_missing", json_integer(count));
}

static json_t *stats_doc(const struct member *m)
{
    struct node_stats stats;
    own_stats_read(m->stats, clock_ms(), &stats);
    return node_stats_to_json(&stats);
}

static json_t *keepalive_doc(const struct member *m)
{
    struct target *t = m->target;
    uint64_t total = 0, available = 0;
    struct error err = ERROR_INIT;
    if (mountpaths_capacity(t->mountpaths, &total, &available, &err) != 0)
        log_warn("capacity unknown", lerr(&err));
    struct space_count full = space_watch(t->mountpaths, &t->space);
    atomic_store(&t->is_full, full.out > 0);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    uint64_t resilver = set->settled ? 0 : set->roster->generation;
    size_t missing = mountpath_set_missing(set);
    if (missing > 0) /* others may act in its place as soon as the primary hears that */
        m->hooks.lease(t, 0, 0);
    json_t *capacity = json_pack(
        "{sI sI sI sI sI sI sI}", "total_bytes", (json_int_t)total, "available_bytes",
        (json_int_t)available, "room_bytes", (json_int_t)full.room_bytes, "mountpaths_high",
        (json_int_t)full.high, "mountpaths_out", (json_int_t)full.out, "mountpaths_missing",
        (json_int_t)missing, "quarantined", (json_int_t)quarantine_sum(set));
    add_missing(capacity, set->roster);
    m->hooks.capacity(t, capacity);
    return json_pack("{ss ss ss ss sI sI so sI ss so so*}", "id", t->id, "boot", t->boot, "release",
                     build_release(), "commit", build_commit(), "term", (json_int_t)s->term,
                     "version", (json_int_t)s->version, "capacity", capacity, "resilver",
                     (json_int_t)resilver, "exposure", exposure_name(t->exposure), "stats",
                     stats_doc(m), "quotas", quotas_report(t->quotas));
}

/* The proxy to ask. */
static char *choose_candidate(struct member *m, size_t *count)
{
    _cleanup_state_ const struct cluster_state *s = state_current(m->target->state);
    char **urls;
    *count = member_candidates(s, m->target->params.join, &urls);
    return member_take_turn(urls, *count, m->plan.next);
}

static uint64_t timeout_of(const struct target *t, enum member_action action)
{
    /* A keepalive that hangs for longer would cost the membership that it is to keep. */
    uint64_t keepalive_ms = 2 * param_live(t->params.keepalive_interval);
    if (action == MEMBER_REGISTER || keepalive_ms > t->params.call_timeout)
        return t->params.call_timeout;
    return keepalive_ms > t->params.connect_timeout ? keepalive_ms : t->params.connect_timeout;
}

static void tick(void *arg)
{
    struct member *m = arg;
    struct target *t = m->target;
    struct attempt *a = xcalloc(1, sizeof *a);
    a->m = m;
    a->action = member_plan_action(&m->plan);
    char *proxy = choose_candidate(m, &a->candidates);
    if (proxy == NULL) {
        a->url = xstrdup("");
        error_set(&a->err, E_INVALID, "no proxy is known: --join is empty");
        attempt_end(a);
        return;
    }
    bool registering = a->action == MEMBER_REGISTER;
    a->url = xprintf("%s/v1/cluster/%s", proxy, registering ? "register" : "keepalive");
    free(proxy);
    _cleanup_json_ json_t *doc = registering ? node_doc(t) : keepalive_doc(a->m);
    a->body = json_text(doc);
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const struct http_call call = {.method = HTTP_POST,
                                   .url = a->url,
                                   .headers = headers,
                                   .body = a->body,
                                   .body_len = strlen(a->body),
                                   .reply_max = t->params.state_max,
                                   .total_timeout_ms = timeout_of(t, a->action),
                                   .node = HTTP_ANY_NODE};
    a->sent_ms = clock_boot_ms();
    http_call_start(t->control_client, &call, attempt_done, a);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void make_timer(void *arg)
{
    struct member *m = arg;
    m->timer = loop_timer_new(m->target->control, tick, m);
}

static void start_timer(void *arg)
{
    struct member *m = arg;
    loop_timer_start(m->timer, 0, 0);
}

int member_new(struct target *t, const struct member_hooks *hooks, struct member **out,
               struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (*t->params.join == '\0' && s->version == 0)
        return error_set(err, E_INVALID, "--join is empty, and this target has not joined before");
    struct member *m = xcalloc(1, sizeof *m);
    m->target = t;
    m->hooks = *hooks;
    pthread_mutex_init(&m->lock, NULL);
    m->refused = ERROR_INIT;
    m->stats = own_stats_new();
    m->fetch = state_fetch_new(t);
    loop_call(t->control, make_timer, m);
    *out = m;
    return 0;
}

void member_refresh(struct member *m, const char *wanted, void (*fn)(void *arg), void *arg)
{
    state_fetch_wait(m->fetch, wanted, fn, arg);
}

void member_state_taken(struct member *m)
{
    state_fetch_taken(m->fetch);
}

void member_begin(struct member *m)
{
    loop_call(m->target->control, start_timer, m);
}

static void quiet_posted(void *arg)
{
    struct member *m = arg;
    m->quiet = true;
    loop_timer_stop(m->timer);
}

void member_quiet(struct member *m)
{
    loop_call(m->target->control, quiet_posted, m);
}

static void close_posted(void *arg)
{
    struct member *m = arg;
    m->closing = true;
    loop_timer_free(m->timer);
    m->timer = NULL;
    state_fetch_close(m->fetch);
}

void member_close(struct member *m)
{
    if (m != NULL)
        loop_call(m->target->control, close_posted, m);
}

void member_free(struct member *m)
{
    if (m == NULL)
        return;
    state_fetch_free(m->fetch);
    own_stats_free(m->stats);
    free(m->last_complaint);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
