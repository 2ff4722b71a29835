#include "target/node/call.h"

#include <assert.h>

#include "access/guard.h"
#include "ais/dialect.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/log.h"
#include "target/format/attr.h"
#include "target/node/state_sync.h"
#include "target/node/member.h"
#include "target/store/renames.h"
#include "target/node/target.h"
#include "target/node/write_path.h"

#define CALL_MAGIC 0x0b1ec7ca

static void drop_state(void *arg)
{
    struct object_call *call = arg;
    state_unref(call->state);
}

struct object_call *object_call_new(struct http_request *req)
{
    struct object_call *call = arena_alloc(http_arena(req), sizeof *call);
    *call = (struct object_call){.magic = CALL_MAGIC,
                                 .req = req,
                                 .target = http_user(req),
                                 .name = http_path_param(req, "object")};
    call->state = state_current(call->target->state);
    http_on_end(req, drop_state, call);
    return call;
}

void object_call_redirect(const struct object_call *call, const struct cluster_state *s,
                          const struct bucket *bucket, const struct node *owner)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    if (call->begins_upload)
        location_put_upload_target(&url, owner, s, bucket, call->name, http_raw_query(call->req));
    else
        location_put_target(&url, owner, s, bucket, call->name, http_raw_query(call->req));
    guard_put_proof(call->req, bucket->id, call->rename.new_name, &url);
    struct error err;
    if (http_body_comes_once(call->req)) {
        error_set(&err, E_WRONG_OWNER,
                  "target '%s' owns '%s', and a chunked body without 'Expect: 100-continue' cannot "
                  "follow a redirect; send the request to a proxy",
                  owner->id, call->name);
        http_reply_error(call->req, &err);
        return;
    }
    http_reply_redirect(call->req, buf_str(&url));
}

/* A client that a proxy streams for cannot follow a redirect: its body is taken, and handed on. */
static bool must_pass(const struct object_call *call)
{
    const char *header = http_header(call->req, "Dfc-Redirect");
    const char *query = http_query(call->req, "redirect");
    bool never = (header != NULL && strcmp(header, "never") == 0) ||
                 (query != NULL && strcmp(query, "never") == 0);
    return never && http_method(call->req) == HTTP_PUT && call->put.kind == PUT_CLIENT &&
           bucket_has_copies(call->bucket);
}

int object_call_look(const struct object_call *call, struct object_held *out, struct error *err)
{
    return object_look(call->target->store, call->bucket->id, call->name, out, err);
}

bool object_call_is_read(const struct object_call *call)
{
    enum http_method m = http_method(call->req);
    return !call->read.holder && (m == HTTP_GET || m == HTTP_HEAD);
}

bool object_call_wants_members(const struct object_call *call)
{
    return http_query(call->req, "member") != NULL || http_query(call->req, "members") != NULL;
}

bool object_call_wants_made(const struct object_call *call)
{
    return object_call_wants_members(call) || http_query(call->req, "digest") != NULL;
}

enum admit_verdict object_call_admit(struct object_call *call)
{
    struct admit_question q = {.state = call->state,
                               .self = call->target->id,
                               .bucket = http_path_param(call->req, "bucket"),
                               .object = call->name,
                               .dfcb = http_query(call->req, "dfcb"),
                               .dfcv = http_query(call->req, "dfcv"),
                               .refreshed = call->refreshed,
                               .holder = call->read.holder,
                               .copy = object_call_is_copy(call),
                               .reads = object_call_is_read(call)};
    state_sync_placement(call->target->state_sync, &q.placement_term, &q.placement_version);
    struct admit_answer a;
    struct error err = ERROR_INIT;
    admit(&q, &a, &err);
    call->bucket = a.bucket;
    call->read.beside = a.beside;
    call->put.passes = a.verdict == ADMIT_REDIRECT && must_pass(call);
    if (call->put.passes)
        a.verdict = ADMIT_SERVE;
    if (a.verdict == ADMIT_SERVE)
        call->path = write_path_of(call);
    if (a.verdict == ADMIT_REDIRECT)
        object_call_redirect(call, call->state, a.bucket, a.owner);
    else if (a.verdict == ADMIT_REFUSE)
        http_reply_error(call->req, &err);
    return a.verdict;
}

