#include "target/jobs/job_source.h"

#include <string.h>
#include <unistd.h>

#include "cluster/documents/bucket_refuse.h"
#include "common/clock.h"
#include "target/cold/here.h"
#include "target/copies/copies.h"
#include "target/copies/object_bytes.h"
#include "target/copies/repair_wanted.h"
#include "target/copies/unrecoverable.h"

enum {
    MEND_MAX_MS = 60000, /* as long as it is tried (read_repair.h) */
};

/* --- open ------------------------------------------------------------------------------------- */

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
static bool has_no_room(struct target *t, const struct bucket *b, const char *name)
{
    struct object_held held;
    return object_look(t->store, b->id, name, &held, NULL) == 0 && held.no_room &&
           object_check_room(t->store, b->id, name, held.size, bucket_makes_room(b), NULL) ==
               E_NO_SPACE;
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
    if (code == E_NO_SPACE && has_no_room(t, b, name))
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

static int try_work(struct job_base *j, const char *name, job_source_fn *fn, void *ctx,
                    struct error *err)
{
    struct object o;
    int code = open_source(j, name, &o, err);
    if (code == E_OBJECT_NOT_FOUND)
        code = explain_miss(j, name, err);
    if (code != 0)
        return code;
    code = is_meant(j, &o.attr) ? fn(ctx, &o, err)
                                : error_set(err, E_PRECONDITION, "it came after the job");
    close(o.fd);
    return code;
}

/* --- until it is done ------------------------------------------------------------------------- */

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

int job_source_work(struct job_base *j, const char *name, job_source_fn *fn, void *ctx,
                    struct error *err)
{
    uint64_t mended_ms = 0;
    for (unsigned failures = 1;; failures++) {
        *err = ERROR_INIT;
        int code = try_work(j, name, fn, ctx, err);
        if (j->stop.wanted && code != 0)
            return job_base_check(j, err);
        if (!object_copy_may_pass(code) && !is_mended_soon(j, name, code, &mended_ms))
            return code;
        job_tally_wait(j->tally, err);
        if (!job_stop_back_off(&j->stop, failures))
            return job_base_check(j, err);
        job_tally_wait(j->tally, NULL);
    }
}

/* --- its bytes -------------------------------------------------------------------------------- */

static int take_into_sum(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    checksum_update(ctx, data, len);
    return 0;
}

int job_source_verify(struct job_base *j, const struct object *o, struct error *err)
{
    struct attr shown;
    struct checksum_value found;
    int code = object_bytes_attr(o, &shown, err);
    if (code != 0 || shown.checksum.type == CHECKSUM_NONE || shown.size == 0)
        return code;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(shown.checksum.type);
    code = object_bytes_each(j->target, j->plan.input_bucket_id, o, take_into_sum, sum, err);
    if (code != 0)
        return code;
    checksum_final(sum, &found);
    if (checksum_equal(&shown.checksum, &found))
        return 0;
    return error_set(err, E_CHECKSUM, "its bytes do not have the checksum that it was stored with");
}
