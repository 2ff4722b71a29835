/* Object calls: the owner that acts, or for reads another one, is computed from the snapshot, and
 * the client is sent there, or the bytes stream through. */
#include "proxy/http/objects.h"

#include <string.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "proxy/primary/proxy.h"
#include "proxy/http/relay.h"

enum { RENAME_BODY_MAX = 16 << 10 }; /* as a target's */

static int check_names(const char *bucket, const char *object, struct error *err)
{
    int r = bucket_name_check(bucket, err);
    return r != 0 ? r : object_name_check(object, strlen(object), err);
}

/* The acting owner, or for a read another one that may answer it. */
static const struct node *choose(struct proxy *p, const struct cluster_state *s,
                                 const struct bucket *b, const struct owners *o)
{
    const struct node *readers[OWNERS_MAX];
    size_t count = owners_readers(s, b, o, readers);
    return read_choice_pick(&p->read_choice, readers, count, param_live(p->params.read_spread),
                            clock_ms());
}

static int find_owner(struct proxy *p, const struct cluster_state *s, const char *bucket,
                      const char *object, bool reads, const struct bucket **b,
                      const struct node **owner, struct error *err)
{
    *b = bmd_bucket(&s->bmd, bucket);
    if (*b == NULL)
        return proxy_no_bucket(p, bucket, err);
    struct owners o;
    int code = owners_find_acting(s, *b, object, &o, err);
    if (code != 0)
        return code;
    *owner = reads ? choose(p, s, *b, &o) : o.acting;
    return 0;
}

static bool is_read(const struct http_request *req)
{
    return http_method(req) == HTTP_GET || http_method(req) == HTTP_HEAD;
}

/* The acting owner's URL by the map in force; NULL: it has none. */
static char *where_it_is(struct proxy *p, const struct relay_object *o, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b;
    const struct node *owner = NULL;
    struct buf url = BUF_INIT;
    if (find_owner(p, s, o->bucket, o->object, false, &b, &owner, err) != 0)
        return NULL;
    location_put_target(&url, owner, s, b, o->object, o->raw_query);
    buf_puts(&url, o->proof);
    return buf_steal(&url);
}

static void stream(struct proxy *p, struct http_request *req, const struct bucket *b,
                   const char *url, const char *proof, const char *raw_query)
{
    const struct relay_object object = {.bucket = b->name,
                                        .object = http_path_param(req, "object"),
                                        .raw_query = raw_query,
                                        .proof = proof,
                                        .where = where_it_is};
    if (is_read(req) && bucket_has_copies(b))
        relay_read(p, req, url, &object);
    else
        relay_start(p, req, url);
}

/* What the target is to believe: of the request, or of the call that it becomes. */
static void put_proof(const struct http_request *req, const struct object_send *how,
                      const struct bucket *b, struct buf *proof)
{
    const struct redirect_call call = {.reads = is_read(req),
                                       .method = http_method_name(http_method(req)),
                                       .bucket_id = b->id,
                                       .object = http_path_param(req, "object"),
                                       .range = http_header(req, "Range"),
                                       .member = how->member};
    if (how->streams && !guard_has_url(req)) /* a token is streamed, too */
        return;
    if (how->member != NULL)
        guard_put_call_proof(req, &call, proof);
    else
        guard_put_proof(req, b->id, how->new_name, proof);
}

