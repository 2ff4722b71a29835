#include "target/jobs/trim_copies.h"

#include "common/fault.h"
#include "common/log.h"
#include "target/copies/antientropy.h"
#include "target/node/target.h"

static int check_map(void *ctx, const struct cluster_state *s, struct error *err)
{
    const struct trim_copies *m = ctx;
    return copies_reduce_check_fence(s, &m->fence, err);
}

static int check_still(const struct trim_copies *m, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(m->target->state);
    if (m->stop->wanted)
        return error_set(err, E_ABORTED, "the job was stopped");
    return check_map((void *)m, s, err);
}

static int look(const struct trim_copies *m, uint64_t bucket_id, const char *name,
                struct object_held *held, struct error *err)
{
    int code = object_look(m->target->store, bucket_id, name, held, err);
    if (code == 0 && held->unreadable)
        return error_set(err, E_CORRUPT, "the attribute of '%s' cannot be read", name);
    return code;
}

static int drop(const struct trim_copies *m, uint64_t bucket_id, const char *name,
                const struct version *v, struct error *err)
{
    struct object_held left;
    int errnum = fault_errno("trim_copies.remove");
    if (errnum != 0)
        return error_errno(err, errnum, "remove '%s'", name);
    int code = object_drop(m->target->store, bucket_id, name, v, err);
    if (code == 0)
        code = look(m, bucket_id, name, &left, err);
    if (code == 0 && left.found)
        return error_set(err, E_NOT_READY, "this target has a newer version of '%s'", name);
    return code;
}

static void strange(void *ctx, uint64_t bucket_id, const char *name, const struct version *v)
{
    const struct trim_copies *m = ctx;
    struct object_held held;
    struct error err = ERROR_INIT;
    if (check_still(m, &err) != 0) { /* what the owners have said is overtaken */
        job_tally_fail(m->tally, name, &err);
        return;
    }
    int code = look(m, bucket_id, name, &held, &err);
    if (code == 0 && !held.found) /* gone meanwhile, or the index is a moment behind */
        return;
    job_tally_expect(m->tally, 1);
    if (code == 0)
        code = drop(m, bucket_id, name, v, &err);
    if (code == 0) {
        job_tally_done(m->tally, held.size);
        return;
    }
    log_error("copy not removed", lstr("name", name), lerr(&err));
    job_tally_fail(m->tally, name, &err);
}

int trim_copies_run(const struct trim_copies *m, struct error *err)
{
    struct target *t = m->target;
    struct job_pace pace;
    const struct antientropy antientropy = {.target = t,
                                            .stop = m->stop,
                                            .tally = m->tally,
                                            .pace = &pace,
                                            .check = check_map,
                                            .strange = strange,
                                            .ctx = (void *)m};
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    int code = check_map((void *)m, s, err);
    if (code != 0)
        return code;
    object_store_settle(t->store);
    job_pace_init(&pace, 0, m->stop); /* what owners lack is the repair's */
    code = antientropy_bucket(&antientropy, NULL, m->fence.bucket_id, err);
    job_pace_done(&pace);
    return code != 0 ? code : job_tally_end(m->tally, err);
}
