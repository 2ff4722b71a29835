/* A listing lives in the list loop's thread: it asks the targets, feeds the merge (merge.h)
 * and replies when that is done, or when a target that is needed has failed.  It ends when it has
 * replied and no call is under way any more.
 *
 * A page that may lack an object, because owners have changed or it took too long while objects are
 * moved (merge.h), is thrown away and begun anew with the state of that moment. */
#include "proxy/list/list.h"

#include <string.h>

#include "cluster/props/backend.h"
#include "cluster/placement/lag.h"
#include "cluster/documents/layout.h"
#include "cluster/documents/settings.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "cluster/placement/quorum.h"
#include "common/clock.h"
#include "common/internal_name.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "proxy/list/merge.h"
#include "proxy/list/token.h"
#include "proxy/primary/proxy.h"

enum {
    TEXT_MAX = 1024, /* prefix, delimiter, start_after: as long as a name */
    ENTRY_TEXT_MAX =
        7 << 10, /* one entry as JSON: a name of 1024 bytes, each escaped, and the rest */
    PAGE_TEXT_MAX = 64 << 10,
    BACKEND_MS = 120000, /* for a page of a backend, with its retries */
    AGAIN_MS = 50,       /* before a page is begun anew; and for how long that is tried: */
    AGAIN_MAX_MS = 15000,
};

struct listing;

/* One target, with what it holds, or with what the bucket's backend has: that is one source more,
 * which one target asks for all.  Its entries have the least version, so that what is here wins. */
struct source {
    struct listing *listing;
    size_t index;
    char *id;
    char *data_url;
    bool backend;
    bool asking;
};

/* What was asked for, so that it can be done again. */
struct wanted {
    struct list_request request; /* its texts are ours */
    uint64_t first_ms;           /* when the request came */
};

struct listing {
    struct proxy *proxy;
    struct wanted *wanted;
    uint64_t begun_ms;
    uint64_t placed; /* the owners that were asked, since this version of the map, … */
    bool moving;     /* … while objects were moved */
    bool tombstones; /* are asked for: one target may have a name that another knows as deleted */
    struct http_request *req; /* NULL once it has been replied to */
    struct list_merge *merge;
    char *prefix;
    char *delimiter;
    bool partial;
    bool skips_internal;
    uint64_t bucket_id;
    char version[48]; /* "dfcb=…&dfcv=…" */
    size_t asking;    /* calls under way */
    size_t count;
    struct source sources[];
};

static const char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static struct wanted *wanted_new(const struct list_request *r)
{
    struct wanted *w = xcalloc(1, sizeof *w);
    w->request = *r;
    w->request.bucket = xstrdup(r->bucket);
    w->request.prefix = xstrdup(r->prefix);
    w->request.delimiter = xstrdup(r->delimiter);
    w->request.start_after = xstrdup(r->start_after);
    w->request.token = copy_or_null(r->token);
    w->first_ms = clock_ms();
    return w;
}

static void wanted_free(struct wanted *w)
{
    if (w == NULL)
        return;
    free((char *)w->request.bucket);
    free((char *)w->request.prefix);
    free((char *)w->request.delimiter);
    free((char *)w->request.start_after);
    free((char *)w->request.token);
    free(w);
}

static void listing_free(struct listing *l)
{
    wanted_free(l->wanted);
    atomic_fetch_sub(&l->proxy->lists, 1);
    for (size_t i = 0; i < l->count; i++) {
        free(l->sources[i].id);
        free(l->sources[i].data_url);
    }
    list_merge_free(l->merge);
    free(l->prefix);
    free(l->delimiter);
    free(l);
}

static void fail(struct http_request *req, const struct list_request *r, const struct error *err)
{
    if (r->done != NULL)
        r->done(r->arg, err, NULL);
    else
        proxy_reply_error(req, err);
}

static void listing_fail(struct listing *l, const struct error *err)
{
    struct http_request *req = steal(l->req);
    fail(req, &l->wanted->request, err);
}

