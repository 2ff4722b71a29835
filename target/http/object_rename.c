/* Rename: parse, wait for the turn, and let the call's path do it (write_path.h), again while the
 * object is written meanwhile.
 *
 * One rename of a name runs at a time, and no DELETE of the name beside it (renames.h). */
#include "target/http/object_routes.h"

#include <string.h>

#include "access/guard.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "target/node/call.h"
#include "target/store/renames.h"
#include "target/node/target.h"
#include "target/node/write_path.h"

enum { BODY_MAX = 16 << 10, TRIES = 4 };

/* An object that was written over meanwhile is copied again. */
static int rename_repeatedly(struct object_call *call, struct error *err)
{
    int code = call->path->await(call, err);
    if (code != 0)
        return code;
    code = E_PRECONDITION;
    for (int i = 0; i < TRIES && code == E_PRECONDITION; i++)
        code = call->path->rename(call, err);
    if (call->rename.copied && code == E_PRECONDITION)
        error_wrap(err, "it was copied to '%s', and written meanwhile", call->rename.new_name);
    if (call->rename.copied && code == E_OBJECT_NOT_FOUND)
        error_wrap(err, "it was copied to '%s', and deleted meanwhile", call->rename.new_name);
    return code;
}

/* A client that lost the answer to the very same request gets it again. */
static int rename_known(struct object_call *call, struct error *err)
{
    struct renames *r = call->target->renames;
    const struct rename_request q = {.id = http_request_id(call->req),
                                     .bucket_id = call->bucket->id,
                                     .name = call->name,
                                     .new_name = call->rename.new_name};
    int code = rename_repeatedly(call, err);
    if (code == 0)
        renames_note(r, &q);
    else if (!call->rename.copied && (code == E_OBJECT_NOT_FOUND || code == E_PRECONDITION) &&
             renames_knows(r, &q))
        code = 0;
    return code;
}

/* In its turn. */
static void rename_run(void *arg)
{
    struct object_call *call = arg;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    int code = rename_known(call, &err);
    if (code == E_ABORTED) /* of renames only this node's end is one */
        error_recode(&err, E_NOT_READY, "target '%s' is stopping", call->target->id);
    if (code == 0)
        http_reply_empty(call->req, 204);
    else
        object_call_fail(call, "rename", &err);
    log_set_request(NULL);
}

static void serve_rename(struct object_call *call)
{
    struct error err = ERROR_INIT;
    int code = bucket_refuse_ring(call->bucket, "rename", &err);
    if (code == 0)
        code = bucket_refuse_write(call->bucket, "rename", &err);
    if (code == 0)
        code = bucket_refuse_removal(call->bucket, "rename", &err);
    if (code == 0)
        code = renames_enter(call->target->renames, call->bucket->id, call->name, rename_run, call,
                             &err);
    if (code != 0)
        object_call_fail(call, "rename", &err);
}

static int parse_rename(struct object_call *call, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *name = NULL;
    int r = json_parse_action(data, len, "rename", &doc, &name, NULL, err);
    if (r != 0)
        return r;
    if ((r = object_name_check(name, strlen(name), err)) != 0) {
        error_wrap(err, "field 'name'");
        return r;
    }
    if (strcmp(name, call->name) == 0)
        return error_set(err, E_INVALID, "field 'name' is the name that the object has");
    call->rename.new_name = arena_strdup(http_arena(call->req), name);
    return 0;
}

static void rename_body(struct http_request *req, const char *data, size_t len)
{
    struct object_call *call = object_call_new(req);
    struct error err = ERROR_INIT;
    if (parse_rename(call, data, len, &err) != 0 ||
        guard_ask_new_name(req, http_path_param(req, "bucket"), call->rename.new_name, &err) != 0)
        http_reply_error(req, &err);
    else
        object_call_start(call, serve_rename);
}

void object_rename_begin(struct http_request *req)
{
    http_collect_body(req, BODY_MAX, rename_body);
}
