#include "target/copies/held.h"

#include <assert.h>
#include <inttypes.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/node/call.h"
#include "target/copies/acting.h"
#include "target/format/ec_manifest.h"
#include "target/node/member.h"
#include "target/node/target.h"

#define HELD_MAGIC 0x0b1ec7e1

/* --- the question ---------------------------------------------------------------------------- */

char *held_url(const struct cluster_state *s, const struct node *n, uint64_t bucket_id,
               const char *name, bool of_these_owners)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/held/%llu/", n->data_url, (unsigned long long)bucket_id);
    buf_put_url_escaped(&url, name, strlen(name), "");
    buf_printf(&url, "?dfcv=%llu.%llu%s", (unsigned long long)s->term,
               (unsigned long long)s->version, of_these_owners ? "&owners=these" : "");
    return buf_steal(&url);
}

/* An absent one is none. */
static int checksum_from_json(json_t *doc, struct checksum_value *out, struct error *err)
{
    const char *name = NULL, *hex = NULL;
    enum checksum_type type;
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
    int code = json_get_str(doc, "", "checksum_type", &name, err);
    if (code == 0)
        code = json_get_str(doc, "", "checksum", &hex, err);
    if (code != 0 || name == NULL || hex == NULL)
        return code;
    code = checksum_from_name(name, &type, err);
    return code != 0 ? code : checksum_parse(type, hex, out, err);
}

static int held_from_json(const char *text, size_t len, struct object_held *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *version = NULL, *slices = NULL, *hidden = NULL;
    uint64_t modified_ms = 0;
    int r;
    *out = (struct object_held){.found = false};
    if ((r = json_parse(text, len, &doc, err)) != 0 ||
        (r = json_get_bool(doc, "", "uploading", &out->uploading, err)) != 0 ||
        (r = json_get_bool(doc, "", "unreadable", &out->unreadable, err)) != 0 ||
        (r = json_get_str(doc, "", "hidden_slices", &hidden, err)) != 0 ||
        (hidden != NULL &&
         (r = ec_tag_parse(hidden, strlen(hidden), &out->hidden_slices, err)) != 0) ||
        (r = json_get_bool(doc, "", "found", &out->found, err)) != 0 || !out->found)
        return r;
    if ((r = json_get_bool(doc, "", "visible", &out->visible, err)) != 0 ||
        (r = json_get_bool(doc, "", "damaged", &out->damaged, err)) != 0 ||
        (r = json_get_bool(doc, "", "no_room", &out->no_room, err)) != 0 ||
        (r = json_get_bool(doc, "", "pending", &out->pending, err)) != 0 ||
        (r = json_get_bool(doc, "", "sent", &out->sent, err)) != 0 ||
        (r = json_get_u64(doc, "", "rank", &out->rank, err)) != 0 ||
        (r = json_get_u64(doc, "", "size", &out->size, err)) != 0 ||
        (r = json_get_u64(doc, "", "modified_ms", &modified_ms, err)) != 0 ||
        (r = json_need_str(doc, "", "version", &version, err)) != 0)
        return r;
    if ((r = checksum_from_json(doc, &out->checksum, err)) != 0 ||
        (r = json_get_str(doc, "", "slices", &slices, err)) != 0 ||
        (slices != NULL && (r = ec_tag_parse(slices, strlen(slices), &out->slices, err)) != 0))
        return r;
    out->modified_ms = (int64_t)(modified_ms & INT64_MAX);
    return version_parse(version, &out->version, err);
}

int held_of(struct http_result *r, const char *url, const char *node, struct object_held *out,
            struct error *err)
{
    struct error why = ERROR_INIT;
    int code = http_result_error(r, url, &why);
    if (code == 0)
        code = held_from_json(buf_str(&r->body), r->body.len, out, &why);
    if (code == 0)
        return 0;
    return error_set(err, code == E_STALE_MAP ? code : E_NODE_UNREACHABLE,
                     "target '%s' may have it, and cannot be asked: %s", node, why.message);
}

/* --- the answer ------------------------------------------------------------------------------- */

struct held_call {
    unsigned magic;
    struct http_request *req;
    uint64_t bucket_id;
};

static struct held_call *held_call_of(void *arg)
{
    struct held_call *call = arg;
    assert(call->magic == HELD_MAGIC);
    return call;
}

static void put_tag(json_t *doc, const char *key, uint64_t tag)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, tag);
    if (tag != 0)
        json_object_set_new(doc, key, json_string(text));
}

static void put_checksum(json_t *doc, const struct checksum_value *sum)
{
    char hex[2 * CHECKSUM_MAX + 1];
    if (sum->type == CHECKSUM_NONE)
        return;
    checksum_hex(sum, hex);
    json_object_set_new(doc, "checksum_type", json_string(checksum_name(sum->type)));
    json_object_set_new(doc, "checksum", json_string(hex));
}