static void listing_again(struct listing *l);

/* Is it sure that no object has fallen between? */
static bool is_whole(const struct listing *l)
{
    _cleanup_state_ const struct cluster_state *s = state_current(l->proxy->state);
    bool moves = l->moving || s->smap.placed != l->placed || !layout_is_settled(&s->smap);
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    return !moves || clock_ms() - l->begun_ms <= layout_page_ms(settings.rebalance_keep);
}

static void listing_reply(struct listing *l)
{
    if (!is_whole(l)) {
        listing_again(l);
        return;
    }
    _cleanup_(buf_done)
    struct buf page = BUF_INIT;
    list_merge_page(l->merge, &page);
    struct http_request *req = steal(l->req);
    const struct list_request *r = &l->wanted->request;
    if (r->done != NULL)
        r->done(r->arg, NULL, &page);
    else
        http_reply_data(req, 200, "application/json", page.data, page.len);
}

/* --- asking a target ------------------------------------------------------------------------- */

static void put_parameter(struct buf *url, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    buf_printf(url, "&%s=", name);
    buf_put_url_escaped(url, value, strlen(value), "/");
}

/* A backend has all names, and not its share of them. */
static size_t question_limit(const struct source *s, const struct list_question *q)
{
    return s->backend ? s->listing->wanted->request.limit : q->limit;
}

static void put_page_url(struct buf *url, const struct source *s, const struct list_question *q)
{
    const struct listing *l = s->listing;
    buf_printf(url, "%s/v1/list/%llu%s?limit=%zu&%s", s->data_url, (unsigned long long)l->bucket_id,
               s->backend ? "/backend" : "", question_limit(s, q), l->version);
    put_parameter(url, "prefix", l->prefix);
    put_parameter(url, "delimiter", l->delimiter);
    put_parameter(url, "start_after", q->position.after);
    put_parameter(url, "from", q->position.from);
    put_parameter(url, "tombstones", l->tombstones ? "true" : "");
    put_parameter(url, "skip_internal", l->skips_internal ? "true" : "");
}

static void listing_step(void *arg);

/* What a target's failure means for the whole. */
static void source_failed(struct source *s, struct error *err)
{
    struct listing *l = s->listing;
    if (err->code == E_STALE_MAP) {
        listing_again(l);
        return;
    }
    if (l->partial) {
        list_merge_lose(l->merge, s->index);
        return;
    }
    if (err->code == E_CANCELLED)
        error_set(err, E_NOT_READY, "this proxy is stopping");
    else if (err->code == E_NET || err->code == E_TIMEOUT)
        error_recode(err, E_NODE_UNREACHABLE, "target '%s' cannot be asked for its list", s->id);
    else
        error_wrap(err, "target '%s'", s->id);
    listing_fail(l, err);
}

static void page_came(void *arg, struct http_result *r)
{
    struct source *s = arg;
    struct listing *l = s->listing;
    struct error err = ERROR_INIT;
    s->asking = false;
    l->asking--;
    if (l->req != NULL) {
        int code = http_result_error(r, s->data_url, &err);
        size_t len = r->body.len;
        if (code == 0)
            code = list_merge_feed(l->merge, s->index, buf_steal(&r->body), len, &err);
        if (code != 0)
            source_failed(s, &err);
    }
    listing_step(l);
}

static void source_ask(struct source *s, const struct list_question *q)
{
    struct listing *l = s->listing;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    put_page_url(&url, s, q);
    const struct http_call call = {
        .method = HTTP_GET,
        .url = buf_str(&url),
        .node = s->id,
        .reply_max = PAGE_TEXT_MAX + (question_limit(s, q) + 1) * ENTRY_TEXT_MAX,
        .total_timeout_ms = s->backend ? BACKEND_MS : l->proxy->params.call_timeout,
        .request_id = http_request_id(l->req),
    };
    s->asking = true;
    l->asking++;
    http_call_start(l->proxy->list_client, &call, page_came, s);
}