void object_send(struct http_request *req, const struct object_send *how)
{
    struct proxy *p = http_user(req);
    const char *bucket = http_path_param(req, "bucket");
    const char *object = http_path_param(req, "object");
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b;
    const struct node *owner = NULL;
    struct error err = ERROR_INIT;
    if (check_names(bucket, object, &err) != 0 ||
        find_owner(p, s, bucket, object, is_read(req), &b, &owner, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf proof = BUF_INIT;
    location_put_target(&url, owner, s, b, object, how->raw_query);
    put_proof(req, how, b, &proof);
    buf_puts(&url, buf_str(&proof));
    if (how->streams)
        stream(p, req, b, buf_str(&url), buf_str(&proof), how->raw_query);
    else
        http_reply_redirect(req, buf_str(&url));
}

static void send_on(struct http_request *req, const char *new_name)
{
    const struct object_send how = {
        .raw_query = http_raw_query(req), .new_name = new_name, .streams = relay_is_wanted(req)};
    object_send(req, &how);
}

static void object_begin(struct http_request *req)
{
    if (proxy_enter_objects(req) != NULL)
        send_on(req, NULL);
}

/* Of a rename the proxy vouches for the new name, too, which the body has. */
static void rename_body(struct http_request *req, const char *data, size_t len)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *name = NULL;
    struct error err = ERROR_INIT;
    if (json_parse_action(data, len, "rename", &doc, &name, NULL, &err) != 0 ||
        guard_ask_new_name(req, http_path_param(req, "bucket"), name, &err) != 0)
        http_reply_error(req, &err);
    else
        send_on(req, name);
}

/* A target that gets the caller's token, or no proof, decides itself. */
static void rename_begin(struct http_request *req)
{
    if (proxy_enter_objects(req) == NULL)
        return;
    if (guard_user(req) == NULL || relay_is_wanted(req))
        send_on(req, NULL);
    else
        http_collect_body(req, RENAME_BODY_MAX, rename_body);
}

#define OBJECT_PATTERN "/v1/objects/{bucket}/{object...}"
#define REDIRECT                               \
    {                                          \
        "redirect", "never: through the proxy" \
    }
#define OBJECT_MEMBERS                                                                            \
    {"member", "name of a member: of the archive that the object is, this file alone"},           \
        {"members", "list: a page of the archive's members, as JSON; tar: those that match"},     \
        {"match", "with tar: a text of 1 to 1024 bytes, which names are compared with"},          \
        {"mode", "with tar: prefix, suffix, substr, wdskey (the name up to the first dot of its " \
                 "last part) or regexp (of PCRE2)"},                                              \
        {"after", "with members: those behind this name"},                                        \
    {                                                                                             \
        "limit", "with members: at most so many, 1 to 10000; default 1000"                        \
    }
#define SIGNED                                                                           \
    {                                                                                    \
        "dfcu", "with access control: the proof of a signed URL ([auth_url](#auth_url))" \
    }
#define PUT_MEMBERS                                                                        \
    {"member",                                                                             \
     "name of a member: the body is put into the archive that the object is, as its last " \
     "member"},                                                                            \
        {"members", "tar: the body is a tar; its members are put into the archive"},       \
        {"overwrite",                                                                      \
         "true: a member of a name that is there takes its place; else member_exists"},    \
    {                                                                                      \
        "create", "false: object_not_found if there is no archive"                         \
    }
#define MEMBER_ERRORS \
    " not_an_archive member_not_found member_unreadable archive_damaged archive_limit"
#define APPEND_ERRORS \
    " member_exists not_an_archive member_unreadable archive_damaged archive_limit"
#define OBJECT_ERRORS "invalid_name bucket_not_found no_targets node_unreachable"

const struct http_route object_routes[] = {
    {.name = "object_put",
     .method = HTTP_PUT,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .begin = object_begin,
     .summary = "Stores an object, or puts members into the archive that it is: sends the client "
                "to the target that owns it.",
     .query = HTTP_PARAMETERS(PUT_MEMBERS,
                              {"redirect", "never: the proxy streams the body through (also: "
                                           "header `Dfc-Redirect: never`)"},
                              SIGNED),
     .body = "the bytes; a chunked body without `Expect: 100-continue` is streamed through",
     .reply = "307 to the target; its reply is `{\"size\", \"checksum\": {\"type\", \"value\"}, "
              "\"version\", \"etag\"}`",
     .errors = OBJECT_ERRORS " checksum_mismatch precondition_failed no_space" APPEND_ERRORS},
    {.name = "object_get",
     .method = HTTP_GET,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = object_begin,
     .summary = "Reads an object, or members of the archive that it is: sends the client to the "
                "target that owns it.",
     .query = HTTP_PARAMETERS(
         {"offset", "bytes"}, {"length", "bytes"}, OBJECT_MEMBERS,
         {"digest", "xxh3, crc32c, md5 or sha256: in place of the bytes their checksum, as JSON"},
         REDIRECT, SIGNED),
     .body = "",
     .reply = "307 to the target; its reply is the bytes, or of members JSON",
     .errors =
         OBJECT_ERRORS " object_not_found range_not_satisfiable precondition_failed" MEMBER_ERRORS},
    {.name = "object_head",
     .method = HTTP_HEAD,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = object_begin,
     .summary = "The headers of GET without the bytes.",
     .query = HTTP_PARAMETERS({"offset", "bytes"}, {"length", "bytes"}, OBJECT_MEMBERS, REDIRECT,
                              SIGNED),
     .body = "",
     .reply = "307 to the target",
     .errors = OBJECT_ERRORS " object_not_found" MEMBER_ERRORS},
    {.name = "object_delete",
     .method = HTTP_DELETE,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .begin = object_begin,
     .summary = "Deletes an object: sends the client to the target that owns it.",
     .query = HTTP_PARAMETERS(REDIRECT),
     .body = "",
     .reply = "307 to the target; its reply is 204",
     .errors = OBJECT_ERRORS " object_not_found"},
    {.name = "object_rename",
     .method = HTTP_POST,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .begin = rename_begin,
     .summary = "Renames an object within its bucket: sends the client to the target that owns it. "
                "Needs the right `read` on the old name and `write` on the new one, too.",
     .query = HTTP_PARAMETERS(REDIRECT),
     .body = "`{\"action\": \"rename\", \"name\": new name}`",
     .reply = "307 to the target; its reply is 204",
     .errors = OBJECT_ERRORS " object_not_found object_reserved precondition_failed"},
    {.name = NULL},
};
