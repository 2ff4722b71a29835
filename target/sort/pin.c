#include "target/sort/pin.h"

#include <errno.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/copies/copies.h"
#include "target/disk/job_file.h"
#include "target/copies/object_bytes.h"
#include "target/copies/object_copy.h"
#include "target/jobs/objects_walk.h"
#include "target/node/target.h"

enum { PAUSE_MS = 100 };

static int wait_a_little(const struct sort_part *p, struct error *err)
{
    if (!job_stop_pause(&p->target->copies->stop, PAUSE_MS) || atomic_load(&p->stopped))
        return error_set(err, E_ABORTED, "job '%s' was stopped", p->job->id);
    return 0;
}

int sort_pin_wait_for_repair(const struct sort_part *p, struct error *err)
{
    int code = 0;
    while (code == 0 && !objects_walk_has_all(p->target, p->plan->input_bucket_id))
        code = wait_a_little(p, err);
    return code;
}

/* Is what is here of the name all that there is?  Else it is seen to that it will be.  lost: its
 * bytes are not here, but may be elsewhere. */
static bool is_all(const struct sort_part *p, const char *name, bool lost)
{
    struct target *t = p->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->plan->input_bucket_id);
    bool good = b != NULL && bucket_has_copies(b) && !lost &&
                (copies_suffice_here(t, b, name) || copies_are_good_here(t, b, name));
    if (b == NULL || !bucket_has_copies(b) || good)
        return true;
    (void)copies_settle(t, b->id, name, NULL); /* or the next time */
    return false;
}

/* Another owner has what a file here has lost, so that files are looked at. */
static bool are_several(const struct sort_part *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->plan->input_bucket_id);
    return b != NULL && bucket_has_copies(b);
}

static int pin_present(const struct sort_part *p, struct pin_set *set, const char *name,
                       const char *link_name, char **path, struct object *o, struct error *err)
{
    struct object_store *store = p->target->store;
    uint64_t bucket_id = p->plan->input_bucket_id;
    int code = set != NULL
                   ? object_pin_in(store, set, bucket_id, name, are_several(p), o, err)
                   : object_pin(store, bucket_id, name, p->job->id, link_name, path, o, err);
    return code != E_OBJECT_NOT_FOUND ? code : object_explain_miss(store, bucket_id, name, err);
}

/* What was pinned before it was known to be all is pinned again, maybe on another mountpath. */
static int take_back(const char *path, struct object *o, struct error *err)
{
    if (o->fd >= 0)
        close(steal_fd(&o->fd));
    if (path != NULL && unlink(path) != 0 && errno != ENOENT)
        return error_errno(err, errno, "remove '%s'", path);
    return 0;
}

/* --- in slices -------------------------------------------------------------------------------- */

struct bringing {
    const struct sort_part *part;
    struct job_file file;
};

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    const struct bringing *b = ctx;
    if (atomic_load(&b->part->stopped))
        return error_set(err, E_ABORTED, "job '%s' was stopped", b->part->job->id);
    return file_write_all(b->file.fd, data, len, err);
}

/* The manifest is open. */
static int bring(const struct sort_part *p, const char *link_name, const struct object *manifest,
                 uint64_t size, struct error *err)
{
    struct target *t = p->target;
    struct bringing b = {.part = p};
    int code = job_file_create(t->mountpaths, &t->space, p->job->id, link_name, size, &b.file, err);
    if (code == 0)
        code = object_bytes_each(t, p->plan->input_bucket_id, manifest, take, &b, err);
    if (code == 0)
        code = job_file_keep(&b.file, err);
    job_file_done(&b.file);
    return code;
}

/* What may pass (targets that are away) is waited for a while; then it counts as a target that was
 * lost. *again: it is to be looked at once more. */
static int bring_sliced(const struct sort_part *p, const char *link_name, struct object *o,
                        bool late, bool *again, struct error *err)
{
    struct attr shown;
    int code = object_bytes_attr(o, &shown, err);
    if (code == 0)
        code = bring(p, link_name, o, shown.size, err);
    o->attr.size = shown.size;
    o->attr.checksum = shown.checksum;
    if (code != 0)
        close(steal_fd(&o->fd));
    *again = object_copy_may_pass(code) && !late;
    return object_copy_may_pass(code) ? error_recode(err, E_NET, "bring its slices") : code;
}

/* --- all of it -------------------------------------------------------------------------------- */

int sort_pin(const struct sort_part *p, struct pin_set *set, const char *name,
             const char *link_name, struct object *o, struct error *err)
{
    uint64_t until_ms = clock_ms() + p->target->params.call_timeout;
    for (;;) {
        _cleanup_free_ char *path = NULL;
        bool late = clock_ms() >= until_ms;
        int code = pin_present(p, set, name, link_name, &path, o, err);
        bool again = !is_all(p, name, code == E_CORRUPT && !late);
        if (again && code == 0 && (code = take_back(path, o, err)) != 0)
            return code;
        if (!again && code == 0 && o->attr.slices != NULL)
            code = bring_sliced(p, link_name, o, late, &again, err);
        if (!again)
            return code;
        *err = ERROR_INIT;
        if ((code = wait_a_little(p, err)) != 0)
            return code;
    }
}