static void listing_ask(struct listing *l)
{
    for (size_t i = 0; i < l->count; i++) {
        struct list_question question;
        if (!l->sources[i].asking && list_merge_wants(l->merge, i, &question))
            source_ask(&l->sources[i], &question);
    }
}

static void listing_step(void *arg)
{
    struct listing *l = arg;
    if (l->req != NULL && list_merge_done(l->merge))
        listing_reply(l);
    if (l->req != NULL)
        listing_ask(l);
    else if (l->asking == 0)
        listing_free(l);
}

/* --- the start ------------------------------------------------------------------------------- */

int list_check_text(const char *text, const char *name, struct error *err)
{
    size_t len = strlen(text);
    if (len > TEXT_MAX || !utf8_valid(text, len))
        return error_set(err, E_INVALID, "parameter '%s' must be at most %d bytes of UTF-8", name,
                         TEXT_MAX);
    return 0;
}

int list_check(const struct list_request *r, struct error *err)
{
    int code;
    if ((code = bucket_name_check(r->bucket, err)) != 0 ||
        (code = list_check_text(r->prefix, "prefix", err)) != 0 ||
        (code = list_check_text(r->delimiter, "delimiter", err)) != 0 ||
        (code = list_check_text(r->start_after, "start_after", err)) != 0)
        return code;
    if (r->limit < 1 || r->limit > LIST_LIMIT_MAX)
        return error_set(err, E_INVALID, "parameter 'limit' must be 1 to %d", LIST_LIMIT_MAX);
    return 0;
}

/* Every target may hold objects, but for those that own none once what they had has been moved off:
 * such a one may well be down; and with copies those that others can stand in for. */
static bool is_asked(const struct cluster_state *s, const struct bucket *b, const struct node *n)
{
    bool owns = n->state == NODE_ACTIVE || n->state == NODE_UNREACHABLE;
    if (quorum_is_wanted(b) && quorum_lists(s, b)) /* some may lack what others have */
        return n->role == NODE_TARGET && n->state == NODE_ACTIVE;
    if (!quorum_is_wanted(b) && owners_good_suffice(s, b))
        return n->role == NODE_TARGET && n->state == NODE_ACTIVE && n->lag != LAG_MISSED;
    if (bucket_has_copies(b) && !owns && !node_is_present(n) && lag_spares_an_owner(s, b))
        return false;
    return n->role == NODE_TARGET && (owns || !layout_is_settled(&s->smap));
}

/* One that is missing makes the list incomplete. */
static int check_targets(const struct cluster_state *s, const struct bucket *b, bool partial,
                         size_t *count, struct error *err)
{
    *count = 0;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (!is_asked(s, b, n))
            continue;
        if (n->state == NODE_UNREACHABLE && !partial)
            return error_set(err, E_NODE_UNREACHABLE,
                             "target '%s' is unreachable: the list would be incomplete; start the "
                             "target, or ask for a partial list",
                             n->id);
        ++*count;
    }
    if (*count == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target that could be asked");
    return 0;
}

/* The target that asks the bucket's backend, the same for every page; NULL: nobody has to. */
static const struct node *backend_asker(const struct cluster_state *s, const struct bucket *b,
                                        const struct list_request *r)
{
    const struct node *asker = NULL;
    if (b->props.backend != NULL && !r->cached && backend_is_listed(b->props.backend))
        (void)smap_owners(&s->smap, b->id, "", 1, &asker);
    return asker;
}

static void add_source(struct listing *l, const struct node *n, bool backend)
{
    l->sources[l->count] = (struct source){
        .listing = l,
        .index = l->count,
        .id = xstrdup(n->id),
        .data_url = xstrdup(n->data_url),
        .backend = backend,
    };
    if (n->state == NODE_UNREACHABLE)
        list_merge_lose(l->merge, l->count);
    l->count++;
}

