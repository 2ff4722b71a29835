#include "target/http/object_routes.h"

#include "common/log.h"
#include "common/semaphores.h"
#include "target/node/call.h"
#include "target/cold/rename.h"
#include "target/copies/earlier_owners.h"
#include "target/store/renames.h"
#include "target/node/target.h"
#include "target/node/write_path.h"

/* --- DELETE ----------------------------------------------------------------------------------- */

static int check_conditions(void *ctx, const struct attr *current, struct error *err)
{
    struct object_call *call = ctx;
    int code = object_call_check_owners(call, err);
    if (code == 0)
        code = object_call_check_renames(call, err);
    return code != 0 ? code : object_call_check_conditions(call, HTTP_DELETE, current, err);
}

static void serve_delete(struct object_call *call);

static void has_ended(void *arg)
{
    sem_post(arg);
}

/* The turn lasts until the request has ended. */
static void delete_in_turn(void *arg)
{
    struct object_call *call = arg;
    sem_t ended;
    sem_init(&ended, 0, 0);
    log_set_request(http_request_id(call->req));
    http_on_end(call->req, has_ended, &ended);
    call->del.has_turn = true;
    call->asked = false;
    serve_delete(call);
    semaphore_wait(&ended);
    sem_destroy(&ended);
    log_set_request(NULL);
}

/* A DELETE that met a rename is done when its turn comes. */
static int delete_again(struct object_call *call, struct error *err)
{
    return renames_enter(call->target->renames, call->bucket->id, call->name, delete_in_turn, call,
                         err);
}

static void deleted(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_call *call = arg;
    struct error copy = *err;
    log_set_request(http_request_id(call->req));
    (void)attr;
    bool waits = copy.code != 0 && call->del.wants_turn && !call->del.has_turn;
    if (copy.code == 0)
        http_reply_empty(call->req, 204);
    else if (!waits || delete_again(call, &copy) != 0)
        object_call_fail(call, "delete", &copy);
    log_set_request(NULL);
}

static void delete_asked(void *arg, const struct earlier_answer *a, const struct error *failure)
{
    struct object_call *call = arg;
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    log_set_request(http_request_id(call->req));
    call->asked = true;
    call->earlier = a->held;
    if (err.code != 0)
        object_call_fail(call, "delete", &err);
    else
        serve_delete(call);
    log_set_request(NULL);
}

static void serve_delete(struct object_call *call)
{
    struct error err = ERROR_INIT;
    call->condition = (struct object_condition){.check = check_conditions, .ctx = call};
    call->done = deleted;
    if (bucket_refuse_ring(call->bucket, "DELETE", &err) != 0 ||
        bucket_refuse_write(call->bucket, "DELETE", &err) != 0 ||
        bucket_refuse_removal(call->bucket, "DELETE", &err) != 0)
        object_call_fail(call, "delete", &err);
    else if (earlier_must_be_asked(call, false))
        earlier_ask(call->target, call->state, call->bucket, call->name, false, delete_asked, call);
    else
        call->path->remove(call);
}

void object_delete_begin(struct http_request *req)
{
    object_call_run(req, serve_delete);
}

/* --- listing: not one target's to answer ------------------------------------------------------ */

/* A proxy merges the lists of all targets: that is where the client is sent. */
static void list_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *primary = s->primary != NULL ? smap_node(&s->smap, s->primary) : NULL;
    if (primary == NULL) {
        struct error err;
        error_set(&err, E_NOT_READY, "target '%s' knows no proxy that could list", t->id);
        http_reply_error(req, &err);
        return;
    }
    _cleanup_buf_ struct buf url = BUF_INIT;
    const char *query = http_raw_query(req);
    buf_printf(&url, "%s%s%s%s", primary->public_url, http_path(req), *query != '\0' ? "?" : "",
               query);
    http_reply_redirect(req, buf_str(&url));
}

