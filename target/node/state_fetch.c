#include "target/node/state_fetch.h"

#include "common/log.h"
#include "common/mem.h"
#include "target/node/state_sync.h"
#include "target/node/member_plan.h"
#include "target/node/target.h"

struct waiter {
    struct waiter *next;
    struct member_wish wish;
    void (*fn)(void *arg);
    void *arg;
};

/* Everything but `target` belongs to the control loop's thread. */
struct state_fetch {
    struct target *target;
    bool closing;
    bool fetching;
    struct waiter *served; /* by the round that is under way */
    struct waiter *late;   /* came after it had begun: by the next one */
};

/* --- who waits -------------------------------------------------------------------------------- */

static void go_on(struct state_fetch *f, struct waiter *list)
{
    while (list != NULL) {
        struct waiter *w = list;
        list = w->next;
        if (pool_submit(f->target->workers, w->fn, w->arg, NULL) != 0)
            w->fn(w->arg);
        free(w);
    }
}

/* Takes those out of the list who have what they wait for. */
static struct waiter *take_granted(struct waiter **list, const struct cluster_state *now)
{
    struct waiter *granted = NULL;
    while (*list != NULL) {
        struct waiter *w = *list;
        if (!member_wish_granted(&w->wish, now)) {
            list = &w->next;
            continue;
        }
        *list = w->next;
        w->next = granted;
        granted = w;
    }
    return granted;
}

static void granted_go_on(struct state_fetch *f)
{
    _cleanup_state_ const struct cluster_state *now = state_current(f->target->state);
    go_on(f, take_granted(&f->served, now));
    go_on(f, take_granted(&f->late, now));
}

static void taken_posted(void *arg)
{
    granted_go_on(arg);
}

void state_fetch_taken(struct state_fetch *f)
{
    loop_post(f->target->control, taken_posted, f);
}

/* --- a round of asking ------------------------------------------------------------------------ */

struct round {
    struct state_fetch *f;
    size_t asked, candidates;
    bool awaited; /* somebody waited when it began */
    char *url;
    char *text;
    size_t len;
    struct error err;
};

static void ask(struct round *r);

static bool goes_on(const struct round *r)
{
    bool over = r->awaited ? r->f->served == NULL : r->err.code == 0;
    return !over && !r->f->closing && r->asked < r->candidates;
}

static void answer_end(struct round *r)
{
    struct state_fetch *f = r->f;
    if (r->err.code != 0 && !f->closing)
        log_warn("cluster state not fetched", lstr("url", r->url), lerr(&r->err));
    free(steal(r->url));
    free(steal(r->text));
    granted_go_on(f);
    if (goes_on(r)) {
        ask(r);
        return;
    }
    free(r);
    f->fetching = false;
    go_on(f, steal(f->served));
    if (f->late != NULL)
        state_fetch_begin(f);
}

static void answer_end_posted(void *arg)
{
    answer_end(arg);
}

static void take_state(void *arg)
{
    struct round *r = arg;
    struct target *t = r->f->target;
    if (state_sync_renew_json(t->state_sync, r->text, r->len, &r->err) == 0)
        r->err = ERROR_INIT;
    loop_post(t->control, answer_end_posted, r);
}

static void answered(void *arg, struct http_result *result)
{
    struct round *r = arg;
    int code = http_result_error(result, r->url, &r->err);
    r->len = result->body.len;
    if (code == 0)
        r->text = buf_steal(&result->body);
    if (code == 0)
        code = pool_submit(r->f->target->workers, take_state, r, &r->err);
    if (code != 0)
        answer_end(r);
}

static void ask(struct round *r)
{
    const struct target *t = r->f->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    char **urls;
    r->candidates = member_sources(s, t->params.join, t->id, &urls);
    _cleanup_free_ char *source = member_take_turn(urls, r->candidates, r->asked++);
    r->err = ERROR_INIT;
    r->url = xprintf("%s/v1/cluster/state", source != NULL ? source : "");
    if (source == NULL) {
        error_set(&r->err, E_NOT_READY, "no proxy is known");
        answer_end(r);
        return;
    }
    const struct http_call call = {.method = HTTP_GET,
                                   .url = r->url,
                                   .reply_max = t->params.state_max,
                                   .total_timeout_ms = t->params.call_timeout,
                                   .node = HTTP_ANY_NODE};
    http_call_start(t->control_client, &call, answered, r);
}

void state_fetch_begin(struct state_fetch *f)
{
    if (f->fetching || f->closing)
        return;
    struct round *r = xcalloc(1, sizeof *r);
    r->f = f;
    f->fetching = true;
    f->served = steal(f->late);
    r->awaited = f->served != NULL;
    ask(r);
}

void state_fetch_let_in(struct state_fetch *f)
{
    if (f->late == NULL || f->fetching)
        return;
    if (state_sync_has_state(f->target->state_sync))
        state_fetch_begin(f);
    else
        go_on(f, steal(f->late));
}

/* --- another who waits ------------------------------------------------------------------------ */

struct arrival {
    struct state_fetch *f;
    struct waiter *waiter;
};

static void arrived(void *arg)
{
    struct arrival *a = arg;
    struct state_fetch *f = a->f;
    a->waiter->next = f->late;
    f->late = a->waiter;
    free(a);
    if (f->closing)
        go_on(f, steal(f->late));
    granted_go_on(f); /* it may have come meanwhile */
    if (f->late != NULL && state_sync_has_state(f->target->state_sync))
        state_fetch_begin(f);
    /* Else it is being let in: state_fetch_let_in(). */
}

void state_fetch_wait(struct state_fetch *f, const char *wanted, void (*fn)(void *arg), void *arg)
{
    _cleanup_state_ const struct cluster_state *now = state_current(f->target->state);
    struct arrival *a = xcalloc(1, sizeof *a);
    a->f = f;
    a->waiter = xcalloc(1, sizeof *a->waiter);
    *a->waiter = (struct waiter){.wish = member_wish(wanted, now), .fn = fn, .arg = arg};
    loop_post(f->target->control, arrived, a);
}

/* --- the whole -------------------------------------------------------------------------------- */

struct state_fetch *state_fetch_new(struct target *t)
{
    struct state_fetch *f = xcalloc(1, sizeof *f);
    f->target = t;
    return f;
}

void state_fetch_close(struct state_fetch *f)
{
    f->closing = true;
    go_on(f, steal(f->late));
}

void state_fetch_free(struct state_fetch *f)
{
    free(f);
}
