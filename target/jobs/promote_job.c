/* The job `promote` (xaction/objects_spec.h): files that are on the targets' machines become
 * objects.  Each target reads its own, below the directory that its operator allows, and sends them
 * to the owners of their names; what it owns itself stays on the machine.
 *
 * The bytes that are stored have the checksum of those that were read first: a file that is
 * written meanwhile fails.  Where the file system shares them with the object, they are the file's
 * own: that costs as little as a rename, and leaves no one a way to write to the object.  With
 * `move` the file is removed once the object is on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checksum.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/pool.h"
#include "target/jobs/job_send.h"
#include "target/jobs/promote_walk.h"

enum { PIECE_BYTES = 256 << 10 };

struct promoting {
    struct job_base *job;
    enum checksum_type checksum; /* of the bucket's objects */
    int dir;                     /* of a batch of files, as what follows */
    const char *below;
    char *const *names;
};

/* --- a file ----------------------------------------------------------------------------------- */

static int sum_up(struct job_base *j, const struct object *o, struct checksum *sum,
                  struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE_BYTES);
    int code = 0;
    for (uint64_t at = 0, len; at < o->attr.size && code == 0; at += len) {
        len = o->attr.size - at < PIECE_BYTES ? o->attr.size - at : PIECE_BYTES;
        code = file_pread_full(o->fd, piece, len, at, err);
        if (code == 0)
            code = job_base_check(j, err);
        checksum_update(sum, piece, len);
    }
    return code;
}

/* Size and checksum of an open file. */
static int look_at(const struct promoting *p, struct object *o, struct stat *st, struct error *err)
{
    if (fstat(o->fd, st) != 0)
        return error_errno(err, errno, "look at it");
    if (!S_ISREG(st->st_mode))
        return error_set(err, E_INVALID, "it is no file any more");
    o->attr = (struct attr){.size = (uint64_t)st->st_size};
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(p->checksum);
    int code = sum_up(p->job, o, sum, err);
    if (code == 0 && p->checksum != CHECKSUM_NONE)
        checksum_final(sum, &o->attr.checksum);
    return code;
}

static int send_file(struct promoting *p, const struct object *o, const char *name,
                     struct error *err)
{
    struct job_base *j = p->job;
    /* Nothing is older than a rule without a time: what is there stays. */
    const bool over = j->spec->overwrites;
    const struct object_copy copy = {.bucket_id = j->plan.input_bucket_id,
                                     .name = name,
                                     .has_rule = true,
                                     .term = over ? j->plan.term : 0,
                                     .version = over ? j->plan.version : 0,
                                     .is_new = true};
    return job_send_file(j, o, &copy, err);
}

