/* Writes to a bucket with write_policy `back` that need to know what the name stands for: with
 * conditions, and deletions.
 *
 * Where there is an object here, or a pending deletion, that is it.  Else the backend is asked, and
 * is then like an earlier owner (object_put_spec.earlier) whose version is one more than what is
 * here: a write that comes between the answer and the commit has that version at least, and then
 * counts in its place. */
#include "target/cold/back.h"

#include "common/mem.h"
#include "target/node/call.h"
#include "target/cold/internal.h"

struct write {
    struct object_call *call;
    struct object_put *put; /* NULL: a deletion */
    object_done_fn *done;
    struct object_held present; /* what earlier owners, or the backend, have */
    bool asked;                 /* `present` is the backend's … */
    struct backend_facts facts; /* … and this is what it says */
    struct object_condition condition;
};

bool back_takes(const struct object_call *call)
{
    return !call->put.from_peer && call->bucket->props.backend != NULL &&
           call->bucket->props.write_policy == WRITE_POLICY_BACK;
}

bool back_is_pending(const struct object_call *call, bool deleted)
{
    struct object_held held;
    return object_look(call->target->store, call->bucket->id, call->name, &held, NULL) == 0 &&
           held.found && held.pending && !(deleted && held.visible);
}

/* What there is without the backend: true, it has the last word. */
static int look_here(struct write *w, bool *last_word, struct error *err)
{
    const struct object_call *call = w->call;
    struct object_held here;
    int code = object_look(call->target->store, call->bucket->id, call->name, &here, err);
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
    w->done(w->call, attr, err);
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

void back_write(struct object_call *call, struct object_put *put, object_done_fn *done)
{
    struct error err = ERROR_INIT;
    struct write *w = xcalloc(1, sizeof *w);
    *w = (struct write){.call = call, .put = put, .done = done};
    w->condition = (struct object_condition){.check = check, .ctx = w};
    if (cold_submit(&call->target->cold->askers, call->bucket->props.backend, run, w, &err) == 0)
        return;
    object_put_abort(put);
    ended(w, NULL, &err);
}
