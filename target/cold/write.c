/* The row of buckets with a backend and write_policy `through`: the backend has a write before the
 * client is answered.
 *
 *   PUT     all bytes are in the temporary file ─▶ conditions ─▶ tombstone over what is here ─▶
 * upload ─▶ the file becomes the object here, with the backend's entity tag ─▶ 200 DELETE
 * conditions ─▶ tombstone over what is here ─▶ delete at the backend ─▶ 204
 *
 * Order.  Writes to one name go one after the other (turns.h), so that they reach the backend in
 * the order of their ends here; beside writes of another policy, too: whoever writes through and
 * who uploads (back_upload.c) each says so first, and then looks for the other.  Conditions are
 * asked of the backend, in the name's lane: nothing of ours comes between the answer and the write.
 *
 * What is here never outlives what the backend has.  From before the upload until after it the name
 * has a tombstone, on the disk, which sends readers to the backend: so a crash, or an upload whose
 * end is in doubt, leaves nothing old here.  Who reads the name from the backend meanwhile does not
 * keep it (fetch_overtake()).  Where the new object cannot be kept here the write has succeeded all
 * the same: the next reader fetches it. */
#include "target/cold/internal.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "io/reader.h"
#include "target/cold/back.h"
#include "target/cold/rename.h"
#include "target/backend/upload.h"
#include "target/node/reply.h"
#include "target/node/write_path.h"
#include "target/store/name_queue.h"

int cold_ask_head_of(struct cold *c, const char *backend, const char *name, bool *there,
                     struct backend_facts *facts, struct error *err)
{
    struct bpipe *none;
    struct error why = ERROR_INIT;
    const struct backend_ask ask = {.method = HTTP_HEAD, .name = name};
    int code = exchange_begin(&c->env, backend, &ask, 0, facts, &none, &why);
    *there = code == 0;
    return code == 0 || code == E_OBJECT_NOT_FOUND ? 0 : error_set(err, code, "%s", why.message);
}

int cold_ask_head(const struct object_call *call, bool *there, struct backend_facts *facts,
                  struct error *err)
{
    return cold_ask_head_of(call->target->cold, call->bucket->props.backend, call->name, there,
                            facts, err);
}

int cold_find(struct cold *c, const char *backend, const char *name, bool *there, struct error *err)
{
    struct backend_facts facts;
    return cold_ask_head_of(c, backend, name, there, &facts, err);
}

static int refuse_pending(const struct object_call *call, struct error *err)
{
    return error_set(
        err, E_NOT_READY,
        "object '%s' was written back (write_policy 'back'), and the backend does not have it "
        "yet; try again",
        call->name);
}

/* It was answered for, and would be lost with a write that fails; and what is on its way there
 * could get there later than this one. */
int cold_check_pending(const struct object_call *call, struct error *err)
{
    if (back_is_pending(call, false) || call->earlier.pending || call->earlier.uploading ||
        back_is_uploading(call->target->back, call->bucket->id, call->name))
        return refuse_pending(call, err);
    return 0;
}

static int check_hidden(void *ctx, const struct attr *current, struct error *err)
{
    return current != NULL && attr_is_pending(current) ? refuse_pending(ctx, err) : 0;
}

int cold_hide(struct object_call *call, bool *was, struct error *err)
{
    struct error why = ERROR_INIT;
    const struct object_condition condition = {.check = check_hidden, .ctx = call};
    int code = object_delete_wait(call->target->store, call->bucket->id, call->name,
                                  DURABILITY_SYNC, &condition, &call->earlier, &why);
    *was = code == 0;
    return code == 0 || code == E_OBJECT_NOT_FOUND ? 0 : error_set(err, code, "%s", why.message);
}

static void overtake(const struct object_call *call)
{
    fetch_overtake(call->target->cold, call->bucket->id, call->name);
}

/* --- PUT -------------------------------------------------------------------------------------- */

static int put_check(const struct object_call *call, struct error *err)
{
    bool there;
    struct backend_facts facts;
    if (!object_call_has_conditions(call))
        return 0;
    int code = cold_ask_head(call, &there, &facts, err);
    return code != 0 ? code : cold_check_conditions(call, there ? &facts : NULL, err);
}

static int put_upload(const struct object_call *call, struct object_put *put,
                      char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    const struct target_params *p = &call->target->params;
    const struct attr *a = object_put_attr(put);
    struct reader *reader = NULL;
    struct upload u = {.backend_url = call->bucket->props.backend,
                       .name = call->name,
                       .size = a->size,
                       .content_type = a->content_type,
                       .meta = a->meta,
                       .meta_len = a->meta_len,
                       .part_bytes = p->backend_part_size,
                       .parallel = (unsigned)p->backend_parts};
    int code = object_put_share(put, &u.fd, &reader, err);
    if (code != 0)
        return code;
    code = upload_object(&call->target->cold->env, &u, etag, err);
    close(u.fd);
    reader_unref(reader);
    return code;
}

