#include "target/cold/here.h"

#include "io/pool.h"
#include "target/cold/cold.h"
#include "target/cold/fresh.h"
#include "target/copies/earlier_owners.h"
#include "target/node/target.h"

/* --- one -------------------------------------------------------------------------------------- */

enum found { NOT_HERE, HERE, HERE_OLD, HERE_GONE };

/* Deleted here, where the backend does not know of that yet? */
static int look_for_grave(struct target *t, const struct bucket *b, const char *name,
                          enum found *found, struct error *err)
{
    struct object_held held;
    int code = object_look(t->store, b->id, name, &held, err);
    *found = code == 0 && held.pending && !held.visible ? HERE_GONE : NOT_HERE;
    return code;
}

/* What is here, as the backend sees it; of what has changed, the version. */
static int look(struct target *t, const struct bucket *b, const char *name, enum found *found,
                struct version *old, struct error *err)
{
    struct object o;
    int code = object_head(t->store, b->id, name, &o, err);
    if (code == E_OBJECT_NOT_FOUND) {
        *err = ERROR_INIT;
        return look_for_grave(t, b, name, found, err);
    }
    if (code != 0)
        return code;
    *old = o.attr.version;
    switch (cold_fresh_now(t, b, &o.attr, err)) {
    case FRESH:
        *found = HERE;
        break;
    case CHANGED:
        *found = HERE_OLD;
        break;
    case GONE:
        *found = HERE_GONE;
        break;
    case UNKNOWN:
    case REFUSED:
        return err->code;
    }
    *err = ERROR_INIT;
    return 0;
}

int cold_make_here(struct target *t, const struct bucket *b, const char *name,
                   struct job_pace *pace, enum cold_here *what, uint64_t *bytes, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct cold_wanted wanted = {.bucket = b, .name = name, .placed = s->smap.placed, .pace = pace};
    enum found found = NOT_HERE;
    *bytes = 0;
    if (earlier_is_asked(t, s, b, name,
                         false)) /* an earlier owner may have what the backend lacks */
        return error_set(err, E_STALE_MAP, "the owners of '%s' have changed while the job ran",
                         name);
    int code = look(t, b, name, &found, &wanted.replaces, err);
    *what = found == HERE ? COLD_HERE : COLD_NOWHERE;
    if (code != 0 || found == HERE || found == HERE_GONE)
        return code;
    code = cold_bring(t->cold, &wanted, bytes, err);
    if (code == 0)
        *what = COLD_BROUGHT;
    if (code != E_OBJECT_NOT_FOUND)
        return code;
    *err = ERROR_INIT;
    return 0;
}

/* --- many ------------------------------------------------------------------------------------- */

struct batch {
    struct target *target;
    const struct bucket *bucket;
    const char *const *names;
    const atomic_bool *stop;
};

static int make_nth_here(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    enum cold_here what;
    uint64_t bytes;
    if (atomic_load(b->stop))
        return error_set(err, E_ABORTED, "the job was stopped");
    int code = cold_make_here(b->target, b->bucket, b->names[i], NULL, &what, &bytes, err);
    return code != 0 ? error_wrap(err, "bring '%s'", b->names[i]) : 0;
}

int cold_make_all_here(struct target *t, uint64_t bucket_id, const char *const *names, size_t count,
                       const atomic_bool *stop, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    const struct batch batch = {.target = t, .bucket = b, .names = names, .stop = stop};
    if (b == NULL || b->props.backend == NULL)
        return 0;
    return parallel_for("bring", (unsigned)param_live(t->params.prefetch_parallel), count,
                        make_nth_here, (void *)&batch, err);
}
