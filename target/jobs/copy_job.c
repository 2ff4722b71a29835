/* The job `copy` on a target: each object that it means and that is here goes to the owner of its
 * new name (object_copy.h), several at once.  What has the same bytes already is passed over, so
 * that doing it again costs little; an owner that does not answer is waited for. */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/cold/here.h"
#include "target/cold/names.h"
#include "target/copies/copies.h"
#include "target/copies/unrecoverable.h"
#include "target/copies/object_bytes.h"
#include "target/copies/object_copy.h"
#include "target/copies/repair_wanted.h"
#include "target/jobs/objects_walk.h"

enum {
    MEND_MAX_MS = 60000, /* as long as it is tried (read_repair.h) */
};

/* --- one object ------------------------------------------------------------------------------- */

/* Within one bucket, what came after the job may be a copy of its own. */
static bool is_meant(const struct job_base *j, const struct attr *a)
{
    return j->plan.input_bucket_id != j->plan.output_bucket_id ||
           !version_is_after(&a->version, j->plan.term, j->plan.version);
}

/* Of a bucket with a backend: it is brought here first, and may be evicted again before it is open.
 */
static int open_cold(struct target *t, const struct bucket *b, const char *name, struct object *o,
                     struct error *err)
{
    enum cold_here what;
    uint64_t bytes;
    int code = cold_make_here(t, b, name, NULL, &what, &bytes, err);
    if (code == 0)
        code = object_open(t->store, b->id, name, o, err);
    if (code == E_OBJECT_NOT_FOUND && what != COLD_NOWHERE)
        code = error_set(err, E_NOT_READY, "'%s' was evicted before it was copied", name);
    return code;
}

/* Its bytes are with other owners, and do not come before there is room for them (hollow.h). */
static bool has_no_room(struct target *t, uint64_t bucket_id, const char *name)
{
    struct object_held held;
    return object_look(t->store, bucket_id, name, &held, NULL) == 0 && held.no_room &&
           object_check_room(t->store, bucket_id, name, held.size, NULL) == E_NO_SPACE;
}

static int open_source(struct job_base *j, const char *name, struct object *o, struct error *err)
{
    struct target *t = j->target;
    uint64_t from = j->plan.input_bucket_id;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, from);
    if (b != NULL && b->props.backend != NULL)
        return open_cold(t, b, name, o, err);
    int code = object_open(t->store, from, name, o, err);
    if (b == NULL || !bucket_has_copies(b) || copies_suffice_here(t, b, name))
        return code;
    if (code == 0)
        close(o->fd);
    (void)copies_settle(t, from, name, NULL); /* or the next time */
    if (code == E_NO_SPACE && has_no_room(t, from, name))
        return code;
    return error_set(err, E_NOT_READY, "not all owners of '%s' are known to have the same", name);
}

/* Not found: unless it has come between the look and this, as one does that is mended. */
static int explain_miss(struct job_base *j, const char *name, struct error *err)
{
    struct object_store *store = j->target->store;
    const uint64_t from = j->plan.input_bucket_id;
    struct object_held held;
    int code = object_explain_miss(store, from, name, err);
    if (code == E_OBJECT_NOT_FOUND && object_look(store, from, name, &held, NULL) == 0 &&
        held.found && held.visible)
        return error_set(err, E_NOT_READY, "'%s' has just come", name);
    return code;
}

static int try_copy(struct job_base *j, const char *name, const char *new_name, uint64_t *bytes,
                    struct error *err)
{
    struct object o;
    struct attr shown = {0};
    int code = open_source(j, name, &o, err);
    if (code == E_OBJECT_NOT_FOUND)
        code = explain_miss(j, name, err);
    if (code != 0)
        return code;
    const struct object_copy copy = {.from = &o,
                                     .from_bucket_id = j->plan.input_bucket_id,
                                     .bucket_id = j->plan.output_bucket_id,
                                     .name = new_name,
                                     .has_rule = true,
                                     .term = j->plan.term,
                                     .version = j->plan.version};
    if (!is_meant(j, &o.attr))
        code = error_set(err, E_PRECONDITION, "it came after the job");
    if (code == 0)
        code = object_bytes_attr(&o, &shown, err);
    if (code == 0)
        code = object_copy(j->copier, &copy, err);
    *bytes = shown.size;
    close(o.fd);
    return code;
}

static void count(struct job_base *j, const char *name, uint64_t bytes, const struct error *err)
{
    switch (err->code) {
    case 0:
        job_tally_done(j->tally, bytes);
        break;
    case E_NOT_MODIFIED:
    case E_PRECONDITION:
        job_tally_skipped(j->tally);
        break;
    case E_OBJECT_NOT_FOUND:
        job_tally_missed(j->tally, name, "it does not exist");
        break;
    case E_CHECKSUM:
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
        job_tally_fail(j->tally, name, err);
        break;
    default:
        job_tally_fail(j->tally, name, err);
    }
}

/* Of several copies one that is damaged or gone here is mended from another, and read then.
 * *until_ms: 0 before the first time. */
static bool is_mended_soon(struct job_base *j, const char *name, int code, uint64_t *until_ms)
{
    struct target *t = j->target;
    const uint64_t from = j->plan.input_bucket_id;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, from);
    if ((code != E_CORRUPT && code != E_CHECKSUM) || b == NULL || !bucket_has_copies(b))
        return false;
    if (*until_ms == 0) {
        *until_ms = clock_ms() + MEND_MAX_MS;
        repair_wanted(t, from, name);
    }
    return clock_ms() < *until_ms && !unrecoverable_has(t->unrecoverable, from, name);
}

/* Until it is done, or was refused for good, or the job ends. */
static void copy_one(void *ctx, const char *name)
{
    struct job_base *j = ctx;
    _cleanup_free_ char *new_name = xprintf("%s%s", j->spec->prepend, name);
    uint64_t bytes = 0, mended_ms = 0;
    for (unsigned failures = 1;; failures++) {
        struct error err = ERROR_INIT;
        int code = try_copy(j, name, new_name, &bytes, &err);
        if (j->stop.wanted && code != 0)
            return;
        if (!object_copy_may_pass(code) && !is_mended_soon(j, name, code, &mended_ms)) {
            count(j, name, bytes, &err);
            return;
        }
        job_tally_wait(j->tally, &err);
        if (!job_stop_back_off(&j->stop, failures))
            return;
        job_tally_wait(j->tally, NULL);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static int copy_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct job_base *j = ctx;
    unsigned width = (unsigned)param_live(j->target->params.copy_parallel);
    return objects_walk_batch(j, width, names, n, copy_one, j, err);
}

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    if (j->spec->which == OBJECTS_PREFIX && cold_names_can(j->target, j->plan.input_bucket_id))
        return objects_walk_listed(j, false, copy_batch, j, err);
    return objects_walk(j, copy_batch, j, err);
}

const struct xaction_ops copy_xaction =
    JOB_WORK("copy", .size = sizeof(struct job_base), .done_word = "copied", .over_objects = true,
             .sends = true, .run = run);
