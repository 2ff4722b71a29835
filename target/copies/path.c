/* The row of buckets with several copies: the leader of a name stages a PUT's bytes on the other
 * owners as they come (fanout.h), and a write is one of all of them (copies.h). */
#include "target/node/write_path.h"

#include <unistd.h>

#include "common/mem.h"
#include "target/node/call.h"
#include "target/node/target.h"
#include "target/copies/copies.h"
#include "target/copies/fanout.h"
#include "target/copies/hand_on.h"
#include "target/copies/rename_copy.h"
#include "target/store/name_queue.h"
#include "target/store/object_wait.h"

enum { REPEATED_MAX = 3, COMPARISONS = 4 };

static bool takes_several(const struct object_call *call)
{
    return bucket_has_copies(call->bucket);
}

/* --- PUT -------------------------------------------------------------------------------------- */

/* The condition is asked by the protocol, in the name's turn. */
static int open_several(struct object_call *call, struct object_put_spec *spec,
                        struct write_parts *out, struct error *err)
{
    struct fanout *fanout = NULL;
    spec->condition = (struct object_condition){.check = NULL};
    int code = write_open_here(call, spec, out, err);
    if (code == 0)
        code = copies_begin_put(call, spec, &fanout, err);
    if (code != 0)
        object_put_abort(steal(out->put));
    out->own = fanout;
    return code;
}

static size_t take_piece(struct write_parts *parts, const char *data, size_t len, struct error *err)
{
    len = fanout_take(parts->own, data, len);
    if (len > 0)
        object_put_write(parts->put, data, len, err);
    return len;
}

static void displaced(void *arg, struct handed *h, const struct error *why)
{
    hand_on(arg, h, why);
}

static void commit_several(struct object_call *call, struct write_parts *parts)
{
    fanout_finish(parts->own, NULL);
    copies_put(call->target, call->bucket->id, call->name, parts->put, parts->own, &call->condition,
               call->done, displaced, call);
}

static void abort_several(void *own)
{
    fanout_unref(own);
}

/* --- DELETE ----------------------------------------------------------------------------------- */

static void remove_several(struct object_call *call);

/* Owners have changed, and nobody was told to commit it: the leader of now is asked. */
static bool is_repeated(struct object_call *call, const struct error *err)
{
    bool waits_for_turn = call->del.wants_turn && !call->del.has_turn;
    if (err->code != E_STALE_MAP || waits_for_turn || call->del.repeated++ >= REPEATED_MAX)
        return false;
    if (!copies_send_on(call))
        remove_several(call);
    return true;
}

static void removed(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_call *call = arg;
    if (!is_repeated(call, err))
        call->done(call, attr, err);
}

static void remove_several(struct object_call *call)
{
    copies_delete(call->target, call->bucket->id, call->name, &call->condition, removed, call);
}

/* --- rename ----------------------------------------------------------------------------------- */

/* Deletions ask in their turn. */
static int await_several(const struct object_call *call, struct error *err)
{
    return name_queue_await(call->target->copies->turns, call->bucket->id, call->name, err);
}

/* Is what was seen all that there is?  Asked when it has been looked, for this target may have been
 * passed over while the rename waited for a thread; where it may not be, the owners are compared,
 * and it is looked again. */
static int open_newest(struct object_call *call, struct object *o, struct error *err)
{
    call->read.compared = false;
    for (int left = COMPARISONS;; left--) {
        int code = rename_open_alone(call, o, err);
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

static int remove_old(struct object_call *call, const struct attr *copied,
                      const struct object_condition *condition, struct error *err)
{
    struct object_wait w;
    (void)copied;
    object_wait_begin(&w);
    copies_delete(call->target, call->bucket->id, call->name, condition, object_wait_done, &w);
    return object_wait_end(&w, err);
}

static int rename_several(struct object_call *call, struct error *err)
{
    static const struct rename_steps steps = {.open = open_newest, .remove = remove_old};
    return rename_by_copy(call, &steps, err);
}

const struct write_path copies_path = {.name = "copies",
                                       .sees_to_owners = true,
                                       .takes = takes_several,
                                       .open = open_several,
                                       .take = take_piece,
                                       .commit = commit_several,
                                       .abort = abort_several,
                                       .remove = remove_several,
                                       .await = await_several,
                                       .rename = rename_several};
