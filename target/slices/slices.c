#include "target/slices/slices.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/node/call.h"
#include "target/slices/ec.h"
#include "target/format/ec_manifest.h"
#include "target/node/member.h"
#include "target/store/object.h"
#include "target/node/target.h"

#define SLICE_MAGIC 0x0ec511ce
#define EC_SLICE_OBJECT "object" /* in a slice's metadata */

/* --- what a request says ---------------------------------------------------------------------- */

/* In the request's arena. */
struct slice_call {
    unsigned magic;
    struct http_request *req;
    struct target *target;
    uint64_t bucket_id; /* of the slices */
    const char *slice;
    struct object_put *put; /* of a PUT */
};

static struct slice_call *slice_call_of(void *arg)
{
    struct slice_call *c = arg;
    assert(c->magic == SLICE_MAGIC);
    return c;
}

static int parse_bucket(struct slice_call *c, struct error *err)
{
    uint64_t id;
    int code = parse_u64(http_path_param(c->req, "bucket_id"), &id, err);
    if (code == 0 && id >= EC_SLICES_BIT)
        code = error_set(err, E_INVALID, "there is no bucket %" PRIu64, id);
    c->bucket_id = ec_slices_bucket(id & ~EC_SLICES_BIT);
    return code;
}

static struct slice_call *slice_call_new(struct http_request *req)
{
    struct slice_call *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct slice_call){.magic = SLICE_MAGIC, .req = req, .target = http_user(req)};
    return c;
}

static int parse_slice(struct slice_call *c, struct error *err)
{
    uint64_t tag;
    unsigned index;
    c->slice = http_path_param(c->req, "slice");
    int code = parse_bucket(c, err);
    return code != 0 ? code : ec_slice_name_parse(c->slice, &tag, &index, err);
}

/* An absent one stays what it is. */
static int query_u64(const struct http_request *req, const char *name, uint64_t *value,
                     struct error *err)
{
    const char *text = http_query(req, name);
    if (text == NULL || parse_u64(text, value, err) == 0)
        return 0;
    return error_recode(err, E_INVALID, "parameter '%s'", name);
}

static void fail(const struct slice_call *c, const char *what, const struct error *err)
{
    if (err->code == E_IO || err->code == E_CORRUPT)
        log_error("slice failed", lstr("call", what), lstr("slice", c->slice), lerr(err));
    http_reply_error(c->req, err);
}

/* --- PUT -------------------------------------------------------------------------------------- */

static void stored(void *arg, const struct attr *attr, const struct error *err)
{
    const struct slice_call *c = slice_call_of(arg);
    if (attr != NULL)
        http_reply_empty(c->req, 204);
    else
        fail(c, "put", err);
}

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    struct slice_call *c = slice_call_of(ctx);
    struct error err = ERROR_INIT;
    (void)req;
    if (c->put == NULL || object_put_write(c->put, data, len, &err) == 0)
        return len;
    object_put_abort(steal(c->put));
    fail(c, "put", &err);
    return len;
}

static void body_end(struct http_request *req, void *ctx)
{
    struct slice_call *c = slice_call_of(ctx);
    struct error err = ERROR_INIT;
    (void)req;
    if (c->put == NULL)
        return;
    int errnum = fault_errno("ec.slice");
    if (errnum == 0) {
        object_put_commit(steal(c->put), stored, c);
        return;
    }
    object_put_abort(steal(c->put));
    error_errno(&err, errnum, "keep '%s'", c->slice);
    fail(c, "put", &err);
}

static void body_cut(struct http_request *req, void *ctx)
{
    (void)req;
    object_put_abort(steal(slice_call_of(ctx)->put));
}

static int put_start(struct slice_call *c, struct error *err)
{
    const char *object = http_query(c->req, "object"), *sync = http_query(c->req, "sync");
    int64_t length = http_content_length(c->req);
    bool is_sync = true;
    int code = parse_slice(c, err);
    if (code == 0 && (object == NULL || length < 0))
        code = error_set(err, E_INVALID, "a slice has a length and the parameter 'object'");
    if (code == 0)
        code = object_name_check(object, strlen(object), err);
    if (code == 0 && sync != NULL)
        code = parse_bool(sync, &is_sync, err);
    if (code != 0)
        return code;
    struct buf meta = BUF_INIT;
    buf_append(&meta, EC_SLICE_OBJECT, sizeof EC_SLICE_OBJECT);
    buf_append(&meta, object, strlen(object) + 1);
    const struct object_put_spec spec = {.bucket_id = c->bucket_id,
                                         .name = c->slice,
                                         .size = (uint64_t)length,
                                         .durability = is_sync ? DURABILITY_SYNC : DURABILITY_ASYNC,
                                         .checksum = CHECKSUM_XXH3,
                                         .meta = meta.data,
                                         .meta_len = meta.len};
    code = object_put_begin(c->target->store, &spec, &c->put, err);
    buf_done(&meta);
    return code;
}

