#include "proxy/primary/recovery.h"

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "net/client/client.h"
#include "proxy/primary/primary.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/refused_nodes.h"

enum { HEARD_WITHIN_MS = 10 * 60 * 1000, NEW_WITHIN_MS = 60 * 1000 };

/* --- a new cluster ---------------------------------------------------------------------------- */

static bool has_targets(const struct smap *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->nodes[i].role == NODE_TARGET)
            return true;
    }
    return false;
}

int recovery_check_new(struct proxy *p, struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    if (now->bmd.count > 0 || has_targets(&now->smap))
        return 0;
    _cleanup_free_ struct stranger *list = NULL;
    size_t count = refused_nodes_list(p->refused_nodes, clock_ms(), NEW_WITHIN_MS, &list);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].cluster, now->cluster_id) != 0)
            return error_set(err, E_WRONG_CLUSTER,
                             "this cluster has no target, and node '%s' of cluster '%s' asks to be "
                             "let in: if this proxy has lost its directory, 'dfcctl cluster "
                             "recover' makes it the primary of that cluster again",
                             list[i].id, list[i].cluster);
    }
    return 0;
}

size_t recovery_refused(struct proxy *p)
{
    _cleanup_free_ struct stranger *list = NULL;
    return refused_nodes_list(p->refused_nodes, clock_ms(), HEARD_WITHIN_MS, &list);
}

/* --- the copies ------------------------------------------------------------------------------- */

struct copies {
    size_t count;
    struct stranger *nodes;
    struct recovery_copy *copies;
    struct error *errors; /* why a copy could not be had */
};

static void copies_done(struct copies *c)
{
    for (size_t i = 0; i < c->count; i++)
        state_unref(c->copies[i].state);
    free(c->copies);
    free(c->errors);
    free(c->nodes);
}

static int state_of_reply(const struct http_result *r, struct cluster_state **out,
                          struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(r->body.len > 0 ? r->body.data : "", r->body.len, &doc, err);
    return code != 0 ? code : state_from_json(doc, out, err);
}

static int fetch(struct proxy *p, const struct stranger *node, struct cluster_state **out,
                 struct error *err)
{
    _cleanup_free_ char *url = xprintf("%s/v1/cluster/state", node->control_url);
    const struct http_call call = {.method = HTTP_GET,
                                   .url = url,
                                   .node = node->id,
                                   .reply_max = p->params.state_max,
                                   .total_timeout_ms = p->params.connect_timeout};
    struct http_result result = {0};
    int r = http_call_wait(p->client, &call, &result, err);
    if (r == 0)
        r = state_of_reply(&result, out, err);
    http_result_done(&result);
    return r;
}

static void fetch_copies(struct proxy *p, struct copies *c)
{
    c->count = refused_nodes_list(p->refused_nodes, clock_ms(), HEARD_WITHIN_MS, &c->nodes);
    c->copies = xcalloc(c->count, sizeof c->copies[0]);
    c->errors = xcalloc(c->count, sizeof c->errors[0]);
    for (size_t i = 0; i < c->count; i++) {
        struct cluster_state *s = NULL;
        c->copies[i].node = c->nodes[i].id;
        if (fetch(p, &c->nodes[i], &s, &c->errors[i]) == 0) {
            c->copies[i].state = s;
            c->copies[i].digest = recovery_digest(s);
        }
    }
}

/* --- showing ---------------------------------------------------------------------------------- */

static json_t *copy_view(const struct stranger *node, const struct recovery_copy *c,
                         const struct error *err)
{
    json_t *doc = json_pack("{s:s, s:s, s:s}", "node", node->id, "control_url", node->control_url,
                            "cluster", node->cluster);
    const struct cluster_state *s = c->state;
    char digest[20];
    if (s == NULL) {
        json_object_set_new(doc, "error", json_string_escaped(err->message));
        return doc;
    }
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)c->digest);
    json_object_update_new(doc,
                           json_pack("{s:I, s:I, s:s, s:I, s:I, s:I}", "term", (json_int_t)s->term,
                                     "version", (json_int_t)s->version, "digest", digest, "buckets",
                                     (json_int_t)s->bmd.count, "nodes", (json_int_t)s->smap.count,
                                     "jobs", (json_int_t)s->jobs.count));
    return doc;
}

/* Nodes of the map that is to be believed that have given no copy: they may know more. */
static json_t *unheard(const struct proxy *p, const struct copies *c, const struct cluster_state *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->smap.count; i++) {
        const char *id = s->smap.nodes[i].id;
        if (strcmp(id, p->id) != 0 && !recovery_is_heard(s, c->copies, c->count, id))
            json_array_append_new(list, json_string(id));
    }
    return list;
}

