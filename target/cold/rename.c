#include "target/cold/rename.h"

#include "cluster/members/location.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "target/cold/back.h"
#include "target/backend/upload.h"
#include "target/cold/internal.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/object_copy.h"
#include "target/cold/rename_rule.h"
#include "target/store/name_queue.h"

enum { BODY_MAX = 16 << 10 };

#define ACTION "copy_from"

/* --- at the new name's owner ------------------------------------------------------------------ */

/* What is copied. */
struct source {
    struct object_call *call; /* of the new name */
    const char *name, *etag;
    uint64_t size;
};

static int copy(const struct source *src, struct error *err)
{
    const struct target_params *p = &src->call->target->params;
    const struct upload u = {.backend_url = src->call->bucket->props.backend,
                             .name = src->call->name,
                             .size = src->size,
                             .part_bytes = p->backend_copy_size,
                             .parallel = (unsigned)p->backend_parts,
                             .from = src->name,
                             .from_etag = src->etag};
    return upload_copy(&src->call->target->cold->env, &u, err);
}

static int copy_in_turn(const struct source *src, struct error *err)
{
    struct object_call *call = src->call;
    bool was;
    int code = earlier_ask_for(call, &call->earlier, err);
    if (code == 0)
        code = cold_check_pending(call, err);
    if (code == 0)
        code = cold_hide(call, &was, err);
    return code != 0 ? code : copy(src, err);
}

static void copy_run(void *arg)
{
    const struct source *src = arg;
    struct object_call *call = src->call;
    struct cold *c = call->target->cold;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    fetch_overtake(c, call->bucket->id, call->name);
    int code = copy_in_turn(src, &err);
    fetch_overtake(c, call->bucket->id, call->name);
    metric_add(code == 0 ? c->written : c->not_written, 1);
    if (code == 0)
        http_reply_empty(call->req, 204);
    else
        object_call_fail(call, "copy to", &err);
    log_set_request(NULL);
}

static void serve_copy(struct object_call *call)
{
    struct error err = ERROR_INIT;
    struct source *src = call->rename.source;
    int code = bucket_refuse_write(call->bucket, "rename", &err);
    if (code == 0)
        code = name_queue_enter(call->target->cold->turns, call->bucket->id, call->name, copy_run,
                                src, &err);
    if (code != 0)
        object_call_fail(call, "copy to", &err);
}

static int parse_copy(struct object_call *call, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *value = NULL;
    const char *name = NULL, *etag = NULL;
    struct arena *a = http_arena(call->req);
    struct source *src = arena_alloc(a, sizeof *src);
    *src = (struct source){.call = call};
    int code = json_parse_action(data, len, ACTION, &doc, &name, &value, err);
    if (code == 0)
        code = object_name_check(name, strlen(name), err);
    if (code == 0)
        code = json_need_str(value, "value", "etag", &etag, err);
    if (code == 0)
        code = json_need_u64(value, "value", "size", &src->size, err);
    if (code != 0)
        return code;
    src->name = arena_strdup(a, name);
    src->etag = arena_strdup(a, etag);
    call->rename.source = src;
    return 0;
}

static void copy_body(struct http_request *req, const char *data, size_t len)
{
    struct object_call *call = object_call_new(req);
    struct error err = ERROR_INIT;
    if (parse_copy(call, data, len, &err) != 0)
        http_reply_error(req, &err);
    else
        object_call_start(call, serve_copy);
}

void cold_copy_begin(struct http_request *req)
{
    http_collect_body(req, BODY_MAX, copy_body);
}

/* --- at the old name's owner: the copy -------------------------------------------------------- */

static char *copy_order(const struct object_call *call, const struct backend_facts *facts)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:{s:s, s:I}}", "action", ACTION, "name", call->name, "value", "etag",
                  facts->etag, "size", (json_int_t)facts->size);
    return json_text(doc);
}

static uint64_t patience_ms(const struct target *t, uint64_t size)
{
    const struct target_params *p = &t->params;
    const struct rename_patience patience = {.call_ms = p->call_timeout,
                                             .try_ms = p->backend_timeout + p->backend_backoff_max,
                                             .tries = p->backend_retries + 1};
    return rename_copy_ms(&patience, size);
}

