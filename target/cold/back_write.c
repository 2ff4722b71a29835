/* The row of buckets with a backend and write_policy `back` (back.h).
 *
 * A write with conditions, and a deletion, need to know what the name stands for.
 *
 * Where there is an object here, or a pending deletion, that is it.  Else the backend is asked, and
 * is then like an earlier owner (object_put_spec.earlier) whose version is one more than what is
 * here: a write that comes between the answer and the commit has that version at least, and then
 * counts in its place.
 *
 * A rename is done here (copies/rename_copy.h), or within the backend (rename.h): rename_rule.h. */
#include "target/cold/back.h"

#include "common/mem.h"
#include "target/node/call.h"
#include "target/node/write_path.h"
#include "target/cold/back_after.h"
#include "target/cold/back_upload.h"
#include "target/cold/fresh.h"
#include "target/cold/rename.h"
#include "target/cold/rename_rule.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/object_copy.h"
#include "target/copies/rename_copy.h"
#include "target/store/object_wait.h"
#include "target/cold/internal.h"

struct write {
    struct object_call *call;
    struct object_put *put;     /* NULL: a deletion */
    struct object_held present; /* what earlier owners, or the backend, have */
    bool asked;                 /* `present` is the backend's … */
    struct backend_facts facts; /* … and this is what it says */
    struct object_condition condition;
};

static bool takes_back(const struct object_call *call)
{
    return call->put.kind == PUT_CLIENT && bucket_is_written_back(call->bucket);
}

bool back_is_pending(const struct object_call *call, bool deleted)
{
    struct object_held held;
    return object_call_look(call, &held, NULL) == 0 && held.found && held.pending &&
           !(deleted && held.visible);
}

/* What there is without the backend: true, it has the last word. */
static int look_here(struct write *w, bool *last_word, struct error *err)
{
    const struct object_call *call = w->call;
    struct object_held here;
    int code = object_call_look(call, &here, err);
    w->present = call->earlier;
    if (!here.found ||
        (w->present.found && version_compare(&w->present.version, &here.version) > 0))
        here = w->present;
    *last_word = here.found && (here.visible || here.pending);
    if (!*last_word)
        w->present = here;
    return code;
}

static int ask_backend(struct write *w, struct error *err)
{
    const struct object_call *call = w->call;
    struct error why = ERROR_INIT;
    int code = cold_ask_head(call, &w->asked, &w->facts, &why);
    if (code != 0)
        return error_set(err, code, "%s", why.message);
    if (!w->asked)
        return 0;
    w->present.found = w->present.visible = true;
    w->present.version.counter++;
    w->present.size = w->facts.size > 0 ? (uint64_t)w->facts.size : 0;
    return 0;
}

static int check(void *ctx, const struct attr *current, struct error *err)
{
    const struct write *w = ctx;
    struct object_call *call = w->call;
    int code = object_call_check_owners(call, err);
    if (code == 0 && w->put == NULL)
        code = object_call_check_renames(call, err);
    if (code != 0)
        return code;
    if (w->asked && current != NULL && !attr_is_pending(current) &&
        version_compare(&current->version, &w->present.version) == 0)
        return cold_check_conditions(call, &w->facts, err);
    enum http_method method = w->put != NULL ? HTTP_PUT : HTTP_DELETE;
    return object_call_check_conditions(call, method, current, err);
}

static void ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct write *w = arg;
    w->call->done(w->call, attr, err);
    free(w);
}

static void run(void *arg)
{
    struct write *w = arg;
    const struct object_call *call = w->call;
    struct error err = ERROR_INIT;
    bool known = false;
    int code = look_here(w, &known, &err);
    if (code == 0 && !known)
        code = ask_backend(w, &err);
    if (code != 0) {
        object_put_abort(w->put);
        ended(w, NULL, &err);
    } else if (w->put != NULL) {
        object_put_commit_over(w->put, &w->condition, &w->present, ended, w);
    } else {
        object_bury(call->target->store, call->bucket->id, call->name, &w->condition, &w->present,
                    NULL, ended, w);
    }
}

static void write_knowing(struct object_call *call, struct object_put *put)
{
    struct error err = ERROR_INIT;
    struct write *w = xcalloc(1, sizeof *w);
    *w = (struct write){.call = call, .put = put};
    w->condition = (struct object_condition){.check = check, .ctx = w};
    if (cold_submit(&call->target->cold->askers, call->bucket->props.backend, run, w, &err) == 0)
        return;
    object_put_abort(put);
    ended(w, NULL, &err);
}

static int open_back(struct object_call *call, struct object_put_spec *spec,
                     struct write_parts *out, struct error *err)
{
    spec->condition = (struct object_condition){.check = NULL}; /* asked by check() */
    spec->durability = DURABILITY_SYNC;
    spec->pending = true;
    return write_open_here(call, spec, out, err);
}

static void commit_back(struct object_call *call, struct write_parts *parts)
{
    if (object_call_has_conditions(call))
        write_knowing(call, parts->put);
    else
        write_commit_here(call, parts);
}

static void remove_back(struct object_call *call)
{
    write_knowing(call, NULL);
}

/* --- rename ----------------------------------------------------------------------------------- */

/* What the new name has got by the copy. */
static int see_after(const struct object_call *call, const struct attr *copied,
                     struct back_after *after, struct error *err)
{
    struct object_held held;
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    int code = back_ask_owner(call->target, s, call->bucket, call->rename.new_name, &held, err);
    if (code == 0 && !held.found)
        code = error_set(err, E_NOT_READY, "its target has nothing of '%s'; try again",
                         call->rename.new_name);
    if (code != 0)
        return error_wrap(err, "both names exist");
    *after =
        (struct back_after){.version = held.version, .size = copied->size, .sum = copied->checksum};
    snprintf(after->name, sizeof after->name, "%s", call->rename.new_name);
    return 0;
}

/* The backend keeps the old name until it has the new one (back_after.h); so what was evicted since
 * is deleted like what is here. */
static int remove_old(struct object_call *call, const struct attr *copied,
                      const struct object_condition *condition, struct error *err)
{
    struct target *t = call->target;
    struct object_wait w;
    struct back_after after;
    const struct object_held present = {.found = true, .visible = true, .version = copied->version};
    _cleanup_buf_ struct buf meta = BUF_INIT;
    int code = see_after(call, copied, &after, err);
    if (code != 0)
        return code;
    back_after_put(&meta, &after);
    object_wait_begin(&w);
    object_bury(t->store, call->bucket->id, call->name, condition, &present, &meta,
                object_wait_done, &w);
    return object_wait_end(&w, err);
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
    static const struct rename_steps steps = {.open = rename_open_here, .remove = remove_old};
    struct object_held here, earlier;
    int code = earlier_ask_for(call, &earlier, err);
    if (code == 0)
        code = object_call_look(call, &here, err);
    if (code != 0)
        return code;
    switch (rename_way(&here, &earlier, here.pending || is_fresh(call))) {
    case RENAME_HERE:
        return rename_by_copy(call, &steps, err);
    case RENAME_THERE:
        return cold_rename(call, err);
    case RENAME_NOTHING:
        break;
    }
    return error_set(err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
}

const struct write_path back_path = {.name = "write-back",
                                     .takes = takes_back,
                                     .open = open_back,
                                     .commit = commit_back,
                                     .remove = remove_back,
                                     .await = cold_await_writes,
                                     .rename = rename_back};