/* The one that was read, and no other that has come under its name. */
static int remove_file(const struct promoting *p, const char *file, const struct stat *read,
                       struct error *err)
{
    struct stat st;
    if (fstatat(p->dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == read->st_dev &&
        st.st_ino == read->st_ino && st.st_size == read->st_size &&
        st.st_mtim.tv_sec == read->st_mtim.tv_sec && st.st_mtim.tv_nsec == read->st_mtim.tv_nsec) {
        if (unlinkat(p->dir, file, 0) == 0)
            return 0;
        return error_errno(err, errno, "the object is stored, but the file cannot be removed");
    }
    return error_set(err, E_IO, "the object is stored, but the file was changed, and stays");
}

static int promote_file(struct promoting *p, const char *file, const char *name, uint64_t *bytes,
                        struct error *err)
{
    struct object o = {.fd = -1};
    struct stat st;
    int code = object_name_check(name, strlen(name), err);
    if (code != 0)
        return code;
    o.fd = openat(p->dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (o.fd < 0)
        return error_errno(err, errno, "open it");
    code = look_at(p, &o, &st, err);
    if (code == 0)
        code = send_file(p, &o, name, err);
    close(o.fd);
    *bytes = o.attr.size;
    if (p->job->spec->moves && (code == 0 || code == E_NOT_MODIFIED)) {
        struct error why = ERROR_INIT;
        if (remove_file(p, file, &st, &why) != 0) {
            *err = why;
            return why.code;
        }
    }
    return code;
}

static int promote_nth(void *ctx, size_t i, struct error *err)
{
    struct promoting *p = ctx;
    struct job_base *j = p->job;
    struct error why = ERROR_INIT;
    uint64_t bytes = 0;
    _cleanup_free_ char *file = xprintf("%s%s", p->below, p->names[i]);
    _cleanup_free_ char *name = xprintf("%s%s", j->spec->prepend, file);
    int code = promote_file(p, p->names[i], name, &bytes, &why);
    if (code == 0)
        job_tally_done(j->tally, bytes);
    else if (code == E_NOT_MODIFIED || code == E_PRECONDITION)
        job_tally_skipped(j->tally);
    else if (code != E_ABORTED)
        job_tally_fail(j->tally, file, &why);
    return job_base_check(j, err);
}

/* --- all of them ------------------------------------------------------------------------------ */

static int take_files(void *ctx, int dir, const char *below, char *const *names, size_t n,
                      struct error *err)
{
    struct promoting *p = ctx;
    const uint64_t width = param_live(p->job->target->params.copy_parallel);
    p->dir = dir;
    p->below = below;
    p->names = names;
    job_tally_expect(p->job->tally, n);
    int code = parallel_for("promote", (unsigned)width, n, promote_nth, p, err);
    if (code == 0 && job_tally_hopeless(p->job->tally))
        code = job_tally_end(p->job->tally, err);
    return code;
}

static void take_other(void *ctx, const char *below, const char *name, const struct error *err)
{
    struct promoting *p = ctx;
    _cleanup_free_ char *path = xprintf("%s%s", below, name);
    job_tally_expect(p->job->tally, 1);
    job_tally_fail(p->job->tally, path, err);
}

/* Files of the store itself are no one's to take. */
static int check_root(const struct target *t, struct error *err)
{
    const char *root = t->params.promote_root;
    if (*root == '\0')
        return error_set(err, E_UNSUPPORTED,
                         "target '%s' promotes no files: its operator must start it with "
                         "--promote-root",
                         t->id);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    for (size_t i = 0; i < set->count; i++) {
        const char *path = set->all[i]->path;
        if (mountpath_paths_nest(root, path))
            return error_set(err, E_INVALID,
                             "target '%s': promote_root '%s' and mountpath '%s' overlap", t->id,
                             root, path);
    }
    return 0;
}

static int find_bucket(struct promoting *p, struct error *err)
{
    const struct job_base *j = p->job;
    _cleanup_state_ const struct cluster_state *s = state_current(j->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, j->plan.input_bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    p->checksum = b->props.checksum;
    if (!j->spec->moves || b->props.durability == DURABILITY_SYNC)
        return 0;
    return error_set(err, E_UNSUPPORTED,
                     "bucket '%s' does not have durability sync: a loss of power could take the "
                     "object after its file was moved",
                     b->name);
}

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    struct promoting p = {.job = j, .dir = -1};
    const struct objects_spec *spec = j->spec;
    if (spec->node != NULL && strcmp(spec->node, j->target->id) != 0)
        return job_tally_end(j->tally, err);
    const struct promote_walk walk = {.root = j->target->params.promote_root,
                                      .path = spec->path,
                                      .files = take_files,
                                      .other = take_other,
                                      .ctx = &p};
    int code = check_root(j->target, err);
    if (code == 0)
        code = find_bucket(&p, err);
    if (code == 0)
        code = promote_walk(&walk, err);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

const struct xaction_ops promote_xaction =
    JOB_WORK("promote", .size = sizeof(struct job_base), .done_word = "promoted",
             .over_objects = true, .sends = true, .run = run);