static void reply_held(struct http_request *req, const struct object_held *held, bool uploading)
{
    char version[VERSION_TEXT_MAX];
    _cleanup_json_ json_t *doc = json_pack("{s:b}", "found", (int)held->found);
    if (held->found) {
        json_object_set_new(doc, "visible", json_boolean(held->visible));
        if (held->damaged)
            json_object_set_new(doc, "damaged", json_true());
        if (held->no_room)
            json_object_set_new(doc, "no_room", json_true());
        if (held->pending)
            json_object_set_new(doc, "pending", json_true());
        if (held->sent)
            json_object_set_new(doc, "sent", json_true());
        json_object_set_new(doc, "version", json_string(version_format(&held->version, version)));
        json_object_set_new(doc, "rank", json_integer((json_int_t)held->rank));
        json_object_set_new(doc, "size", json_integer((json_int_t)held->size));
        json_object_set_new(doc, "modified_ms", json_integer((json_int_t)held->modified_ms));
        put_checksum(doc, &held->checksum);
    }
    if (uploading)
        json_object_set_new(doc, "uploading", json_true());
    if (held->unreadable)
        json_object_set_new(doc, "unreadable", json_true());
    put_tag(doc, "slices", held->slices);
    put_tag(doc, "hidden_slices", held->hidden_slices);
    http_reply_json(req, 200, doc);
}

/* Does what this target says count, by the sender's state? */
static int check_counts(const struct held_call *call, struct error *err)
{
    struct target *t = http_user(call->req);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (!copies_is_let_in(t, s)) /* it may have come without its disks */
        return error_set(err, E_NOT_READY, "the cluster has not let in this run of '%s' yet",
                         t->id);
    return sender_knows_owners(call->req, err);
}

static void look(void *arg)
{
    const struct held_call *call = held_call_of(arg);
    struct target *t = http_user(call->req);
    struct object_held held;
    struct error err = ERROR_INIT;
    bool ahead = false;
    int code = sender_is_ahead(call->req, &ahead, &err);
    if (code == 0 && ahead) /* an answer from an older state would be no promise */
        code = error_set(&err, E_NOT_READY, "target '%s' could not get cluster state %s", t->id,
                         http_query(call->req, "dfcv"));
    if (code == 0 && http_query(call->req, "owners") != NULL)
        code = check_counts(call, &err);
    if (code == 0)
        code = object_look(t->store, call->bucket_id, http_path_param(call->req, "object"), &held,
                           &err);
    if (code != 0)
        http_reply_error(call->req, &err);
    else
        reply_held(
            call->req, &held,
            t->object_env.uploading(t, call->bucket_id, http_path_param(call->req, "object")));
}

static int parse_held(struct http_request *req, uint64_t *bucket_id, bool *ahead, struct error *err)
{
    const char *name = http_path_param(req, "object");
    int code = parse_u64(http_path_param(req, "bucket_id"), bucket_id, err);
    if (code == 0)
        code = object_name_check(name, strlen(name), err);
    if (code == 0 && http_query(req, "dfcv") == NULL)
        code = error_set(err, E_INVALID, "parameter 'dfcv' is missing");
    return code != 0 ? code : sender_is_ahead(req, ahead, err);
}

static void held_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct held_call *call = arena_alloc(http_arena(req), sizeof *call);
    struct error err = ERROR_INIT;
    bool ahead = false;
    *call = (struct held_call){.magic = HELD_MAGIC, .req = req};
    int code = parse_held(req, &call->bucket_id, &ahead, &err);
    if (code == 0 && ahead)
        member_refresh(t->member, http_query(req, "dfcv"), look, call);
    else if (code == 0)
        code = pool_submit(t->workers, look, call, &err);
    if (code != 0)
        http_reply_error(req, &err);
}

const struct http_route held_routes[] = {
    {.name = "object_held",
     .method = HTTP_GET,
     .pattern = "/v1/held/{bucket_id}/{object...}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = held_begin,
     .summary = "What this target has of a name that another one owns by now.",
     .query = HTTP_PARAMETERS(
         {"dfcv", "the sender's state version: the answer is of that state or a later one"},
         {"owners", "these: of one with the same owners, by which this target has lost nothing "
                    "since"}),
     .body = "",
     .reply =
         "`{\"found\", \"visible\", \"version\", \"size\", \"modified_ms\", \"checksum_type\", "
         "\"checksum\"}`; found and not "
         "visible: a tombstone; damaged: true where its bytes are lost, and no_room, too, where "
         "they "
         "never came for lack of room; pending: true where the "
         "bucket's backend does not have it yet, uploading: true where it is on its way there; "
         "unreadable: true where something is there whose attribute cannot be read; "
         "\"slices\": the tag of those that it is in, hidden_slices: of those of what a job hides",
     .errors = "invalid_argument invalid_name not_ready stale_map mountpath_disabled io_error"},
    {.name = NULL},
};
