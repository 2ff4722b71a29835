/* Rename: the object gets its new name first, then loses the old one.
 *
 *   open ─▶ copy to the new name's owner, on its disk ─▶ delete the old name, if it still has it
 *
 * So a reader always finds the old name or the new one; for a moment, and for good after a crash in
 * between, both.  Then the same request again does the rest.  One rename of a name runs at a time,
 * and no DELETE of the name beside it (renames.h).  The owner of the old name does all of
 * it; the new name's owner decides the copy's version, as for any PUT, and the tombstone's version
 * is greater than the old object's.
 *
 * The copy is on the disk before the tombstone is made, also where the bucket's rule is async: a
 * loss of power must not take an object that was there for long.
 *
 * In a bucket with a backend the object is renamed there (cold/rename.h), or, where it is written
 * back and here, here as above (rename_rule.h), and the backend follows.
 *
 * Of a bucket with several copies the one that acts for the old name does it (copies.h): both the
 * copy and the deletion are on all owners. */
#include "target/http/object_routes.h"

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "target/cold/back.h"
#include "target/cold/back_after.h"
#include "target/cold/back_upload.h"
#include "target/node/call.h"
#include "target/cold/fresh.h"
#include "target/cold/rename.h"
#include "target/copies/copies.h"
#include "target/copies/earlier.h"
#include "target/copies/object_copy.h"
#include "target/cold/rename_rule.h"
#include "target/store/renames.h"
#include "target/node/target.h"
#include "target/store/name_queue.h"

enum { BODY_MAX = 16 << 10, TRIES = 4, COMPARISONS = 4 };

/* --- the old name goes ------------------------------------------------------------------------ */

static int check_version(void *ctx, const struct attr *current, struct error *err)
{
    const struct version *copied = ctx;
    if (version_compare(&current->version, copied) == 0)
        return 0;
    return error_set(err, E_PRECONDITION,
                     "object '%s' was written again and again while it was renamed; both names "
                     "exist",
                     current->name);
}

struct deletion {
    sem_t ended;
    struct error err;
};

static void deletion_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct deletion *d = arg;
    (void)attr;
    d->err = *err;
    sem_post(&d->ended);
}

static void deletion_begin(struct deletion *d)
{
    sem_init(&d->ended, 0, 0);
}

static int deletion_end(struct deletion *d, struct error *err)
{
    while (sem_wait(&d->ended) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&d->ended);
    *err = d->err;
    return d->err.code;
}

static int delete_copies(const struct object_call *call, const struct object_condition *condition,
                         struct error *err)
{
    struct deletion d = {.err = ERROR_INIT};
    deletion_begin(&d);
    copies_delete(call->target, call->bucket->id, call->name, condition, deletion_ended, &d);
    return deletion_end(&d, err);
}

/* The backend keeps the old name until it has the new one (back_after.h); so what was evicted since
 * is deleted like what is here. */
static int bury(const struct object_call *call, const struct version *copied,
                const struct back_after *after, const struct object_condition *condition,
                struct error *err)
{
    struct target *t = call->target;
    struct deletion d = {.err = ERROR_INIT};
    const struct object_held present = {.found = true, .visible = true, .version = *copied};
    _cleanup_(buf_done)
    struct buf meta = BUF_INIT;
    back_after_put(&meta, after);
    deletion_begin(&d);
    object_bury(t->store, call->bucket->id, call->name, condition, &present, &meta, deletion_ended,
                &d);
    int code = deletion_end(&d, err);
    if (code == 0)
        back_note(t->back, call->bucket->id, call->name, clock_wall_ms());
    return code;
}

static int delete_by(const struct object_call *call, const struct version *copied,
                     const struct back_after *after, const struct object_condition *condition,
                     struct error *err)
{
    if (copies_are_several(call->bucket))
        return delete_copies(call, condition, err);
    if (bucket_is_written_back(call->bucket))
        return bury(call, copied, after, condition, err);
    return object_delete_wait(call->target->store, call->bucket->id, call->name,
                              call->bucket->props.durability, condition, NULL, err);
}