static json_t *plan_view(struct proxy *p, const struct copies *c, const struct recovery_wish *wish)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    struct error err = ERROR_INIT;
    size_t best;
    int r = recovery_choose(now, c->copies, c->count, wish, &best, &err);
    if (r != 0)
        return json_pack("{s:s, s:o}", "code", error_name(r), "refused",
                         json_string_escaped(err.message));
    const struct cluster_state *s = c->copies[best].state;
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "node", c->copies[best].node, "cluster",
                     s->cluster_id, "term", (json_int_t)s->term, "version", (json_int_t)s->version,
                     "unheard", unheard(p, c, s), "bmd", state_part_to_json(s, "bmd"));
}

json_t *recovery_show(struct proxy *p, const struct recovery_wish *wish)
{
    _cleanup_(copies_done)
    struct copies c = {0};
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    json_t *list = json_array();
    fetch_copies(p, &c);
    for (size_t i = 0; i < c.count; i++)
        json_array_append_new(list, copy_view(&c.nodes[i], &c.copies[i], &c.errors[i]));
    return json_pack("{s:{s:s, s:I, s:I, s:I}, s:o, s:o}", "present", "cluster", now->cluster_id,
                     "term", (json_int_t)now->term, "version", (json_int_t)now->version, "buckets",
                     (json_int_t)now->bmd.count, "copies", list, "plan", plan_view(p, &c, wish));
}

/* --- adopting --------------------------------------------------------------------------------- */

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

static int move_aside(const char *dir, struct error *err)
{
    _cleanup_free_ char *aside = xprintf("%s.lost-%lld", dir, (long long)clock_wall_ms());
    if (rename(dir, aside) != 0)
        return error_errno(err, errno, "rename '%s'", dir);
    return 0;
}

static int begin_upon(struct proxy *p, const struct cluster_state *s, struct error *err)
{
    _cleanup_free_ char *dir = xprintf("%s/metastore", p->params.dir);
    const struct metastore_config config = {.dir = dir, .fold_bytes = p->params.metastore_fold};
    const struct primary_base base = {.state = s, .is_first = true, .next_epoch = true};
    int r;
    p->metastore->ops->close(p->metastore);
    p->metastore = NULL;
    if ((r = move_aside(dir, err)) != 0 ||
        (r = metastore_embedded.open(&config, &p->metastore, err)) != 0)
        return r;
    return primary_begin(p, &base, (uint64_t)clock_wall_ms(), err);
}

/* Nobody uses the metastore between the two: it is the primary's, and there is none. */
static int adopt(struct proxy *p, const struct cluster_state *s, struct error *err)
{
    primary_end(p);
    int r = begin_upon(p, s, err);
    if (r == 0) {
        log_warn("recovered from a node's copy", lstr("cluster", s->cluster_id),
                 lu64("term", s->term), lu64("version", s->version));
        refused_nodes_forget(p->refused_nodes);
        return 0;
    }
    log_error("not recovered, and no primary any more: start this proxy again", lerr(err));
    return r;
}

static int adopt_fenced(struct proxy *p, const struct copies *c, const struct recovery_wish *wish,
                        uint64_t term, uint64_t version, struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    size_t best;
    int r = recovery_choose(now, c->copies, c->count, wish, &best, err);
    if (r != 0 ||
        (r = recovery_check_heard(&c->copies[best], c->copies, c->count, wish, p->id, err)) != 0)
        return r;
    const struct cluster_state *s = c->copies[best].state;
    if (s->term != term || s->version != version)
        return error_set(err, E_PRECONDITION, "node '%s' has version %llu.%llu by now: look again",
                         c->copies[best].node, (unsigned long long)s->term,
                         (unsigned long long)s->version);
    return adopt(p, s, err);
}

int recovery_run(struct proxy *p, const struct recovery_wish *wish, uint64_t term, uint64_t version,
                 struct error *err)
{
    _cleanup_(copies_done)
    struct copies c = {0};
    if (p->is_shared)
        return error_set(err, E_UNSUPPORTED,
                         "the documents are in %s: give an empty prefix there back with --import",
                         p->params.metastore);
    fetch_copies(p, &c);
    loop_call(p->loop, set_fence, p);
    proxy_commit_barrier(p);
    int r = adopt_fenced(p, &c, wish, term, version, err);
    loop_call(p->loop, take_fence, p);
    return r;
}
