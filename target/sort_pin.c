#include "target/sort_pin.h"

#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/copies.h"
#include "target/objects_job.h"
#include "target/sort_pins.h"
#include "target/target.h"

enum { PAUSE_MS = 100 };

static int wait_a_little(const struct sort_pins *p, struct error *err)
{
    if (!job_stop_pause(&p->target->copies->stop, PAUSE_MS) || atomic_load(p->stopped))
        return error_set(err, E_ABORTED, "job '%s' was stopped", p->job->id);
    return 0;
}

int sort_pin_wait_for_repair(const struct sort_pins *p, struct error *err)
{
    int code = 0;
    while (code == 0 && !objects_job_has_all(p->target, p->plan->input_bucket_id))
        code = wait_a_little(p, err);
    return code;
}

/* Is what is here of the name all that there is?  Else it is seen to that it will be.  lost: its
 * bytes are not here, but may be elsewhere. */
static bool is_all(const struct sort_pins *p, const char *name, bool lost)
{
    struct target *t = p->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->plan->input_bucket_id);
    bool good = b != NULL && copies_are_several(b) && !lost &&
                (copies_suffice_here(t, b, name) || copies_are_good_here(t, b, name));
    if (b == NULL || !copies_are_several(b) || good)
        return true;
    (void)copies_settle(t, b->id, name, NULL); /* or the next time */
    return false;
}

static int pin_present(const struct sort_pins *p, const char *name, const char *link_name,
                       struct object *o, struct error *err)
{
    struct object_store *store = p->target->store;
    uint64_t bucket_id = p->plan->input_bucket_id;
    _cleanup_free_ char *path = NULL;
    int code = object_pin(store, bucket_id, name, p->job->id, link_name, &path, o, err);
    return code != E_OBJECT_NOT_FOUND ? code : object_explain_miss(store, bucket_id, name, err);
}

/* What was pinned before it was known to be all is pinned again. */
int sort_pin(const struct sort_pins *p, const char *name, const char *link_name, struct object *o,
             struct error *err)
{
    uint64_t until_ms = clock_ms() + p->target->params.call_timeout;
    for (;;) {
        int code = pin_present(p, name, link_name, o, err);
        if (is_all(p, name, code == E_CORRUPT && clock_ms() < until_ms))
            return code;
        if (code == 0)
            close(o->fd);
        *err = ERROR_INIT;
        if ((code = wait_a_little(p, err)) != 0)
            return code;
    }
}