static int delete_old(const struct object_call *call, struct version *copied,
                      const struct back_after *after, struct error *err)
{
    const struct object_condition condition = {.check = check_version, .ctx = copied};
    struct error why = ERROR_INIT;
    int code = delete_by(call, copied, after, &condition, &why);
    return code == 0 ? 0 : error_set(err, code, "%s", why.message);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Whatever an earlier owner still has is on its way here, and the newest. */
static int check_is_here(const struct object_call *call, struct error *err)
{
    struct object_held there, here;
    int code = earlier_ask_wait(call->target, call->state, call->bucket, call->name, &there, err);
    if (code == 0 && there.found)
        code = object_look(call->target->store, call->bucket->id, call->name, &here, err);
    if (code != 0 || !there.found ||
        (here.found && version_compare(&here.version, &there.version) >= 0))
        return code;
    return error_set(
        err, E_NOT_READY,
        "object '%s' is being moved to this target and cannot be renamed yet; try again",
        call->name);
}

/* What the new name has got by the copy. */
static int see_after(const struct object_call *call, const struct attr *copied,
                     struct back_after *after, struct error *err)
{
    struct object_held held;
    if (!bucket_is_written_back(call->bucket))
        return 0;
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    int code = back_ask_owner(call->target, s, call->bucket, call->rename.new_name, &held, err);
    if (code == 0 && !held.found)
        code = error_set(err, E_NOT_READY, "its target has nothing of '%s'; try again",
                         call->rename.new_name);
    if (code != 0)
        return error_wrap(err, "both names exist");
    snprintf(after->name, sizeof after->name, "%s", call->rename.new_name);
    after->version = held.version;
    after->size = copied->size;
    after->sum = copied->checksum;
    return 0;
}

static int open_here(const struct object_call *call, struct object *o, struct error *err)
{
    int code = object_open(call->target->store, call->bucket->id, call->name, o, err);
    return code != E_OBJECT_NOT_FOUND
               ? code
               : object_explain_miss(call->target->store, call->bucket->id, call->name, err);
}

/* Of several copies: is what was seen all that there is?  Asked when it has been looked, for this
 * target may have been passed over while the rename waited for a thread; where it may not be, the
 * owners are compared, and it is looked again. */
static int open_newest(struct object_call *call, struct object *o, struct error *err)
{
    call->read.compared = false;
    for (int left = COMPARISONS;; left--) {
        int code = open_here(call, o, err);
        if (copies_may_answer(call))
            return code;
        if (code == 0)
            close(o->fd);
        if (left == 0)
            return error_set(err, E_NOT_READY, "object '%s' is being written again and again",
                             call->name);
        if ((code = copies_compare_wait(call, err)) != 0)
            return code;
        *err = ERROR_INIT;
    }
}

static int open_old(struct object_call *call, struct object *o, struct error *err)
{
    if (copies_are_several(call->bucket))
        return open_newest(call, o, err);
    int code = check_is_here(call, err);
    return code != 0 ? code : open_here(call, o, err);
}

static int rename_here(struct object_call *call, struct error *err)
{
    struct object o;
    struct back_after after = {.size = 0};
    int code = open_old(call, &o, err);
    if (code != 0)
        return code;
    struct version copied = o.attr.version;
    const struct object_copy copy = {.from = &o,
                                     .from_bucket_id = call->bucket->id,
                                     .bucket_id = call->bucket->id,
                                     .name = call->rename.new_name};
    code = object_call_check_conditions(call, HTTP_DELETE, &o.attr, err);
    if (code == 0)
        code = object_copy(call->target->copier, &copy, err);
    call->rename.copied |= code == 0;
    if (code == 0)
        code = see_after(call, &o.attr, &after, err);
    close(o.fd);
    return code != 0 ? code : delete_old(call, &copied, &after, err);
}

/* What is here and not pending, as the backend sees it; and could it be sent there again? */
static bool is_fresh(const struct object_call *call)
{
    struct object o;
    struct error err = ERROR_INIT; /* the backend is asked again, then, and says it again */
    return object_head(call->target->store, call->bucket->id, call->name, &o, &err) == 0 &&
           object_copy_is_taken(call->bucket, &o.attr) &&
           cold_fresh_now(call->target, call->bucket, &o.attr, &err) == FRESH;
}

static int rename_back(struct object_call *call, struct error *err)
{
    struct target *t = call->target;
    struct object_held here, earlier;
    int code = earlier_ask_wait(t, call->state, call->bucket, call->name, &earlier, err);
    if (code == 0)
        code = object_look(t->store, call->bucket->id, call->name, &here, err);
    if (code != 0)
        return code;
    switch (rename_way(&here, &earlier, here.pending || is_fresh(call))) {
    case RENAME_HERE:
        return rename_here(call, err);
    case RENAME_THERE:
        return cold_rename(call, err);
    case RENAME_NOTHING:
        break;
    }
    return error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
}

static int rename_once(struct object_call *call, struct error *err)
{
    if (call->bucket->props.backend == NULL)
        return rename_here(call, err);
    return bucket_is_written_back(call->bucket) ? rename_back(call, err) : cold_rename(call, err);
}

/* Deletions that found no rename of the object under way are through: they ask under its lock, or
 * in their turn. */
static int await_deletions(const struct object_call *call, struct error *err)
{
    struct object_held held;
    if (copies_are_several(call->bucket))
        return name_queue_await(call->target->copies->turns, call->bucket->id, call->name, err);
    if (call->bucket->props.backend != NULL) {
        int code = cold_await_writes(call, err);
        if (code != 0)
            return code;
    }
    return object_look(call->target->store, call->bucket->id, call->name, &held, err);
}

/* An object that was written over meanwhile is copied again. */
static int rename_repeatedly(struct object_call *call, struct error *err)
{
    int code = await_deletions(call, err);
    if (code != 0)
        return code;
    code = E_PRECONDITION;
    for (int i = 0; i < TRIES && code == E_PRECONDITION; i++)
        code = rename_once(call, err);
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

static void start_rename(struct object_call *call)
{
    struct error err = ERROR_INIT;
    if (renames_enter(call->target->renames, call->bucket->id, call->name, rename_run, call,
                      &err) != 0)
        http_reply_error(call->req, &err);
}

static void serve_rename(struct object_call *call)
{
    struct error err = ERROR_INIT;
    if (bucket_refuse_write(call->bucket, "rename", &err) != 0)
        object_call_fail(call, "rename", &err);
    else
        start_rename(call);
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
    if (parse_rename(call, data, len, &err) != 0)
        http_reply_error(req, &err);
    else
        object_call_start(call, serve_rename);
}

void object_rename_begin(struct http_request *req)
{
    http_collect_body(req, BODY_MAX, rename_body);
}
