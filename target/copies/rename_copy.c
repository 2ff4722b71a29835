#include "target/copies/rename_copy.h"

#include <unistd.h>

#include "target/node/call.h"
#include "target/node/target.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/object_copy.h"

static int check_version(void *ctx, const struct attr *current, struct error *err)
{
    const struct attr *copied = ctx;
    if (version_compare(&current->version, &copied->version) == 0)
        return 0;
    return error_set(err, E_PRECONDITION,
                     "object '%s' was written again and again while it was renamed; both names "
                     "exist",
                     current->name);
}

/* Whatever an earlier owner still has is on its way here, and the newest. */
static int check_is_here(const struct object_call *call, struct error *err)
{
    struct object_held there, here;
    int code = earlier_ask_for(call, &there, err);
    if (code == 0 && there.found)
        code = object_call_look(call, &here, err);
    if (code != 0 || !there.found ||
        (here.found && version_compare(&here.version, &there.version) >= 0))
        return code;
    return error_set(
        err, E_NOT_READY,
        "object '%s' is being moved to this target and cannot be renamed yet; try again",
        call->name);
}

int rename_open_alone(const struct object_call *call, struct object *o, struct error *err)
{
    int code = object_open(call->target->store, call->bucket->id, call->name, o, err);
    return code != E_OBJECT_NOT_FOUND
               ? code
               : object_explain_miss(call->target->store, call->bucket->id, call->name, err);
}

int rename_open_here(struct object_call *call, struct object *o, struct error *err)
{
    int code = check_is_here(call, err);
    return code != 0 ? code : rename_open_alone(call, o, err);
}

int rename_by_copy(struct object_call *call, const struct rename_steps *steps, struct error *err)
{
    struct object o;
    int code = steps->open(call, &o, err);
    if (code != 0)
        return code;
    const struct object_copy copy = {.from = &o,
                                     .from_bucket_id = call->bucket->id,
                                     .bucket_id = call->bucket->id,
                                     .name = call->rename.new_name};
    const struct object_condition condition = {.check = check_version, .ctx = &o.attr};
    struct error why = ERROR_INIT;
    code = object_call_check_conditions(call, HTTP_DELETE, &o.attr, err);
    if (code == 0)
        code = object_copy(call->target->copier, &copy, err);
    call->rename.copied |= code == 0;
    close(o.fd);
    if (code != 0)
        return code;
    code = steps->remove(call, &o.attr, &condition, &why);
    return code == 0 ? 0 : error_set(err, code, "%s", why.message);
}
