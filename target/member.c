#include "target/member.h"

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/admit.h"
#include "target/copies.h"
#include "target/keeper.h"
#include "target/member_plan.h"
#include "target/quarantine.h"
#include "target/space_watch.h"
#include "target/target.h"

/* Who waits for a newer state. */
struct waiter {
    struct waiter *next;
    struct member_wish wish;
    void (*fn)(void *arg);
    void *arg;
};

/* Everything but `target` belongs to the control loop's thread. */
struct member {
    struct target *target;
    struct loop_timer *timer;
    struct member_plan plan;
    char *last_complaint; /* so that the same failure is logged once */
    bool closing;
    bool fetching;
    struct waiter *served; /* by the fetch that is under way */
    struct waiter *late;   /* came after it had begun: by the next one */
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

static void fetch(struct member *m);
static void waiters_go_on(struct member *m, struct waiter *list);

/* Who was sent here before this target had its first state: it has one now, or will not have it
 * soon. */
static void serve_early(struct member *m)
{
    if (m->late == NULL || m->fetching || m->closing)
        return;
    if (keeper_has_state(m->target->keeper))
        fetch(m);
    else
        waiters_go_on(m, steal(m->late));
}

static void attempt_end(struct attempt *a)
{
    struct member *m = a->m;
    if (!m->closing) {
        if (a->err.code == 0)
            rejoice(m, a);
        else
            complain(m, a);
        uint64_t delay = member_plan_result(&m->plan, a->err.code, a->candidates,
                                            param_live(m->target->params.keepalive_interval));
        loop_timer_start(m->timer, delay, 0);
    }
    serve_early(m);
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
    if (keeper_take_json(t->keeper, a->state_text, a->state_len, &a->err) == 0)
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
    if (code != 0)
        return code;
    copies_lease(a->m->target->copies, a->sent_ms, lease_ms);
    _cleanup_state_ const struct cluster_state *s = state_current(a->m->target->state);
    if (term > s->term || (term == s->term && version > s->version))
        fetch(a->m);
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
    return json_pack("{ss ss ss ss ss ss sI ss sI ss sI sI sb}", "id", t->id, "role",
                     node_role_name(NODE_TARGET), "state", node_state_name(NODE_ACTIVE),
                     "public_url", t->urls[LISTEN_PUBLIC], "control_url", t->urls[LISTEN_CONTROL],
                     "data_url", t->urls[LISTEN_DATA], "weight", (json_int_t)t->params.weight,
                     "boot", t->boot, "since", (json_int_t)0, "cluster", s->cluster_id, "term",
                     (json_int_t)s->term, "version", (json_int_t)s->version, "lost",
                     t->params.mountpath_lost_ok);
}

/* A disk that does not say has its errors counted elsewhere. */
static uint64_t quarantine_sum(const struct mountpath_set *set)
{
    uint64_t sum = 0, files;
    for (size_t i = 0; i < set->count; i++)
        sum += quarantine_count(set->all[i], &files, NULL) == 0 ? files : 0;
    return sum;
}

static json_t *keepalive_doc(struct target *t)
{
    uint64_t total = 0, available = 0;
    struct error err = ERROR_INIT;
    if (mountpaths_capacity(t->mountpaths, &total, &available, &err) != 0)
        log_warn("capacity unknown", lerr(&err));
    struct space_count full = space_watch(t->mountpaths, &t->space);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    uint64_t resilver = set->settled ? 0 : set->roster->generation;
    return json_pack("{ss ss sI sI s{sI sI sI sI sI sI} sI}", "id", t->id, "boot", t->boot, "term",
                     (json_int_t)s->term, "version", (json_int_t)s->version, "capacity",
                     "total_bytes", (json_int_t)total, "available_bytes", (json_int_t)available,
                     "room_bytes", (json_int_t)full.room_bytes, "mountpaths_high",
                     (json_int_t)full.high, "mountpaths_out", (json_int_t)full.out, "quarantined",
                     (json_int_t)quarantine_sum(set), "resilver", (json_int_t)resilver);
}

/* One of them, in turn; the others are freed.  NULL where there is none. */
static char *take_turn(char **urls, size_t count, size_t turn)
{
    char *chosen = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == turn % count)
            chosen = urls[i];
        else
            free(urls[i]);
    }
    free(urls);
    return chosen;
}

/* The proxy to ask. */
static char *choose_candidate(struct member *m, size_t *count)
{
    _cleanup_state_ const struct cluster_state *s = state_current(m->target->state);
    char **urls;
    *count = member_candidates(s, m->target->params.join, &urls);
    return take_turn(urls, *count, m->plan.next);
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
    _cleanup_json_ json_t *doc = registering ? node_doc(t) : keepalive_doc(t);
    a->body = json_text(doc);
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const struct http_call call = {.method = HTTP_POST,
                                   .url = a->url,
                                   .headers = headers,
                                   .body = a->body,
                                   .body_len = strlen(a->body),
                                   .reply_max = t->params.state_max,
                                   .total_timeout_ms = timeout_of(t, a->action)};
    a->sent_ms = clock_ms();
    http_call_start(t->control_client, &call, attempt_done, a);
}

/* --- fetching the state -------------------------------------------------------------------------
 *
 * The primary first.  Where it does not answer, or has not what somebody waits for, the other
 * proxies and targets: a primary may have died when one of them alone had got its last change. */

