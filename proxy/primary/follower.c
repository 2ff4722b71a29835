/* What is called next proxy/primary/follower_plan.h says.  The primary is asked where the last
 * state, or the election, says that it is; when it does not answer there, every other time where
 * --join says.
 */
#include "proxy/primary/follower.h"

#include "access/exposure_gate.h"
#include "common/build.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/primary/follower_plan.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/state_file.h"

enum { SAVE_DELAY_MS = 1000 };

struct follower {
    struct proxy *proxy;
    struct loop_timer *timer;
    struct loop_timer *save_timer;
    bool saved;   /* there is a file */
    bool unsaved; /* the file has an earlier state, and the timer runs */
    bool closed;
    bool quiet; /* it stops: no keepalive follows its word */
    bool asking;
    struct follower_plan plan;
    int failing; /* the code that was logged last, 0 while all is well */
};

/* One call. */
struct question {
    struct follower *follower;
    char *url;
    void (*answered)(struct follower *f, json_t *reply, struct error *err);
};

static void question_done(void *arg, struct http_result *r)
{
    struct question *q = arg;
    struct follower *f = q->follower;
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *reply = NULL;
    int code = http_result_error(r, q->url, &err);
    if (code == 0)
        code = json_parse(r->body.len > 0 ? r->body.data : "", r->body.len, &reply, &err);
    f->asking = false;
    if (!f->closed)
        q->answered(f, code == 0 ? reply : NULL, &err);
    free(q->url);
    free(q);
}

/* NULL: nobody is known. */
static char *primary_url(const struct follower *f, const char *path)
{
    struct proxy *p = f->proxy;
    _cleanup_(metastore_primary_done)
    struct metastore_primary primary = {0};
    bool has_join = p->params.join[0] != '\0';
    if (!(f->plan.use_join && has_join) && proxy_find_primary(p, &primary))
        return xprintf("%s%s", primary.control_url, path);
    return has_join ? xprintf("%s%s", p->params.join, path) : NULL;
}

static void ask(struct follower *f, enum http_method method, const char *path, const json_t *body,
                void (*answered)(struct follower *f, json_t *reply, struct error *err))
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const struct proxy_params *params = &f->proxy->params;
    char *url = primary_url(f, path);
    if (url == NULL)
        return; /* the next tick may know one */
    _cleanup_free_ char *text = body != NULL ? json_text(body) : NULL;
    struct question *q = xcalloc(1, sizeof *q);
    *q = (struct question){.follower = f, .url = url, .answered = answered};
    const struct http_call call = {
        .method = method,
        .url = q->url,
        .headers = body != NULL ? headers : NULL,
        .body = text,
        .body_len = text != NULL ? strlen(text) : 0,
        .reply_max = params->state_max,
        .total_timeout_ms = params->call_timeout,
        .node = HTTP_ANY_NODE,
    };
    f->asking = true;
    http_call_start(f->proxy->client, &call, question_done, q);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static bool is_final(int code)
{
    return code == E_WRONG_CLUSTER || code == E_INVALID || code == E_STALE_MAP;
}

static void note_failure(struct follower *f, const char *what, const struct error *err)
{
    if (f->failing != err->code)
        log_warn(what, lerr(err));
    f->failing = err->code;
    if (is_final(err->code))
        proxy_start_failed(f->proxy, err);
}

static void note_success(struct follower *f)
{
    if (f->failing != 0)
        log_info("the primary answers again");
    f->failing = 0;
}

static void call_next(struct follower *f, enum follower_call call);

static void note_end(struct follower *f, enum follower_call call, int code, bool newer)
{
    call_next(f, follower_plan_ended(&f->plan, call, code, newer));
}

/* --- the state ------------------------------------------------------------------------------- */

/* The file is for a start without a primary, which an earlier state serves nearly as well: it need
 * not keep up with every change. */
static void save(void *arg)
{
    struct follower *f = arg;
    _cleanup_state_ const struct cluster_state *s = state_current(f->proxy->state);
    struct error err = ERROR_INIT;
    f->unsaved = false;
    f->saved = true;
    if (state_file_write(f->proxy->state_path, s, &err) != 0)
        log_warn("state not kept on disk", lerr(&err));
}

void follower_state_changed(struct follower *f)
{
    if (!f->saved) {
        save(f);
    } else if (!f->unsaved) {
        f->unsaved = true;
        loop_timer_start(f->save_timer, SAVE_DELAY_MS, 0);
    }
}

int follower_take(struct follower *f, const struct cluster_state *s, struct error *err)
{
    struct proxy *p = f->proxy;
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    bool newer;
    int r = state_accept(now, s, &newer, err);
    if (r != 0 || !newer)
        return r;
    state_advance(p->state, s);
    proxy_state_changed(p);
    proxy_start_succeeded(p);
    return 0;
}

static int take_document(struct follower *f, json_t *doc, struct error *err)
{
    struct cluster_state *s;
    int r = state_from_json(doc, &s, err);
    if (r != 0)
        return r;
    r = follower_take(f, s, err);
    state_unref(s);
    return r;
}