static void put_begin(struct http_request *req)
{
    static const struct http_body_ops ops = {.data = body_data, .end = body_end, .cut = body_cut};
    struct slice_call *c = slice_call_new(req);
    struct error err = ERROR_INIT;
    if (put_start(c, &err) == 0)
        http_take_body(req, &ops, c);
    else
        fail(c, "put", &err);
}

/* --- GET -------------------------------------------------------------------------------------- */

static int reply_range(const struct slice_call *c, const struct object *o, struct reader **reader,
                       struct error *err)
{
    uint64_t offset = 0, length = o->attr.size;
    int code = query_u64(c->req, "offset", &offset, err);
    if (code == 0)
        code = query_u64(c->req, "length", &length, err);
    if (code == 0 && (offset > o->attr.size || length > o->attr.size - offset))
        code = error_set(err, E_RANGE, "the slice has %" PRIu64 " bytes", o->attr.size);
    if (code == 0)
        http_reply_file(c->req, 200, o->fd, offset, length, steal(*reader));
    else
        close(o->fd);
    return code;
}

/* In an HTTP thread, or in a reader's. */
static void get_serve(void *arg)
{
    struct slice_call *c = slice_call_of(arg);
    struct object o;
    struct reader *reader;
    struct error err = ERROR_INIT;
    int code = object_open_for(c->target->store, c->bucket_id, c->slice, reader_may_wait(), &o,
                               &reader, &err);
    if (code == OBJECT_WAITS)
        code = reader_submit(reader, get_serve, c, &err);
    else if (code == 0)
        code = reply_range(c, &o, &reader, &err);
    if (code != 0)
        fail(c, "get", &err);
    reader_unref(reader);
}

/* In a worker. */
static void get_left(void *arg)
{
    struct slice_call *c = slice_call_of(arg);
    struct object o;
    struct reader *reader;
    struct error err = ERROR_INIT;
    int code = object_open_left(c->target->store, c->bucket_id, c->slice, &o.fd, &o.attr.size,
                                &reader, &err);
    if (code == 0)
        code = reply_range(c, &o, &reader, &err);
    if (code != 0)
        fail(c, "get", &err);
    reader_unref(reader);
}

static void get_begin(struct http_request *req)
{
    struct slice_call *c = slice_call_new(req);
    const char *left = http_query(req, "left");
    bool is_left = false;
    struct error err = ERROR_INIT;
    int code = parse_slice(c, &err);
    if (code == 0 && left != NULL)
        code = parse_bool(left, &is_left, &err);
    if (code == 0 && is_left)
        code = pool_submit(c->target->workers, get_left, c, &err);
    else if (code == 0)
        get_serve(c);
    if (code != 0)
        fail(c, "get", &err);
}

/* --- DELETE ----------------------------------------------------------------------------------- */

static int drop(struct slice_call *c, uint64_t placed, struct error *err)
{
    struct object_held held;
    _cleanup_state_ const struct cluster_state *s = state_current(c->target->state);
    if (s->smap.placed != placed)
        return error_set(err, E_STALE_MAP, "the owners have changed since it was decided upon");
    int code = object_look(c->target->store, c->bucket_id, c->slice, &held, err);
    if (code == 0 && held.found)
        code = object_drop(c->target->store, c->bucket_id, c->slice, &held.version, err);
    return code;
}

/* In a worker. */
static void delete_serve(void *arg)
{
    struct slice_call *c = slice_call_of(arg);
    uint64_t placed = 0;
    struct error err = ERROR_INIT;
    int code = query_u64(c->req, "placed", &placed, &err);
    pthread_mutex_lock(&c->target->ec->dropping);
    if (code == 0)
        code = drop(c, placed, &err);
    pthread_mutex_unlock(&c->target->ec->dropping);
    if (code == 0)
        http_reply_empty(c->req, 204);
    else
        fail(c, "delete", &err);
}

static void delete_begin(struct http_request *req)
{
    struct slice_call *c = slice_call_new(req);
    struct error err = ERROR_INIT;
    int code = parse_slice(c, &err);
    if (code == 0)
        code = pool_submit(c->target->workers, delete_serve, c, &err);
    if (code != 0)
        fail(c, "delete", &err);
}

/* --- which are here --------------------------------------------------------------------------- */

static bool is_absent(int code)
{
    return code == E_OBJECT_NOT_FOUND || code == E_CORRUPT;
}

/* What was decided by earlier owners is done, or is refused from now on. */
static int promise(const struct slice_call *c, struct error *err)
{
    bool ahead = false;
    int code = sender_is_ahead(c->req, &ahead, err);
    if (code == 0 && ahead)
        code = error_set(err, E_NOT_READY, "target '%s' could not get cluster state %s",
                         c->target->id, http_query(c->req, "dfcv"));
    pthread_mutex_lock(&c->target->ec->dropping);
    pthread_mutex_unlock(&c->target->ec->dropping);
    return code;
}

