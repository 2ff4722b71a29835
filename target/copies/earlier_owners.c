#include "target/copies/earlier_owners.h"

#include "cluster/documents/layout.h"
#include "cluster/placement/owners.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/node/call.h"
#include "target/copies/ask_peers.h"
#include "target/copies/held.h"
#include "target/node/target.h"
#include "target/node/write_path.h"
#include "target/copies/read_through.h"

/* Whom a call may have to ask: room for all. */
static size_t find_nodes(const struct target *t, const struct cluster_state *s,
                         const struct bucket *b, const char *name, bool hit,
                         const struct node ***out)
{
    size_t n = b->props.copies > 0 ? b->props.copies : 1;
    *out = NULL;
    if (layout_is_settled(&s->smap) || fault_skips("earlier.ask"))
        return 0;
    *out = xcalloc(LAYOUTS_MAX * n, sizeof **out);
    return layout_ask(&s->smap, b->id, name, n, t->id, hit, *out);
}

bool earlier_is_asked(const struct target *t, const struct cluster_state *s, const struct bucket *b,
                      const char *name, bool hit)
{
    _cleanup_free_ const struct node **nodes = NULL;
    return find_nodes(t, s, b, name, hit, &nodes) > 0;
}

bool earlier_must_be_asked(const struct object_call *call, bool hit)
{
    return !call->asked && !call->path->sees_to_owners &&
           earlier_is_asked(call->target, call->state, call->bucket, call->name, hit);
}

int earlier_check_reachable(const struct target *t, const struct cluster_state *s,
                            const struct bucket *b, const char *name, struct error *err)
{
    _cleanup_free_ const struct node **nodes = NULL;
    size_t count = find_nodes(t, s, b, name, false, &nodes);
    for (size_t i = 0; i < count; i++) {
        if (nodes[i]->state == NODE_UNREACHABLE)
            return error_set(err, E_NODE_UNREACHABLE,
                             "target '%s' may have '%s', and is unreachable", nodes[i]->id, name);
    }
    return 0;
}

/* --- several, waiting ------------------------------------------------------------------------ */

int earlier_ask_nodes(struct target *t, const struct cluster_state *s,
                      const struct node *const *nodes, size_t count, uint64_t bucket_id,
                      const char *name, struct object_held *held, struct error *err)
{
    _cleanup_free_ bool *heard = xcalloc(count + 1, sizeof *heard);
    const struct ask_peers_spec spec = {.target = t,
                                        .state = s,
                                        .nodes = nodes,
                                        .count = count,
                                        .bucket_id = bucket_id,
                                        .name = name};
    return ask_peers(&spec, held, heard, err);
}

int earlier_ask_node(struct target *t, const struct cluster_state *s, const struct node *n,
                     uint64_t bucket_id, const char *name, struct object_held *held,
                     struct error *err)
{
    return earlier_ask_nodes(t, s, &n, 1, bucket_id, name, held, err);
}

int earlier_tell_former(struct target *t, const struct cluster_state *s, const struct bucket *b,
                        const char *name, struct error *err)
{
    const struct node *former[OWNERS_ASKED_MAX];
    struct object_held strays[OWNERS_ASKED_MAX]; /* which nobody wants to know of */
    size_t count = owners_former(s, b, name, t->id, former);
    return count > 0 ? earlier_ask_nodes(t, s, former, count, b->id, name, strays, err) : 0;
}

/* --- all of them, one after the other --------------------------------------------------------- */

struct asking {
    struct target *target;
    const struct cluster_state *state;
    uint64_t bucket_id;
    char *name;
    char *url; /* of the question that is under way */
    size_t count, next;
    const struct node **nodes; /* the state's */
    const struct node *best;
    struct object_held held; /* the greatest so far */
    bool uploading;          /* any of them */
    struct error err;
    earlier_fn *fn;
    void *arg;
};

static void asking_end(void *arg)
{
    struct asking *a = arg;
    const struct earlier_answer answer = {.held = a->held,
                                          .node = a->best != NULL ? a->best->id : "",
                                          .data_url = a->best != NULL ? a->best->data_url : ""};
    a->fn(a->arg, &answer, a->err.code != 0 ? &a->err : NULL);
    state_unref(a->state);
    free(a->nodes);
    free(a->name);
    free(a->url);
    free(a);
}

