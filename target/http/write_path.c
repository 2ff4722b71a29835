#include "target/node/write_path.h"

#include "target/node/call.h"
#include "target/node/target.h"

/* In the order in which they are asked; the last takes every call. */
static const struct write_path *const paths[] = {
    &moved_path,                /* what another target sends … */
    &staged_path, &passed_path, /* … and what another target leads */
    &append_path,               /* … and whose body has members */
    &slices_path, &copies_path, &through_path, &back_path, &one_path,
};

const struct write_path *write_path_of(const struct object_call *call)
{
    const struct write_path *const *path = paths;
    while (!(*path)->takes(call))
        path++;
    return *path;
}

int write_open_here(struct object_call *call, struct object_put_spec *spec, struct write_parts *out,
                    struct error *err)
{
    return object_put_begin(call->target->store, spec, &out->put, err);
}

void write_commit_here(struct object_call *call, struct write_parts *parts)
{
    object_put_commit(parts->put, call->done, call);
}