/* What a commit's end needs to answer, and to let the lane go on. */
struct ending {
    const struct object_call *call;
    const char *etag;
    sem_t over;
};

/* It is in the backend, whatever has become of it here. */
static void put_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct ending *e = arg;
    struct error why = *err;
    log_set_request(http_request_id(e->call->req));
    if (attr == NULL)
        log_warn("written to the backend, and not kept here", lstr("name", e->call->name),
                 lerr(&why));
    object_reply_stored(e->call, attr, e->etag);
    log_set_request(NULL);
    sem_post(&e->over);
}

/* The backend has it from here, and under this tag. */
static int put_tags(struct object_put *put, const char *etag, struct error *err)
{
    int code = object_put_tag(put, OBJECT_BACKEND_SENT, "1", err);
    if (code == 0 && backend_etag_is_strong(etag))
        code = object_put_tag(put, OBJECT_BACKEND_ETAG, etag, err);
    return code;
}

static void put_keep(const struct object_call *call, struct object_put *put, const char *etag)
{
    struct ending e = {.call = call, .etag = etag};
    struct error err = ERROR_INIT;
    sem_init(&e.over, 0, 0);
    if (put_tags(put, etag, &err) != 0) {
        object_put_abort(put);
        put_ended(&e, NULL, &err);
    } else {
        object_put_commit(put, put_ended, &e);
    }
    semaphore_wait(&e.over);
    sem_destroy(&e.over);
}

static int put_through(struct object_call *call, struct object_put *put,
                       char etag[static BACKEND_ETAG_MAX], struct error *err)
{
    bool was;
    int code = object_put_finish(put, err);
    if (code == 0)
        code = cold_check_pending(call, err);
    if (code == 0)
        code = put_check(call, err);
    if (code == 0)
        code = cold_hide(call, &was, err);
    return code != 0 ? code : put_upload(call, put, etag, err);
}

/* The call may be gone once it has been answered. */
static void put_run(void *arg)
{
    struct object_call *call = arg;
    struct object_put *put = call->put.put;
    struct cold *c = call->target->cold;
    char etag[BACKEND_ETAG_MAX];
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    overtake(call);
    int code = put_through(call, put, etag, &err);
    overtake(call);
    metric_add(code == 0 ? c->written : c->not_written, 1);
    if (code == 0) {
        put_keep(call, put, etag);
    } else {
        object_put_abort(put);
        object_call_fail(call, "put", &err);
    }
    log_set_request(NULL);
}

/* --- DELETE ----------------------------------------------------------------------------------- */

static int delete_through(struct object_call *call, struct error *err)
{
    bool there, was = false;
    struct backend_facts facts;
    int code = object_call_check_renames(call, err);
    if (code == 0)
        code = cold_check_pending(call, err);
    if (code == 0)
        code = cold_ask_head(call, &there, &facts, err);
    if (code == 0 && object_call_has_conditions(call))
        code = cold_check_conditions(call, there ? &facts : NULL, err);
    if (code == 0)
        code = cold_hide(call, &was, err);
    if (code == 0 && there)
        code =
            upload_delete(&call->target->cold->env, call->bucket->props.backend, call->name, err);
    if (code == 0 && !there && !was)
        code = error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
    return code;
}

static void delete_run(void *arg)
{
    struct object_call *call = arg;
    struct cold *c = call->target->cold;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    overtake(call);
    int code = delete_through(call, &err);
    overtake(call);
    metric_add(code == 0 || code == E_OBJECT_NOT_FOUND ? c->written : c->not_written, 1);
    call->done(call, NULL, &err);
    log_set_request(NULL);
}

/* --- both ------------------------------------------------------------------------------------- */

static bool takes_through(const struct object_call *call)
{
    return call->put.kind == PUT_CLIENT && call->bucket->props.backend != NULL &&
           call->bucket->props.write_policy == WRITE_POLICY_THROUGH;
}

/* Conditions are asked of the backend. */
static int open_through(struct object_call *call, struct object_put_spec *spec,
                        struct write_parts *out, struct error *err)
{
    spec->condition = (struct object_condition){.check = NULL};
    return write_open_here(call, spec, out, err);
}

static void enter_turn(struct object_call *call, void (*run)(void *arg))
{
    struct error err = ERROR_INIT;
    if (name_queue_enter(call->target->cold->turns, call->bucket->id, call->name, run, call,
                         &err) == 0)
        return;
    object_put_abort(call->put.put);
    call->done(call, NULL, &err);
}

static void commit_through(struct object_call *call, struct write_parts *parts)
{
    call->put.put = parts->put;
    enter_turn(call, put_run);
}

static void remove_through(struct object_call *call)
{
    enter_turn(call, delete_run);
}

const struct write_path through_path = {.name = "write-through",
                                        .takes = takes_through,
                                        .open = open_through,
                                        .commit = commit_through,
                                        .remove = remove_through,
                                        .await = cold_await_writes,
                                        .rename = cold_rename};