static void ask_next(struct asking *a);

static void answered(void *arg, struct http_result *r)
{
    struct asking *a = arg;
    const struct node *n = a->nodes[a->next++];
    struct object_held held;
    int code = held_of(r, a->url, n->id, &held, &a->err);
    if (code == 0) {
        a->uploading |= held.uploading;
        if (held.found &&
            (!a->held.found || version_compare(&held.version, &a->held.version) > 0)) {
            a->held = held;
            a->best = n;
        }
        a->held.uploading = a->uploading;
    }
    ask_next(a);
}

static void ask_next(struct asking *a)
{
    if (a->err.code == 0 && a->next < a->count) {
        const struct node *n = a->nodes[a->next];
        free(a->url);
        a->url = held_url(a->state, n, a->bucket_id, a->name, false);
        const struct http_call call = {.method = HTTP_GET,
                                       .url = a->url,
                                       .node = n->id,
                                       .total_timeout_ms = a->target->params.call_timeout};
        http_call_start(a->target->data_client, &call, answered, a);
        return;
    }
    if (pool_submit(a->target->workers, asking_end, a, &a->err) != 0)
        asking_end(a);
}

/* Those that are left out keep nobody waiting. */
static void skip_unreachable(struct asking *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (a->nodes[i]->state != NODE_UNREACHABLE)
            a->nodes[kept++] = a->nodes[i];
    }
    a->count = kept;
}

void earlier_ask(struct target *t, const struct cluster_state *s, const struct bucket *b,
                 const char *name, bool may_skip, earlier_fn *fn, void *arg)
{
    struct asking *a = xcalloc(1, sizeof *a);
    *a = (struct asking){.target = t,
                         .state = state_ref(s),
                         .bucket_id = b->id,
                         .name = xstrdup(name),
                         .fn = fn,
                         .arg = arg};
    a->count = find_nodes(t, s, b, name, false, &a->nodes);
    if (may_skip)
        skip_unreachable(a);
    ask_next(a);
}

int earlier_ask_wait(struct target *t, const struct cluster_state *s, const struct bucket *b,
                     const char *name, struct object_held *held, struct error *err)
{
    _cleanup_free_ const struct node **nodes = NULL;
    size_t count = find_nodes(t, s, b, name, false, &nodes);
    _cleanup_free_ struct object_held *all = xcalloc(count + 1, sizeof *all);
    int code = earlier_ask_nodes(t, s, nodes, count, b->id, name, all, err);
    *held = (struct object_held){.found = false};
    bool uploading = false;
    for (size_t i = 0; i < count && code == 0; i++) {
        uploading |= all[i].uploading;
        if (all[i].found && (!held->found || version_compare(&all[i].version, &held->version) > 0))
            *held = all[i];
    }
    held->uploading = uploading;
    return code;
}

int earlier_ask_for(const struct object_call *call, struct object_held *held, struct error *err)
{
    return earlier_ask_wait(call->target, call->state, call->bucket, call->name, held, err);
}

/* --- GET and HEAD ----------------------------------------------------------------------------- */

/* What is here may have come while others were asked. */
static void read_answered(void *arg, const struct earlier_answer *a, const struct error *failure)
{
    struct object_call *call = arg;
    struct object_held here = {.found = false};
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    log_set_request(http_request_id(call->req));
    call->asked = true;
    if (err.code == 0)
        object_call_look(call, &here, &err);
    bool there =
        a->held.found && (!here.found || version_compare(&a->held.version, &here.version) > 0);
    if (err.code != 0)
        object_call_fail(call, "get", &err);
    else if (there ? !a->held.visible : here.found && !here.visible)
        miss_ends(call);
    else if (there)
        read_through_begin(call, a);
    else if (here.found)
        call->read.here(call);
    else
        miss_next(call);
    log_set_request(NULL);
}

void earlier_serve(struct object_call *call, void (*here)(struct object_call *call))
{
    call->read.here = here;
    earlier_ask(call->target, call->state, call->bucket, call->name, false, read_answered, call);
}

static bool take_miss(struct object_call *call)
{
    if (!earlier_must_be_asked(call, false))
        return false;
    earlier_serve(call, call->serve);
    return true;
}

const struct miss_source earlier_source = {.name = "earlier owners", .take = take_miss};