/* Is there something of one that is not whole? */
static bool is_left(const struct slice_call *c, const char *slice)
{
    int fd;
    uint64_t size;
    struct reader *reader;
    int code = object_open_left(c->target->store, c->bucket_id, slice, &fd, &size, &reader, NULL);
    if (code == 0)
        close(fd);
    reader_unref(reader);
    return code == 0 && size > 0;
}

static int look(const struct slice_call *c, json_t *list, json_t *left, struct error *err)
{
    uint64_t tag, slices = EC_SLICES_MAX;
    int code = ec_tag_parse(c->slice, strlen(c->slice), &tag, err);
    if (code == 0)
        code = query_u64(c->req, "slices", &slices, err);
    for (unsigned i = 0; code == 0 && i < slices && i < EC_SLICES_MAX; i++) {
        char name[EC_SLICE_NAME_MAX];
        struct object o;
        struct error why = ERROR_INIT;
        int found =
            object_head(c->target->store, c->bucket_id, ec_slice_name(tag, i, name), &o, &why);
        if (found == 0)
            json_array_append_new(list, json_integer(i));
        else if (found == E_CORRUPT && is_left(c, name))
            json_array_append_new(left, json_integer(i));
        else if (!is_absent(found))
            code = error_set(err, why.code, "%s", why.message);
    }
    return code;
}

/* In a worker. */
static void find_serve(void *arg)
{
    struct slice_call *c = slice_call_of(arg);
    struct error err = ERROR_INIT;
    json_t *list = json_array(), *left = json_array();
    _cleanup_json_ json_t *doc = json_pack("{so so}", "slices", list, "left", left);
    int code = http_query(c->req, "dfcv") != NULL ? promise(c, &err) : 0;
    if (code == 0)
        code = look(c, list, left, &err);
    if (code == 0)
        http_reply_json(c->req, 200, doc);
    else
        fail(c, "find", &err);
}

static void find_begin(struct http_request *req)
{
    struct slice_call *c = slice_call_new(req);
    const char *tag = http_query(req, "tag"), *dfcv = http_query(req, "dfcv");
    struct error err = ERROR_INIT;
    bool ahead = false;
    c->slice = tag != NULL ? tag : "";
    int code = parse_bucket(c, &err);
    if (code == 0 && dfcv != NULL)
        code = sender_is_ahead(req, &ahead, &err);
    if (code == 0 && ahead)
        member_refresh(c->target->member, dfcv, find_serve, c);
    else if (code == 0)
        code = pool_submit(c->target->workers, find_serve, c, &err);
    if (code != 0)
        fail(c, "find", &err);
}

const struct http_route ec_slice_routes[] = {
    {.name = "slice_put",
     .method = HTTP_PUT,
     .pattern = "/v1/slices/{bucket_id}/{slice}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = put_begin,
     .summary = "Keeps a slice of an object.",
     .query = HTTP_PARAMETERS({"object", "whose slice it is"},
                              {"sync", "false: it need not be on the disk before the reply"}),
     .body = "the slice",
     .reply = "204",
     .errors = "invalid_argument invalid_name no_space io_error"},
    {.name = "slice_get",
     .method = HTTP_GET,
     .pattern = "/v1/slices/{bucket_id}/{slice}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = get_begin,
     .summary = "Reads a slice that this target has.",
     .query =
         HTTP_PARAMETERS({"offset", "bytes (default 0)"}, {"length", "bytes (default: to its end)"},
                         {"left", "true: what is left of one that is damaged, also in quarantine"}),
     .body = "",
     .reply = "200 with the bytes",
     .errors = "invalid_argument object_not_found invalid_range data_corrupt mountpath_disabled "
               "io_error"},
    {.name = "slice_delete",
     .method = HTTP_DELETE,
     .pattern = "/v1/slices/{bucket_id}/{slice}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = delete_begin,
     .summary = "Removes a slice that another target has, too.",
     .query = HTTP_PARAMETERS({"placed", "the owners by which that was decided"}),
     .body = "",
     .reply = "204, also where there is none",
     .errors = "invalid_argument stale_map mountpath_disabled io_error"},
    {.name = "slices_find",
     .method = HTTP_GET,
     .pattern = "/v1/slices/{bucket_id}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = find_begin,
     .summary = "Which slices of an object this target has.",
     .query = HTTP_PARAMETERS({"tag", "the object's manifest has it"},
                              {"slices", "how many to look for"},
                              {"dfcv", "the sender's state version: nothing is removed from now on "
                                       "that was decided by earlier owners"}),
     .body = "",
     .reply = "`{\"slices\": [indices], \"left\": [indices of those that are damaged]}`",
     .errors = "invalid_argument not_ready mountpath_disabled io_error"},
    {.name = NULL},
};

const char *ec_slice_object(const struct attr *a)
{
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        if (strcmp(name, EC_SLICE_OBJECT) == 0)
            return value;
    }
    return NULL;
}
