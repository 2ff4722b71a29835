/* The last to be asked of a GET that found nothing: was there an object, whose file has been
 * removed? Then it is no 404, but an error of its disk.  What a backend has is read from there. */
#include "target/node/miss.h"

#include "common/log.h"
#include "target/node/call.h"
#include "target/copies/unrecoverable.h"
#include "target/node/target.h"

/* In a worker, for it waits for the name's lock. */
static void explain(void *arg)
{
    struct object_call *call = arg;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    int code = object_explain_miss(call->target->store, call->bucket->id, call->name, &err);
    if (code == E_CORRUPT)
        unrecoverable_note(call->target->unrecoverable, call->bucket->id, call->name, 0);
    if (code == E_OBJECT_NOT_FOUND) /* a change was under way: it was not there, before */
        miss_next(call);
    else
        object_call_fail(call, "get", &err);
    log_set_request(NULL);
}

static bool take(struct object_call *call)
{
    struct target *t = call->target;
    return call->bucket->props.backend == NULL &&
           object_seems_lost(t->store, call->bucket->id, call->name) &&
           pool_submit(t->workers, explain, call, NULL) == 0;
}

const struct miss_source miss_lost = {.name = "lost", .take = take};
