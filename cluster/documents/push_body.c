#include "cluster/documents/push_body.h"

#include <string.h>

#include "cluster/base/json_items.h"
#include "cluster/documents/delta.h"
#include "common/jsonx.h"

static json_t *body_of(const struct cluster_state *from, const struct cluster_state *to)
{
    if (from == NULL)
        return state_to_json(to);
    return json_pack("{s:i, s:{s:s, s:I, s:I}, s:o}", "format", state_format(to), "from", "cluster",
                     from->cluster_id, "term", (json_int_t)from->term, "version",
                     (json_int_t)from->version, "delta", state_delta(from, to));
}

char *push_body_text(const struct cluster_state *from, const struct cluster_state *to)
{
    _cleanup_json_ json_t *doc = body_of(from, to);
    return json_text(doc);
}

/* Is `now` the state that the difference begins with? */
static int begins_with(const struct cluster_state *now, json_t *from, bool *does, struct error *err)
{
    const char *cluster;
    uint64_t term;
    uint64_t version;
    int r;
    if ((r = json_need_str(from, "from", "cluster", &cluster, err)) != 0 ||
        (r = json_need_u64(from, "from", "term", &term, err)) != 0 ||
        (r = json_need_u64(from, "from", "version", &version, err)) != 0)
        return r;
    if (now->cluster_id[0] != '\0' && strcmp(now->cluster_id, cluster) != 0)
        return error_set(err, E_WRONG_CLUSTER, "this node belongs to cluster '%s', not to '%.64s'",
                         now->cluster_id, cluster);
    *does = now->cluster_id[0] != '\0' && now->term == term && now->version == version;
    return 0;
}

static int read_difference(const struct cluster_state *now, json_t *doc, json_t *from,
                           struct cluster_state **out, struct error *err)
{
    json_t *delta = NULL;
    bool does = false;
    int r;
    if ((r = state_format_check(doc, err)) != 0 ||
        (r = json_get_object(doc, "", "delta", &delta, err)) != 0 ||
        (r = json_present(delta, "", "delta", err)) != 0 ||
        (now != NULL && (r = begins_with(now, from, &does, err)) != 0) || !does)
        return r;
    return state_patch(now, delta, out, err);
}

int push_body_read(const struct cluster_state *now, const char *text, size_t len,
                   struct cluster_state **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *from = NULL;
    *out = NULL;
    int r = json_parse(text, len, &doc, err);
    if (r != 0)
        return r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "a push must be an object");
    if ((r = json_get_object(doc, "", "from", &from, err)) != 0)
        return r;
    return from == NULL ? state_from_json(doc, out, err)
                        : read_difference(now, doc, from, out, err);
}

json_t *push_reply_to_json(const struct push_reply *r)
{
    return json_pack("{s:I, s:I, s:b}", "term", (json_int_t)r->term, "version",
                     (json_int_t)r->version, "deltas", r->deltas);
}

int push_reply_from_json(json_t *doc, struct push_reply *reply, struct error *err)
{
    struct push_reply read = {0};
    int r;
    if ((r = json_need_u64(doc, "", "term", &read.term, err)) != 0 ||
        (r = json_need_u64(doc, "", "version", &read.version, err)) != 0 ||
        (r = json_get_bool(doc, "", "deltas", &read.deltas, err)) != 0)
        return r;
    *reply = read;
    return 0;
}
