/* What the acting owner of a name wants done here with what it has staged (staged.h): the calls,
 * and the row of the write paths that stages. */
#include "target/copies/staged.h"

#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/node/admit.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/copies/object_copy.h"
#include "target/node/state_sync.h"
#include "target/node/member.h"
#include "target/node/reply.h"
#include "target/node/write_path.h"
#include "target/store/object.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

#define ORDER_MAGIC 0x0b1ec75e

char *staged_url(const struct node *n, uint64_t bucket_id, const char *name,
                 const struct cluster_state *s, const char *stage)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/copies/%llu/", n->data_url, (unsigned long long)bucket_id);
    buf_put_url_escaped(&url, name, strlen(name), "");
    buf_printf(&url, "?dfcv=%llu.%llu", (unsigned long long)s->term,
               (unsigned long long)s->version);
    if (stage != NULL)
        buf_printf(&url, "&stage=%s", stage);
    return buf_steal(&url);
}

/* --- staging ---------------------------------------------------------------------------------- */

static bool takes_staged(const struct object_call *call)
{
    return call->put.kind == PUT_STAGE;
}

static int stage(const struct object_call *call, struct object_put *put, json_t **doc,
                 struct error *err)
{
    const char *id = http_header(call->req, OBJECT_STAGE_HEADER);
    int errnum = fault_errno("copies.stage");
    if (errnum != 0)
        return error_errno(err, errnum, "stage");
    if (id == NULL)
        return error_set(err, E_INVALID, "a staged copy has " OBJECT_STAGE_HEADER);
    int code = object_put_finish(put, err);
    if (code != 0)
        return code;
    *doc = object_reply_size(object_put_attr(put));
    return staged_keep(call->target->copies->staged, id, clock_ms(), put, err);
}

static void commit_staged(struct object_call *call, struct write_parts *parts)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    if (stage(call, parts->put, &doc, &err) == 0) {
        http_reply_json(call->req, 200, doc);
        return;
    }
    object_put_abort(parts->put);
    object_call_fail(call, "stage", &err);
}

const struct write_path staged_path = {.name = "staged",
                                       .sees_to_owners = true,
                                       .takes = takes_staged,
                                       .open = write_open_here,
                                       .commit = commit_staged};

/* --- calls ------------------------------------------------------------------------------------ */

/* The order of an acting owner, in the request's arena. */
struct order {
    unsigned magic;
    struct http_request *req;
    struct target *target;
    uint64_t bucket_id;
    const char *name;
    const char *stage;      /* NULL: a tombstone */
    uint64_t term, version; /* the sender's state */
    struct object_moved as;
};

static struct order *order_of(void *arg)
{
    struct order *o = arg;
    assert(o->magic == ORDER_MAGIC);
    return o;
}

/* Under the name's lock. */
static int check_fence(void *ctx, const struct attr *current, struct error *err)
{
    const struct order *o = order_of(ctx);
    uint64_t term, version;
    (void)current;
    state_sync_placement(o->target->state_sync, &term, &version);
    if (o->term > term || (o->term == term && o->version >= version))
        return 0;
    return error_set(err, E_STALE_MAP, "target '%s' has a later map (%llu.%llu)", o->target->id,
                     (unsigned long long)term, (unsigned long long)version);
}

/* Under it, too, right before anybody can see it: what is refused leaves no mark. */
static void mark(void *ctx)
{
    const struct order *o = order_of(ctx);
    dirty_mark(o->target->copies->dirty, o->bucket_id, o->name, &o->as.version, clock_ms());
}

/* The sender comes again with a newer map, if it acts by that one, too: until then it is staged
 * still. */
static void keep(void *ctx, struct object_put *put)
{
    const struct order *o = order_of(ctx);
    struct error err = ERROR_INIT;
    if (staged_keep(o->target->copies->staged, o->stage, clock_ms(), put, &err) == 0)
        return;
    log_warn("stage not kept", lstr("name", o->name), lerr(&err));
    object_put_abort(put);
}

static void committed(void *arg, const struct attr *attr, const struct error *err)
{
    struct order *o = order_of(arg);
    struct error copy = *err, late = ERROR_INIT;
    int errnum = fault_errno("copies.committed");
    /* What is more than the order's is no proof that its sender acted when that was written. */
    if (copy.code == E_NOT_MODIFIED && check_fence(o, NULL, &late) != 0)
        copy = late;
    if (attr != NULL && errnum != 0)
        error_errno(&copy, errnum, "answer");
    if (copy.code != 0)
        http_reply_error(o->req, &copy);
    else
        http_reply_empty(o->req, 204);
}