#define OBJECT_PATTERN "/v1/objects/{bucket}/{object...}"
#define OBJECT_RANGE      \
    {"offset", "bytes"},  \
    {                     \
        "length", "bytes" \
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
#define OBJECT_DIGEST                                                                          \
    {                                                                                          \
        "digest", "xxh3, crc32c, md5 or sha256: in place of the bytes their checksum, as JSON" \
    }
#define FROM_PROXY                                                                  \
    {"dfcb", "the bucket's id, from a proxy's redirect"},                           \
        {"dfcv", "the state version, from there"},                                  \
        {"dfca", "with access control: the proxy's decision about this very call"}, \
        {"dfcd", "ais: the call is of AIStore's SDK"},                              \
    {                                                                               \
        "dfcn", "with it: the new name that a rename may give"                      \
    }
/* The SDK reads with `direct` at a target that its own placement names, and adds its query to a
 * redirect that it follows itself, over TLS. */
#define FROM_SDK                                                                  \
    {"provider", "ais: from AIStore's SDK"}, {"archregx", "empty: from the SDK"}, \
    {                                                                             \
        "props", "not looked at: from the SDK"                                    \
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
    "; not_an_archive member_not_found member_unreadable archive_damaged archive_limit"
#define APPEND_ERRORS \
    "; member_exists not_an_archive member_unreadable archive_damaged archive_limit corrupt"
#define ADMISSION                                                                                 \
    "invalid_name bucket_not_found stale_map not_ready node_unreachable; 307 to the owner where " \
    "it is another target"

const struct http_route object_routes[] = {
    {.name = "object_put",
     .method = HTTP_PUT,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .any_type = true,
     .begin = object_write_begin,
     .summary = "Stores an object, or puts members into the archive that it is.",
     .query = HTTP_PARAMETERS(PUT_MEMBERS, {"provider", "ais: from AIStore's SDK"}, FROM_PROXY),
     .body =
         "the bytes; `Content-Type`, `Dfc-Sum`, `Dfc-Tags`, `Dfc-Checksum-Type` with "
         "`Dfc-Checksum-Value`, or `Content-MD5`, `Dfc-Meta-*`, `If-Match`, `If-None-Match: *`; "
         "`Dfc-Missing: not-found`: an `If-Match` that fails because there is no object gets "
         "object_not_found",
     .reply =
         "200 `{\"size\", \"checksum\": {\"type\", \"value\"}, \"version\", \"etag\"}`; `ETag`, "
         "`Last-Modified`, `Dfc-Sum`, `Dfc-Md5` (buckets with etag md5)",
     .errors = ADMISSION "; checksum_mismatch bad_length precondition_failed object_reserved "
                         "write_once is_a_ring no_space quota_exceeded" APPEND_ERRORS},
    {.name = "object_copy",
     .method = HTTP_PUT,
     .pattern = OBJECT_PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_copy_begin,
     .summary = "Stores a copy that another target sends.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body =
         "the bytes; headers as of PUT; `Dfc-Copy: term.version`: unless what is there has the "
         "same bytes (304), or was written under a later state (412); `Dfc-Copy: durable`: on "
         "the disk before the reply whatever the bucket's durability; `Dfc-Copy: made-durable`: "
         "the same of an object that a job makes, with conditions; `Dfc-Copy: move`, with "
         "`Dfc-Version`, `Dfc-Modified` and perhaps `Dfc-Tombstone` and `Dfc-Pending`: as it "
         "is, unless what is "
         "there is as new (304); `Dfc-Copy: hollow`, with `Dfc-Hollow` (its length) besides: "
         "the same without the bytes, for which there is no room; `Dfc-Copy: stage`, with "
         "`Dfc-Stage`: kept, and not visible "
         "until it is committed",
     .reply = "as of PUT; 304",
     .errors = ADMISSION "; checksum_mismatch bad_length precondition_failed object_reserved "
                         "no_space quota_exceeded"},
    {.name = "object_hold_get",
     .method = HTTP_GET,
     .pattern = OBJECT_PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_hold_begin,
     .summary = "Reads an object that this target has, whether it owns it or not.",
     .query = HTTP_PARAMETERS(OBJECT_RANGE, OBJECT_MEMBERS, OBJECT_DIGEST, FROM_PROXY),
     .body = "",
     .reply = "as of GET",
     .errors = ADMISSION "; object_not_found range_not_satisfiable precondition_failed "
                         "corrupt" MEMBER_ERRORS},
    {.name = "object_hold_head",
     .method = HTTP_HEAD,
     .pattern = OBJECT_PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_hold_begin,
     .summary = "The headers of GET without the bytes.",
     .query = HTTP_PARAMETERS(OBJECT_RANGE, OBJECT_MEMBERS, FROM_PROXY),
     .body = "",
     .reply = "as GET, without a body",
     .errors = ADMISSION "; object_not_found precondition_failed corrupt" MEMBER_ERRORS},
    {.name = "object_read",
     .method = HTTP_GET,
     .pattern = "/v1/read/{bucket}/{object...}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_peer_read_begin,
     .summary = "Reads an object as a client does, for a target with a batch or a job.",
     .query = HTTP_PARAMETERS(OBJECT_MEMBERS, OBJECT_DIGEST, FROM_PROXY),
     .body = "",
     .reply = "as of GET",
     .errors = ADMISSION "; object_not_found range_not_satisfiable precondition_failed "
                         "corrupt" MEMBER_ERRORS},
    {.name = "object_look",
     .method = HTTP_HEAD,
     .pattern = "/v1/read/{bucket}/{object...}",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_peer_read_begin,
     .summary = "The headers of an object as a client gets them, for a batch with a report.",
     .query = HTTP_PARAMETERS(OBJECT_MEMBERS, FROM_PROXY),
     .body = "",
     .reply = "as of HEAD",
     .errors = ADMISSION "; object_not_found precondition_failed corrupt" MEMBER_ERRORS},
    {.name = "object_get",
     .method = HTTP_GET,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = object_read_begin,
     .summary = "Reads an object, a range of it, or members of the archive that it is.",
     .query = HTTP_PARAMETERS(OBJECT_RANGE, OBJECT_MEMBERS, OBJECT_DIGEST, FROM_SDK, FROM_PROXY),
     .body = "",
     .reply = "200 or 206 with the bytes; `ETag`, `Last-Modified`, `Dfc-Version`, "
              "`Dfc-Checksum-Type`, `Dfc-Checksum-Value`, `Dfc-Md5` (buckets with etag md5; "
              "`<MD5>-N`: uploaded in N parts), `Dfc-Meta-*`, `Dfc-Tags`, "
              "`Dfc-Parts`, `Dfc-Part-Sums`; 304. Of a member "
              "`Dfc-Archive`, and no checksum; of members `{\"version\", \"count\", "
              "\"members\": [{\"name\", \"type\", \"size\", \"offset\", \"modified\"}], "
              "\"truncated\"}`; with `digest` the reply of a PUT",
     .errors = ADMISSION "; object_not_found range_not_satisfiable precondition_failed "
                         "corrupt" MEMBER_ERRORS},
    {.name = "object_head",
     .method = HTTP_HEAD,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = object_read_begin,
     .summary = "The headers of GET without the bytes.",
     .query = HTTP_PARAMETERS(OBJECT_RANGE, OBJECT_MEMBERS, FROM_SDK, FROM_PROXY),
     .body = "",
     .reply = "as GET, without a body",
     .errors = ADMISSION "; object_not_found precondition_failed corrupt" MEMBER_ERRORS},
    {.name = "object_delete",
     .method = HTTP_DELETE,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .begin = object_delete_begin,
     .summary = "Deletes an object: a tombstone takes its place.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "",
     .reply = "204",
     .errors = ADMISSION "; object_not_found precondition_failed write_once is_a_ring"},
    {.name = "object_remove",
     .method = HTTP_DELETE,
     .pattern = OBJECT_PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = object_delete_begin,
     .summary = "Deletes an object as a client does, for a target with a job.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "",
     .reply = "204",
     .errors = ADMISSION "; object_not_found precondition_failed write_once is_a_ring"},
    {.name = "object_rename",
     .method = HTTP_POST,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .begin = object_rename_begin,
     .summary = "Renames an object within its bucket.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body =
         "`{\"action\": \"rename\", \"name\": new name}`; `If-Match` and the other conditions are "
         "asked of the old name",
     .reply = "204; an object that had the new name is replaced",
     .errors = ADMISSION
     "; object_not_found object_reserved precondition_failed write_once is_a_ring invalid_argument "
     "no_space network_error"},
    {.name = "object_copy_from",
     .method = HTTP_POST,
     .pattern = OBJECT_PATTERN,
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = cold_copy_begin,
     .summary = "Has the bucket's backend copy another object of its own to this name.",
     .query = HTTP_PARAMETERS(FROM_PROXY),
     .body = "`{\"action\": \"copy_from\", \"name\": the other name, \"value\": {\"etag\", "
             "\"size\"}}`: unless it has another entity tag (412)",
     .reply = "204, when the backend has it",
     .errors = ADMISSION "; object_not_found precondition_failed not_supported backend_error "
                         "backend_denied backend_unavailable backend_timeout overloaded"},
    {.name = "object_list",
     .method = HTTP_GET,
     .pattern = "/v1/objects/{bucket}",
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = list_begin,
     .summary = "Lists a bucket: only a proxy can; sends the client there.",
     .query = HTTP_PARAMETERS({HTTP_ANY_PARAMETER, "as at the proxy, which checks it"}),
     .body = "",
     .reply = "307 to the primary proxy",
     .errors = "not_ready"},
    {.name = NULL},
};
