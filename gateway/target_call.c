#include "gateway/target_call.h"

#include <strings.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/documents/state_holder.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "net/client/client.h"

/* --- headers of the reply --------------------------------------------------------------------- */

const char *target_call_header(const struct target_call_header *headers, const char *name)
{
    for (; headers != NULL; headers = headers->next) {
        if (strcasecmp(headers->name, name) == 0)
            return headers->value;
    }
    return NULL;
}

struct keeping {
    struct arena *arena;
    struct target_call_header **end;
};

static void keep_header(void *ctx, const char *name, const char *value)
{
    struct keeping *k = ctx;
    struct target_call_header *h = arena_alloc(k->arena, sizeof *h);
    h->name = arena_strdup(k->arena, name);
    h->value = arena_strdup(k->arena, value);
    *k->end = h;
    k->end = &h->next;
}

struct target_call_header *target_call_headers(struct arena *arena, const struct http_head *head)
{
    struct target_call_header *first = NULL;
    struct keeping k = {.arena = arena, .end = &first};
    head->each_header(head, keep_header, &k);
    return first;
}

/* --- the call --------------------------------------------------------------------------------- */

static bool reads(enum http_method method)
{
    return method == HTTP_GET || method == HTTP_HEAD;
}

static int find_owner(const struct cluster_state *s, const struct target_call *call,
                      const struct bucket **b, struct owners *out, struct error *err)
{
    *b = bmd_bucket(&s->bmd, call->bucket);
    if (*b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", call->bucket);
    return owners_find_acting(s, *b, call->key, out, err);
}

int target_call_owner(const struct gateway *g, const struct target_call *call, struct buf *id,
                      struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(gateway_config_of(g)->state);
    const struct bucket *b;
    struct owners owners;
    int code = find_owner(s, call, &b, &owners, err);
    if (code == 0)
        buf_puts(id, owners.acting->id);
    return code;
}

int target_call_url(struct http_request *req, const struct gateway *g,
                    const struct target_call *call, struct buf *url, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(gateway_config_of(g)->state);
    const struct bucket *b;
    struct owners owners;
    int code = find_owner(s, call, &b, &owners, err);
    if (code != 0)
        return code;
    location_put_target(url, owners.acting, s, b, call->key,
                        call->query != NULL ? call->query : "");
    const struct redirect_call proof = {.reads = reads(call->method),
                                        .method = http_method_name(call->method),
                                        .bucket_id = b->id,
                                        .object = call->key,
                                        .range = call->range,
                                        .member = call->member};
    guard_put_call_proof(req, &proof, url);
    return 0;
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* The reply to a HEAD has no document that says what is wrong. */
static int code_of_status(int status)
{
    static const struct {
        int status, code;
    } rows[] = {
        {403, E_ACCESS_DENIED}, {404, E_OBJECT_NOT_FOUND}, {412, E_PRECONDITION},
        {416, E_RANGE},         {429, E_RATE_LIMITED},     {503, E_NOT_READY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].status == status)
            return rows[i].code;
    }
    return E_NET;
}

int target_call_error(const struct http_result *result, const char *url, struct error *err)
{
    if (result->code == 0 && result->status == 304)
        error_set(err, E_NOT_MODIFIED, "it has the entity tag");
    else if (http_result_error(result, url, err) == E_NET && result->code == 0)
        error_set(err, code_of_status(result->status), "the target answered with status %d",
                  result->status);
    if (err->code == E_CANCELLED)
        error_set(err, E_NOT_READY, "this node is stopping");
    else if (result->code != 0) /* its own words have the URL, with the proof in it */
        error_set(err, E_NODE_UNREACHABLE, "the target of the object does not answer");
    return err->code;
}

const char *target_call_next(const struct http_result *result,
                             const struct target_call_header *headers, unsigned hops)
{
    bool follows = result->code == 0 && result->status == 307 && hops < TARGET_CALL_HOPS_MAX;
    return follows ? target_call_header(headers, "Location") : NULL;
}