/* It goes out once: a copy that comes late could take the place of what was written since. */
static int order_copy(const struct object_call *call, const struct backend_facts *facts,
                      struct error *err)
{
    struct target *t = call->target;
    const struct node *owner;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    int code = object_copy_owner(s, call->bucket, call->rename.new_name, &owner, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *url = location_of_copy(owner, s, call->bucket, call->rename.new_name);
    _cleanup_free_ char *order = copy_order(call, facts);
    const struct http_call post = {.method = HTTP_POST,
                                   .url = url,
                                   .node = owner->id,
                                   .body = order,
                                   .body_len = strlen(order),
                                   .total_timeout_ms = patience_ms(t, (uint64_t)facts->size),
                                   .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                                   .once = true,
                                   .request_id = http_request_id(call->req)};
    return object_copier_call(t->copier, &post, NULL, err);
}

/* --- at the old name's owner: the deletion ---------------------------------------------------- */

struct deletion {
    struct object_call *call;
    const char *etag;               /* of what was copied … */
    const struct cold_watch *watch; /* … since before it was looked at */
    bool written;
    struct error err;
};

/* Has nobody written it, as long as it is there? */
static int check_same(const struct deletion *d, bool *there, struct error *err)
{
    struct backend_facts facts;
    int code = object_call_check_owners(d->call, err);
    if (code == 0)
        code = cold_ask_head(d->call, there, &facts, err);
    if (code == 0 && *there && (d->written || strcmp(facts.etag, d->etag) != 0))
        code = error_set(err, E_PRECONDITION,
                         "object '%s' was written again and again while it was renamed; both names "
                         "exist",
                         d->call->name);
    return code;
}

static int delete_in_turn(const struct deletion *d, struct error *err)
{
    struct object_call *call = d->call;
    bool was, there = false;
    int code = cold_check_pending(call, err);
    if (code != 0)
        error_recode(err, code = E_PRECONDITION, "rename");
    if (code == 0)
        code = check_same(d, &there, err);
    if (code == 0)
        code = cold_hide(call, &was, err);
    if (code != 0)
        return code;
    if (!there)
        return error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
    return upload_delete(&call->target->cold->env, call->bucket->props.backend, call->name, err);
}

static void delete_run(void *arg)
{
    struct deletion *d = arg;
    struct object_call *call = d->call;
    struct cold *c = call->target->cold;
    log_set_request(http_request_id(call->req));
    d->written = cold_watch_saw(c, d->watch);
    fetch_overtake(c, call->bucket->id, call->name);
    int code = delete_in_turn(d, &d->err);
    fetch_overtake(c, call->bucket->id, call->name);
    metric_add(code == 0 ? c->written : c->not_written, 1);
    log_set_request(NULL);
}

static int delete_old(struct object_call *call, const struct backend_facts *facts,
                      const struct cold_watch *watch, struct error *err)
{
    struct deletion d = {.call = call, .etag = facts->etag, .watch = watch, .err = ERROR_INIT};
    int code = name_queue_run(call->target->cold->turns, call->bucket->id, call->name, delete_run,
                              &d, err);
    if (code == 0 && d.err.code != 0)
        *err = d.err;
    return code != 0 ? code : d.err.code;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int look(struct object_call *call, struct backend_facts *facts, struct error *err)
{
    bool there = false;
    int code = earlier_ask_for(call, &call->earlier, err);
    if (code == 0)
        code = cold_check_pending(call, err);
    if (code == 0)
        code = cold_ask_head(call, &there, facts, err);
    if (code == 0 && object_call_has_conditions(call))
        code = cold_check_conditions(call, there ? facts : NULL, err);
    if (code == 0 && !there)
        code = error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
    if (code == 0 && (!backend_etag_is_strong(facts->etag) || facts->size < 0))
        code = error_set(err, E_UNSUPPORTED,
                         "the backend gives object '%s' no entity tag, or no length: it cannot be "
                         "told from what others may write meanwhile",
                         call->name);
    return code;
}

static int rename_watched(struct object_call *call, const struct cold_watch *watch,
                          struct error *err)
{
    struct backend_facts facts;
    int code = look(call, &facts, err);
    if (code != 0)
        return code;
    code = order_copy(call, &facts, err);
    if (code == E_OBJECT_NOT_FOUND) /* it is gone since */
        return error_recode(err, E_PRECONDITION, "object '%s'", call->name);
    if (code != 0)
        return error_wrap(err, "the object is '%s' still, and may be '%s', too%s", call->name,
                          call->rename.new_name, code == E_TIMEOUT ? ", now or later" : "");
    call->rename.copied = true;
    code = delete_old(call, &facts, watch, err);
    if (code != 0 && code != E_OBJECT_NOT_FOUND)
        error_wrap(err, "the object is '%s' now, and may be '%s' still, too", call->rename.new_name,
                   call->name);
    return code;
}

int cold_await_writes(const struct object_call *call, struct error *err)
{
    struct object_held held;
    int code = name_queue_await(call->target->cold->turns, call->bucket->id, call->name, err);
    return code != 0 ? code : object_call_look(call, &held, err);
}

int cold_rename(struct object_call *call, struct error *err)
{
    struct cold_watch watch = {.bucket_id = call->bucket->id, .name = call->name};
    cold_watch_begin(call->target->cold, &watch);
    int code = rename_watched(call, &watch, err);
    cold_watch_end(call->target->cold, &watch);
    return code;
}
