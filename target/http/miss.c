#include "target/node/miss.h"

#include "target/node/call.h"
#include "target/node/target.h"

/* In the order in which they are asked. */
static const struct miss_source *const sources[] = {&earlier_source, &cold_miss, &miss_lost, NULL};

void miss_begin(struct object_call *call)
{
    call->read.miss_at = 0;
    miss_next(call);
}

void miss_next(struct object_call *call)
{
    const struct miss_source *source;
    while ((source = sources[call->read.miss_at]) != NULL) {
        call->read.miss_at++;
        if (source->take(call))
            return;
    }
    miss_ends(call);
}

/* Who has owned it since may have it. */
static bool is_overtaken(const struct object_call *call)
{
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    return s->smap.placed != call->state->smap.placed;
}

void miss_ends(struct object_call *call)
{
    struct error err;
    error_set(&err, E_OBJECT_NOT_FOUND, "object '%s' does not exist", call->name);
    if (is_overtaken(call))
        error_set(&err, E_STALE_MAP, "object '%s' has another owner by now; ask the proxy again",
                  call->name);
    object_call_fail(call, "get", &err);
}
