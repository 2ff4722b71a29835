#include "target/miss.h"

#include "target/call.h"

/* In the order in which they are asked. */
static const struct miss_source *const sources[] = {NULL};

void miss_begin(struct object_call *call)
{
    call->miss_at = 0;
    miss_next(call);
}

void miss_next(struct object_call *call)
{
    const struct miss_source *source;
    while ((source = sources[call->miss_at]) != NULL) {
        call->miss_at++;
        if (source->take(call))
            return;
    }
    miss_ends(call);
}

void miss_ends(struct object_call *call)
{
    struct error err;
    error_set(&err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
    object_call_fail(call, "get", &err);
}