struct fetched {
    struct member *m;
    size_t asked, candidates;
    char *url;
    char *text;
    size_t len;
    bool news; /* by any of those that were asked */
    struct error err;
};

static void waiters_go_on(struct member *m, struct waiter *list)
{
    while (list != NULL) {
        struct waiter *w = list;
        list = w->next;
        if (pool_submit(m->target->workers, w->fn, w->arg, NULL) != 0)
            w->fn(w->arg);
        free(w);
    }
}

static void fetch_ask(struct fetched *f);

static bool all_granted(const struct fetched *f)
{
    _cleanup_state_ const struct cluster_state *now = state_current(f->m->target->state);
    for (const struct waiter *w = f->m->served; w != NULL; w = w->next) {
        if (!member_wish_granted(&w->wish, now, f->news))
            return false;
    }
    return true;
}

static bool fetch_goes_on(const struct fetched *f)
{
    bool over = f->m->served != NULL ? all_granted(f) : f->err.code == 0;
    return !over && !f->m->closing && f->asked < f->candidates;
}

static void fetch_end(struct fetched *f)
{
    struct member *m = f->m;
    if (f->err.code != 0 && !m->closing)
        log_warn("cluster state not fetched", lstr("url", f->url), lerr(&f->err));
    free(steal(f->url));
    free(steal(f->text));
    if (fetch_goes_on(f)) {
        fetch_ask(f);
        return;
    }
    m->fetching = false;
    struct waiter *served = steal(m->served);
    waiters_go_on(m, served);
    if (m->late != NULL && !m->closing)
        fetch(m);
    free(f);
}

static void fetch_end_posted(void *arg)
{
    fetch_end(arg);
}

static void take_fetched_state(void *arg)
{
    struct fetched *f = arg;
    struct target *t = f->m->target;
    _cleanup_state_ const struct cluster_state *before = state_current(t->state);
    if (keeper_renew_json(t->keeper, f->text, f->len, &f->err) == 0)
        f->err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *after = state_current(t->state);
    f->news = f->news || state_compare(after, before) > 0;
    loop_post(t->control, fetch_end_posted, f);
}

static void fetch_done(void *arg, struct http_result *r)
{
    struct fetched *f = arg;
    int code = http_result_error(r, f->url, &f->err);
    f->len = r->body.len;
    if (code == 0)
        f->text = buf_steal(&r->body);
    if (code == 0)
        code = pool_submit(f->m->target->workers, take_fetched_state, f, &f->err);
    if (code != 0)
        fetch_end(f);
}

static void fetch_ask(struct fetched *f)
{
    const struct target *t = f->m->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    char **urls;
    f->candidates = member_sources(s, t->params.join, t->id, &urls);
    char *source = take_turn(urls, f->candidates, f->asked++);
    f->err = ERROR_INIT;
    f->url = xprintf("%s/v1/cluster/state", source != NULL ? source : "");
    if (source == NULL) {
        error_set(&f->err, E_NOT_READY, "no proxy is known");
        fetch_end(f);
        return;
    }
    free(source);
    const struct http_call call = {.method = HTTP_GET,
                                   .url = f->url,
                                   .reply_max = t->params.state_max,
                                   .total_timeout_ms = t->params.call_timeout};
    http_call_start(t->control_client, &call, fetch_done, f);
}

static void fetch(struct member *m)
{
    if (m->fetching || m->closing)
        return;
    struct fetched *f = xcalloc(1, sizeof *f);
    f->m = m;
    m->fetching = true;
    m->served = steal(m->late);
    fetch_ask(f);
}

struct refresh {
    struct member *m;
    struct waiter *waiter;
};

static void refresh_posted(void *arg)
{
    struct refresh *r = arg;
    struct member *m = r->m;
    r->waiter->next = m->late;
    m->late = r->waiter;
    free(r);
    if (m->closing)
        waiters_go_on(m, steal(m->late));
    else if (keeper_has_state(m->target->keeper)) /* else it is being let in: serve_early() */
        fetch(m);
}

void member_refresh(struct member *m, const char *wanted, void (*fn)(void *arg), void *arg)
{
    struct refresh *r = xcalloc(1, sizeof *r);
    r->m = m;
    r->waiter = xcalloc(1, sizeof *r->waiter);
    *r->waiter = (struct waiter){.fn = fn, .arg = arg};
    struct member_wish *w = &r->waiter->wish;
    if (wanted != NULL && admit_parse_state_version(wanted, &w->term, &w->version, NULL) != 0)
        *w = (struct member_wish){0}; /* who has sent it is told so by whoever looks at it */
    loop_post(m->target->control, refresh_posted, r);
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

int member_new(struct target *t, struct member **out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (*t->params.join == '\0' && s->version == 0)
        return error_set(err, E_INVALID, "--join is empty, and this target has not joined before");
    struct member *m = xcalloc(1, sizeof *m);
    m->target = t;
    loop_call(t->control, make_timer, m);
    *out = m;
    return 0;
}

void member_begin(struct member *m)
{
    loop_call(m->target->control, start_timer, m);
}

static void close_posted(void *arg)
{
    struct member *m = arg;
    m->closing = true;
    loop_timer_free(m->timer);
    m->timer = NULL;
    waiters_go_on(m, steal(m->late));
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
    free(m->last_complaint);
    free(m);
}