static void admit_and_serve(struct object_call *call);

static void refreshed(void *arg)
{
    struct object_call *call = arg;
    assert(call->magic == CALL_MAGIC);
    log_set_request(http_request_id(call->req));
    const struct cluster_state *old = call->state;
    call->state = state_current(call->target->state);
    state_unref(old);
    call->refreshed = true;
    admit_and_serve(call);
    log_set_request(NULL);
}

static void admit_and_serve(struct object_call *call)
{
    enum admit_verdict verdict = object_call_admit(call);
    if (verdict == ADMIT_SERVE)
        call->serve(call);
    else if (verdict == ADMIT_REFRESH)
        member_refresh(call->target->member, http_query(call->req, "dfcv"), refreshed, call);
}

int sender_is_ahead(const struct http_request *req, bool *ahead, struct error *err)
{
    struct target *t = http_user(req);
    const char *dfcv = http_query(req, "dfcv");
    uint64_t term, version;
    *ahead = false;
    if (dfcv == NULL)
        return 0;
    int code = admit_parse_state_version(dfcv, &term, &version, err);
    if (code != 0)
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    *ahead = admit_is_newer(term, version, s);
    return 0;
}

int sender_knows_owners(const struct http_request *req, struct error *err)
{
    struct target *t = http_user(req);
    const char *dfcv = http_query(req, "dfcv");
    uint64_t term, version, since_term, since_version;
    if (dfcv == NULL)
        return 0;
    int code = admit_parse_state_version(dfcv, &term, &version, err);
    state_sync_owners(t->state_sync, &since_term, &since_version);
    if (code != 0 || term > since_term || (term == since_term && version >= since_version))
        return code;
    return error_set(err, E_STALE_MAP, "the owners have changed since cluster state %s", dfcv);
}

void object_call_start(struct object_call *call, void (*serve)(struct object_call *call))
{
    call->serve = serve;
    admit_and_serve(call);
}

void object_call_run(struct http_request *req, void (*serve)(struct object_call *call))
{
    if (ais_speaks(req))
        http_set_error_form(req, &ais_error_form);
    object_call_start(object_call_new(req), serve);
}

/* Of copies and moves; of what clients write space_watch.h says it once. */
static void say_refused(struct target *t, const struct error *why)
{
    uint64_t count;
    if (space_refusals_add(&t->space_refusals, clock_ms(), &count))
        log_warn("copies are refused for lack of room", lu64("copies", count), lerr(why));
}

void object_call_fail(const struct object_call *call, const char *what, struct error *err)
{
    int status = error_status(err->code);
    if (status >= 500) {
        error_recode(err, err->code, "%s '%s/%s'", what, call->bucket->name, call->name);
        if (err->code == E_NO_SPACE && call->put.kind != PUT_CLIENT)
            say_refused(call->target, err);
        else if (status != 503)
            log_error("call failed", lerr(err));
    }
    http_reply_error(call->req, err);
}

/* MD5_TAG_MAX: 32 digits, "-", a count of parts. */
enum { MD5_TAG_MAX = 48, OBJECT_TAGS_MAX = OBJECT_ETAG_MAX + MD5_TAG_MAX + 4 };

static const char *backend_etag(const struct attr *a)
{
    const char *value = attr_meta_find(a, OBJECT_BACKEND_ETAG);
    return value != NULL && strlen(value) < OBJECT_ETAG_MAX ? value : NULL;
}

