/* The first line of every handler: may this proxy answer, and is it the one to do so? */
#include <string.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/primary/proxy.h"
#include "proxy/http/relay.h"

static const char forwarded_header[] = "Dfc-Forwarded";

/* Of one request by one proxy, each after a pause. */
enum { PASSES_MOST = 10 };

/* A follower that stops answers whoever has reached it before its listener closes. */
static bool leaves_as_follower(struct proxy *p)
{
    return atomic_load(&p->leaving) && !atomic_load(&p->is_primary);
}

struct proxy *proxy_enter(struct http_request *req)
{
    struct proxy *p = http_user(req);
    if (atomic_load_explicit(&p->ready, memory_order_acquire) || leaves_as_follower(p))
        return p;
    struct error err;
    error_set(&err, E_NOT_READY, "proxy '%s' is starting or stopping", p->id);
    http_reply_error(req, &err);
    return NULL;
}

/* Those of its last life, or of the cluster that it has heard of; not those that it is to replace.
 */
static bool has_documents(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    return s->cluster_id[0] != '\0' && p->params.import[0] == '\0';
}

struct proxy *proxy_enter_objects(struct http_request *req)
{
    struct proxy *p = http_user(req);
    return has_documents(p) ? p : proxy_enter(req);
}

bool proxy_is_primary(struct proxy *p)
{
    return atomic_load(&p->is_primary) &&
           (!p->is_shared || p->metastore->ops->election(p->metastore) != 0);
}

bool proxy_is_electable(const struct proxy *p)
{
    return p->is_shared ? p->params.electable : p->params.join[0] == '\0';
}

int proxy_no_bucket(struct proxy *p, const char *name, struct error *err)
{
    if (atomic_load(&p->heard) || proxy_is_primary(p))
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", name);
    return error_set(err, E_NOT_READY,
                     "proxy '%s' knows no bucket '%s', and has no state of the primary yet", p->id,
                     name);
}

static bool primary_of_state(struct proxy *p, struct metastore_primary *out)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n = smap_node(&s->smap, s->primary);
    if (n == NULL || strcmp(n->id, p->id) == 0)
        return false;
    *out = (struct metastore_primary){.id = xstrdup(n->id),
                                      .public_url = xstrdup(n->public_url),
                                      .control_url = xstrdup(n->control_url)};
    return true;
}

/* The election is ahead of the state that its winner pushes; without it (etcd does not answer) the
 * primary may be where it was.  PRIMARY_NONE: not another proxy. */
static enum metastore_known primary_known(struct proxy *p, struct metastore_primary *out)
{
    enum metastore_known known =
        p->is_shared ? p->metastore->ops->primary(p->metastore, out) : PRIMARY_UNKNOWN;
    if (known == PRIMARY_UNKNOWN)
        return primary_of_state(p, out) ? PRIMARY_KNOWN : PRIMARY_UNKNOWN;
    if (known == PRIMARY_KNOWN && strcmp(out->id, p->id) != 0)
        return known;
    metastore_primary_done(out); /* this proxy's key: it begins, or that is of its last life */
    return PRIMARY_NONE;
}

bool proxy_find_primary(struct proxy *p, struct metastore_primary *out)
{
    return primary_known(p, out) == PRIMARY_KNOWN;
}

static bool begins_as_primary(struct proxy *p)
{
    return !atomic_load(&p->hands_over) && proxy_is_primary(p);
}

int proxy_seek_primary(struct proxy *p, struct metastore_primary *out, bool *comes,
                       struct error *err)
{
    *comes = false;
    if (atomic_load(&p->moved))
        return error_set(err, E_NOT_PRIMARY,
                         "the documents of proxy '%s' have moved to another metastore: start it "
                         "again with --metastore",
                         p->id);
    if (begins_as_primary(p)) {
        *out = (struct metastore_primary){.id = xstrdup(p->id),
                                          .public_url = xstrdup(p->public_url),
                                          .control_url = xstrdup(p->control_url)};
        return 0;
    }
    enum metastore_known known = primary_known(p, out);
    if (known == PRIMARY_KNOWN)
        return 0;
    *comes = known == PRIMARY_NONE || atomic_load(&p->hands_over);
    return error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary and knows none", p->id);
}

static unsigned times_in_list(const char *name, const char *list)
{
    size_t len = strlen(name);
    unsigned times = 0;
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += len) {
        bool begins = at == list || at[-1] == ' ' || at[-1] == ',';
        times += begins && (at[len] == '\0' || at[len] == ',');
    }
    return times;
}

/* How often has this proxy passed it on? */
static unsigned passes(const struct proxy *p, struct http_request *req)
{
    const char *passed = http_header_list(req, forwarded_header);
    return passed != NULL ? times_in_list(p->id, passed) : 0;
}

/* Two proxies that each take the other for the primary must not play ball.  While another one is
 * elected one of them is ahead of the other for a moment. */
static bool may_pass(const struct proxy *p, unsigned passes_before)
{
    return passes_before < (p->is_shared ? PASSES_MOST : 1);
}

/* To a control listener, which knows no proofs of clients: for whom it is.  NULL: the operator. */
static char *user_line(const struct http_request *req)
{
    const struct http_actor *actor = http_actor(req);
    return actor->id != NULL ? xprintf(HTTP_ACTOR_HEADER ": %s %s", actor->id, actor->name) : NULL;
}

static void primary_call_ended(void *arg)
{
    struct proxy *p = arg;
    atomic_fetch_sub(&p->primary_calls, 1);
}

/* It is counted before it is asked: a proxy that hands over waits for what it has begun. */
static bool answers_as_primary(struct proxy *p, struct http_request *req)
{
    atomic_fetch_add(&p->primary_calls, 1);
    bool answers = begins_as_primary(p);
    if (answers)
        http_on_end(req, primary_call_ended, p);
    else
        primary_call_ended(p);
    return answers;
}

bool proxy_passed_to_primary(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return true;
    if (answers_as_primary(p, req))
        return false;
    unsigned before = passes(p, req);
    if (!may_pass(p, before)) {
        struct error err;
        error_set(&err, E_NOT_PRIMARY, "proxy '%s' is not the primary any more; repeat it", p->id);
        proxy_reply_error(req, &err);
        return true;
    }
    bool between_nodes = http_route(req)->nets == NET_CONTROL;
    const char *query = http_raw_query(req);
    _cleanup_free_ char *path = xprintf("%s%s%s", http_path(req), query[0] ? "?" : "", query);
    _cleanup_free_ char *forwarded = xprintf("%s: %s", forwarded_header, p->id);
    _cleanup_free_ char *user = between_nodes ? user_line(req) : NULL;
    const char *const headers[] = {forwarded, user, NULL};
    relay_to_primary(p, req, path, !between_nodes, headers, before > 0);
    return true;
}

void proxy_reply_error(struct http_request *req, const struct error *err)
{
    if (error_status(err->code) >= 500 && err->code != E_OVERLOAD && err->code != E_NOT_READY) {
        log_set_request(http_request_id(req)); /* also in a loop's thread */
        log_warn("request failed", lstr("route", http_route(req)->name), lerr(err));
        log_set_request(NULL);
    }
    http_reply_error(req, err);
}

void proxy_reply_masked(struct http_request *req, const json_t *doc)
{
    if ((http_listener(req) & NET_CLIENTS) == 0) {
        http_reply_json(req, 200, doc);
        return;
    }
    _cleanup_json_ json_t *copy = json_deep_copy(doc); /* parts of it may be the state's */
    json_mask_queries(copy);
    http_reply_json(req, 200, copy);
}