static struct listing *listing_new(struct proxy *p, const struct cluster_state *s,
                                   const struct list_request *r, const struct bucket *b,
                                   size_t count, const struct list_position *position)
{
    const struct node *asker = backend_asker(s, b, r);
    size_t sources = count + (asker != NULL);
    struct listing *l = xcalloc(1, sizeof *l + sources * sizeof l->sources[0]);
    l->proxy = p;
    l->merge = list_merge_new(sources, position, r->limit);
    l->prefix = xstrdup(r->prefix);
    l->delimiter = xstrdup(r->delimiter);
    l->partial = r->partial;
    l->skips_internal = !r->internal && !name_is_internal(r->prefix);
    l->bucket_id = b->id;
    l->begun_ms = clock_ms();
    l->placed = s->smap.placed;
    l->moving = !layout_is_settled(&s->smap);
    l->tombstones = l->moving || bucket_has_copies(b);
    snprintf(l->version, sizeof l->version, "dfcv=%llu.%llu", (unsigned long long)s->term,
             (unsigned long long)s->version);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (is_asked(s, b, n))
            add_source(l, n, false);
    }
    if (asker != NULL)
        add_source(l, asker, true);
    return l;
}

static int listing_make(struct proxy *p, const struct list_request *r, struct listing **out,
                        struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_(buf_done)
    struct buf texts = BUF_INIT;
    struct list_position position = {.after = r->start_after, .from = ""};
    size_t count;
    int code;
    if ((code = list_check(r, err)) != 0)
        return code;
    const struct bucket *b = bmd_bucket(&s->bmd, r->bucket);
    if (b == NULL)
        return proxy_no_bucket(p, r->bucket, err);
    if (r->token != NULL && r->token[0] != '\0')
        code = list_token_parse(r->token, &texts, &position, err);
    if (code != 0 || (code = check_targets(s, b, r->partial, &count, err)) != 0)
        return code;
    if (atomic_fetch_add(&p->lists, 1) >= param_live(p->params.lists_max)) {
        atomic_fetch_sub(&p->lists, 1);
        return error_set(err, E_OVERLOAD, "%llu lists are being made, this proxy's limit",
                         (unsigned long long)param_live(p->params.lists_max));
    }
    *out = listing_new(p, s, r, b, count, &position);
    return 0;
}

/* Takes what is wanted. */
static void list_begin_page(struct http_request *req, struct wanted *w)
{
    struct proxy *p = http_user(req);
    struct listing *l = NULL;
    struct error err = ERROR_INIT;
    if (listing_make(p, &w->request, &l, &err) != 0) {
        fail(req, &w->request, &err);
        wanted_free(w);
        return;
    }
    l->wanted = w;
    l->req = req;
    loop_post(p->list_loop, listing_step, l);
}

void list_start(struct http_request *req, const struct list_request *r)
{
    list_begin_page(req, wanted_new(r));
}

/* A page to be begun anew after a pause, in which the newest state may come. */
struct again {
    struct http_request *req;
    struct wanted *wanted;
    struct loop_timer *timer;
};

static void again_now(void *arg)
{
    struct again *a = arg;
    loop_timer_free(a->timer);
    list_begin_page(a->req, a->wanted);
    free(a);
}

static void listing_again(struct listing *l)
{
    if (clock_ms() - l->wanted->first_ms > AGAIN_MAX_MS) {
        struct error err;
        error_set(
            &err, E_NOT_READY,
            "objects are being moved, and no page of the list came together in time; try again, "
            "perhaps with a smaller limit");
        listing_fail(l, &err);
        return;
    }
    struct again *a = xcalloc(1, sizeof *a);
    *a = (struct again){.req = steal(l->req), .wanted = steal(l->wanted)};
    a->timer = loop_timer_new(l->proxy->list_loop, again_now, a);
    loop_timer_start(a->timer, AGAIN_MS, 0);
}