/* A put for a tombstone; bytes were staged. */
static int begin_tombstone(const struct order *o, struct object_put **put, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(o->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, o->bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    const struct object_put_spec spec = {.bucket_id = o->bucket_id,
                                         .name = o->name,
                                         .durability = b->props.durability,
                                         .checksum = CHECKSUM_NONE,
                                         .moved = &o->as};
    return object_put_begin(o->target->store, &spec, put, err);
}

static int find_put(const struct order *o, struct object_put **put, struct error *err)
{
    int errnum = fault_errno("copies.commit");
    if (errnum != 0)
        return error_errno(err, errnum, "commit");
    if (o->stage == NULL)
        return begin_tombstone(o, put, err);
    *put = staged_take(o->target->copies->staged, o->stage);
    return *put != NULL ? 0 : error_set(err, E_NOT_FOUND, "stage '%s' is not here", o->stage);
}

static void commit(struct order *o)
{
    struct object_put *put = NULL;
    struct error err = ERROR_INIT;
    const struct object_condition fence = {
        .check = check_fence, .seen = mark, .kept = o->stage != NULL ? keep : NULL, .ctx = o};
    if (find_put(o, &put, &err) != 0) {
        http_reply_error(o->req, &err);
        return;
    }
    object_put_commit_as(put, &o->as, &fence, committed, o);
}

/* In a worker. */
static void refreshed(void *arg)
{
    struct order *o = order_of(arg);
    struct error err = ERROR_INIT;
    bool ahead = false;
    if (sender_is_ahead(o->req, &ahead, &err) == 0 && ahead)
        error_set(&err, E_NOT_READY, "target '%s' could not get cluster state %s", o->target->id,
                  http_query(o->req, "dfcv"));
    if (err.code != 0)
        http_reply_error(o->req, &err);
    else
        commit(o);
}

static int parse_order(struct order *o, struct error *err)
{
    const char *dfcv = http_query(o->req, "dfcv");
    o->name = http_path_param(o->req, "object");
    o->stage = http_query(o->req, "stage");
    int code = parse_u64(http_path_param(o->req, "bucket_id"), &o->bucket_id, err);
    if (code == 0)
        code = object_name_check(o->name, strlen(o->name), err);
    if (code == 0 && dfcv == NULL)
        code = error_set(err, E_INVALID, "parameter 'dfcv' is missing");
    return code != 0 ? code : admit_parse_state_version(dfcv, &o->term, &o->version, err);
}

static int parse_commit(struct order *o, struct error *err)
{
    const char *version = http_query(o->req, "version"), *modified = http_query(o->req, "modified");
    uint64_t modified_ms;
    int code = parse_order(o, err);
    if (code == 0 && (version == NULL || modified == NULL))
        code = error_set(err, E_INVALID, "parameter 'version' or 'modified' is missing");
    if (code == 0)
        code = version_parse(version, &o->as.version, err);
    if (code == 0 && (code = parse_u64(modified, &modified_ms, err)) == 0)
        o->as.modified_ms = (int64_t)(modified_ms & INT64_MAX);
    o->as.tombstone = o->stage == NULL;
    return code;
}

static struct order *order_new(struct http_request *req)
{
    struct order *o = arena_alloc(http_arena(req), sizeof *o);
    *o = (struct order){.magic = ORDER_MAGIC, .req = req, .target = http_user(req)};
    return o;
}

static void commit_begin(struct http_request *req)
{
    struct order *o = order_new(req);
    struct error err = ERROR_INIT;
    bool ahead = false;
    int code = parse_commit(o, &err);
    if (code == 0)
        code = sender_is_ahead(req, &ahead, &err);
    if (code != 0)
        http_reply_error(req, &err);
    else if (ahead)
        member_refresh(o->target->member, http_query(req, "dfcv"), refreshed, o);
    else
        commit(o);
}

static void drop_begin(struct http_request *req)
{
    struct order *o = order_new(req);
    struct error err = ERROR_INIT;
    if (parse_order(o, &err) == 0 && o->stage == NULL)
        error_set(&err, E_INVALID, "parameter 'stage' is missing");
    if (err.code != 0) {
        http_reply_error(req, &err);
        return;
    }
    object_put_abort(staged_take(o->target->copies->staged, o->stage));
    http_reply_empty(req, 204);
}

#define PATTERN "/v1/copies/{bucket_id}/{object...}"

const struct http_route staged_routes[] = {
    {.name = "copy_commit",
     .method = HTTP_POST,
     .pattern = PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = commit_begin,
     .summary = "What the leader has staged here becomes the object.",
     .query = HTTP_PARAMETERS({"stage", "its id, or without: a tombstone"},
                              {"version", "what it is to have"}, {"modified", "what it is to have"},
                              {"dfcv", "the sender's state version"}),
     .body = "",
     .reply = "204; 304 if the target has this version or a later one",
     .errors = "stale_map not_ready not_found bucket_not_found no_space object_reserved"},
    {.name = "copy_drop",
     .method = HTTP_DELETE,
     .pattern = PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = drop_begin,
     .summary = "Drops what the leader has staged.",
     .query = HTTP_PARAMETERS({"stage", "its id"}, {"dfcv", "the sender's state version"}),
     .body = "",
     .reply = "204, also where it is not here",
     .errors = "invalid_argument"},
    {.name = NULL},
};