/* --- the calls ------------------------------------------------------------------------------- */

/* The code of a call whose answer is a state, once that is taken. */
static int take_reply(struct follower *f, json_t *reply, struct error *err)
{
    return reply != NULL ? take_document(f, reply, err) : err->code;
}

static void fetched(struct follower *f, json_t *reply, struct error *err)
{
    int code = take_reply(f, reply, err);
    if (code != 0)
        note_failure(f, "state not fetched", err);
    else
        note_success(f);
    note_end(f, FOLLOWER_FETCH, code, false);
}

static void registered(struct follower *f, json_t *reply, struct error *err)
{
    int code = take_reply(f, reply, err);
    exposure_gate_hear(f->proxy->gate, code);
    if (code != 0) {
        note_failure(f, "not registered", err);
    } else {
        log_info("registered");
        atomic_store(&f->proxy->heard, true);
        note_success(f);
    }
    note_end(f, FOLLOWER_REGISTER, code, false);
}

static json_t *self_json(const struct proxy *p, const struct cluster_state *s)
{
    const struct node self = {
        .id = p->id,
        .role = NODE_PROXY,
        .public_url = p->public_url,
        .control_url = p->control_url,
        .data_url = "",
        .boot = p->boot,
    };
    json_t *doc = node_to_json(&self);
    json_object_set_new(doc, "exposure", json_string(exposure_name(p->exposure)));
    json_object_set_new(doc, "cluster", json_string(s->cluster_id));
    json_object_set_new(doc, "term", json_integer((json_int_t)s->term));
    json_object_set_new(doc, "version", json_integer((json_int_t)s->version));
    return doc;
}

static void ask_register(struct follower *f)
{
    _cleanup_state_ const struct cluster_state *s = state_current(f->proxy->state);
    _cleanup_json_ json_t *body = self_json(f->proxy, s);
    ask(f, HTTP_POST, "/v1/cluster/register", body, registered);
}

static bool is_newer(const struct cluster_state *s, uint64_t term, uint64_t version)
{
    return term > s->term || (term == s->term && version > s->version);
}

static int newer_of_reply(struct follower *f, json_t *reply, bool *newer, struct error *err)
{
    uint64_t term = 0;
    uint64_t version = 0;
    _cleanup_state_ const struct cluster_state *s = state_current(f->proxy->state);
    if (reply == NULL || json_need_u64(reply, "", "term", &term, err) != 0 ||
        json_need_u64(reply, "", "version", &version, err) != 0)
        return err->code;
    *newer = is_newer(s, term, version);
    return 0;
}

static void kept_alive(struct follower *f, json_t *reply, struct error *err)
{
    bool newer = false;
    int code = newer_of_reply(f, reply, &newer, err);
    exposure_gate_hear(f->proxy->gate, code);
    if (code == 0)
        note_success(f);
    else if (code != E_NODE_NOT_FOUND)
        note_failure(f, "keepalive failed", err);
    note_end(f, FOLLOWER_KEEPALIVE, code, newer);
}

static void ask_keepalive(struct follower *f)
{
    _cleanup_state_ const struct cluster_state *s = state_current(f->proxy->state);
    _cleanup_json_ json_t *body = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:b}", "id", f->proxy->id, "boot", f->proxy->boot,
        "release", build_release(), "commit", build_commit(), "term", (json_int_t)s->term,
        "version", (json_int_t)s->version, "exposure", exposure_name(f->proxy->exposure),
        "electable", (int)proxy_is_electable(f->proxy));
    ask(f, HTTP_POST, "/v1/cluster/keepalive", body, kept_alive);
}

static void call_next(struct follower *f, enum follower_call call)
{
    if (f->quiet)
        return;
    if (call == FOLLOWER_REGISTER)
        ask_register(f);
    else if (call == FOLLOWER_KEEPALIVE)
        ask_keepalive(f);
    else if (call == FOLLOWER_FETCH)
        ask(f, HTTP_GET, "/v1/cluster/state", NULL, fetched);
}

static void tick(void *arg)
{
    struct follower *f = arg;
    if (!f->asking)
        call_next(f, follower_plan_call(&f->plan));
}

struct follower *follower_start(struct proxy *p)
{
    struct follower *f = xcalloc(1, sizeof *f);
    f->proxy = p;
    f->save_timer = loop_timer_new(p->loop, save, f);
    f->timer = loop_timer_new(p->loop, tick, f);
    follower_open(f);
    return f;
}

void follower_open(struct follower *f)
{
    f->closed = false;
    f->plan.member = false;
    f->failing = 0;
    loop_timer_start(f->timer, 0, f->proxy->params.keepalive_interval);
}

void follower_quiet(struct follower *f)
{
    f->quiet = true;
}

void follower_close(struct follower *f)
{
    f->closed = true;
    loop_timer_stop(f->timer);
}

void follower_stop(struct follower *f)
{
    if (f == NULL)
        return;
    if (f->unsaved)
        save(f);
    loop_timer_free(f->timer);
    loop_timer_free(f->save_timer);
    free(f);
}
