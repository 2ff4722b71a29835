/* The row of buckets that keep one copy of an object, on one target: its store does it all. */
#include "target/node/write_path.h"

#include "target/node/call.h"
#include "target/node/target.h"
#include "target/copies/rename_copy.h"

static bool takes_all(const struct object_call *call)
{
    (void)call;
    return true;
}

static void remove_one(struct object_call *call)
{
    object_delete(call->target->store, call->bucket->id, call->name, call->bucket->props.durability,
                  &call->condition, &call->earlier, call->done, call);
}

/* Deletions ask under the name's lock. */
static int await_one(const struct object_call *call, struct error *err)
{
    struct object_held held;
    return object_call_look(call, &held, err);
}

static int remove_old(struct object_call *call, const struct attr *copied,
                      const struct object_condition *condition, struct error *err)
{
    (void)copied;
    return object_delete_wait(call->target->store, call->bucket->id, call->name,
                              call->bucket->props.durability, condition, NULL, err);
}

static int rename_one(struct object_call *call, struct error *err)
{
    static const struct rename_steps steps = {.open = rename_open_here, .remove = remove_old};
    return rename_by_copy(call, &steps, err);
}

const struct write_path one_path = {.name = "one copy",
                                    .takes = takes_all,
                                    .open = write_open_here,
                                    .commit = write_commit_here,
                                    .remove = remove_one,
                                    .await = await_one,
                                    .rename = rename_one};