void object_call_etag(const struct object_call *call, const struct attr *a,
                      char out[static OBJECT_ETAG_MAX])
{
    char version[VERSION_TEXT_MAX];
    const char *given = call->bucket->props.backend != NULL ? backend_etag(a) : NULL;
    if (given != NULL)
        snprintf(out, OBJECT_ETAG_MAX, "%s", given);
    else
        snprintf(out, OBJECT_ETAG_MAX, "\"%s\"", version_format(&a->version, version));
}

const char *object_call_md5(const struct object_call *call, const struct attr *a)
{
    return call->bucket->props.backend == NULL ? attr_meta_find(a, ATTR_MD5) : NULL;
}

/* All tags that a condition may name. */
static void put_tags(const struct object_call *call, const struct attr *a,
                     char out[static OBJECT_TAGS_MAX])
{
    const char *md5 = object_call_md5(call, a);
    object_call_etag(call, a, out);
    if (md5 != NULL && strlen(md5) <= MD5_TAG_MAX)
        snprintf(out + strlen(out), MD5_TAG_MAX + 5, ", \"%s\"", md5);
}

int object_call_check_owners(const struct object_call *call, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    if (call->path->sees_to_owners || s->smap.placed == call->state->smap.placed)
        return 0;
    return error_set(err, E_STALE_MAP,
                     "the owners have changed since the request began; send it again");
}

int object_call_check_renames(struct object_call *call, struct error *err)
{
    if (call->del.has_turn || !renames_busy(call->target->renames, call->bucket->id, call->name))
        return 0;
    call->del.wants_turn = true;
    return error_set(err, E_NOT_READY, "object '%s' is being renamed; try again", call->name);
}

/* What a write's leader has decided is not asked again. */
static bool writes_once(const struct object_call *call)
{
    return call->bucket->props.write_once && !object_call_is_copy(call);
}

bool object_call_has_conditions(const struct object_call *call)
{
    return writes_once(call) || http_header(call->req, "If-Match") != NULL ||
           http_header(call->req, "If-None-Match") != NULL ||
           http_header(call->req, "If-Unmodified-Since") != NULL;
}

/* What is there stays, whatever else the request says. */
static int check_write_once(const struct object_call *call, enum http_method method,
                            const struct attr *current, struct error *err)
{
    const bool reads = method == HTTP_GET || method == HTTP_HEAD;
    if (reads || current == NULL || !writes_once(call))
        return 0;
    return error_set(err, E_WRITE_ONCE,
                     "object '%s' exists, and bucket '%s' is write_once: take another name",
                     call->name, call->bucket->name);
}

static int check_headers(const struct object_call *call, enum http_method method,
                         const struct attr *current, struct error *err)
{
    struct http_request *req = call->req;
    const struct http_conditions c = {
        .if_match = http_header_list(req, "If-Match"),
        .if_none_match = http_header_list(req, "If-None-Match"),
        .if_modified_since = http_header(req, "If-Modified-Since"),
        .if_unmodified_since = http_header(req, "If-Unmodified-Since"),
    };
    char tags[OBJECT_TAGS_MAX];
    if (current != NULL)
        put_tags(call, current, tags);
    int code = http_conditions_check(&c, method, current != NULL ? tags : NULL,
                                     current != NULL ? current->modified_ms / 1000 : 0);
    if (code == 0)
        return 0;
    if (current == NULL && http_header(req, OBJECT_MISSING_HEADER) != NULL)
        code = E_OBJECT_NOT_FOUND;
    if (current == NULL)
        return error_set(err, code, "object '%s' does not exist", call->name);
    return error_set(
        err, code,
        "object '%s' exists already with the entity tag %s; a condition of the request "
        "(If-Match, If-None-Match, If-Unmodified-Since) does not hold",
        call->name, tags);
}

/* A condition that does not hold is told first: a client that asked for one gets its answer. */
int object_call_check_conditions(const struct object_call *call, enum http_method method,
                                 const struct attr *current, struct error *err)
{
    int code = check_headers(call, method, current, err);
    return code == 0 ? check_write_once(call, method, current, err) : code;
}
