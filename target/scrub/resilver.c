#include "target/scrub/resilver.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/disk/ring_files.h"
#include "target/index/walk.h"
#include "target/store/move.h"
#include "target/store/quarantine.h"

enum { WALKERS_MAX = 8, WAIT_MS = 1000, RELEASE_MS = 10000, POLL_MS = 200, POLL_MAX_MS = 2000 };

struct pass {
    struct object_store *store;
    const struct mountpath_set *set;
    struct job_stop *stop;
    struct job_tally *tally;
    bool first;        /* what is found is added to what is to be moved */
    atomic_bool moved; /* anything */
    atomic_bool waits;
    atomic_bool unread; /* something could not be read, or its attribute */
};

/* --- one index -------------------------------------------------------------------------------- */

/* The names of one bucket on one mountpath. */
struct place {
    const struct pass *pass;
    const struct mountpath *mp;
    uint64_t bucket_id;
};

static bool belongs_elsewhere(const void *ctx, const char *name, const struct index_record *rec)
{
    const struct place *p = ctx;
    struct mountpath *to;
    (void)rec;
    return mountpath_set_pick(p->pass->set, p->bucket_id, name, &to, NULL) != 0 || to != p->mp;
}

static int move_one(struct pass *p, struct mountpath *mp, uint64_t bucket_id, const char *name,
                    struct error *err)
{
    enum object_move_result result;
    uint64_t bytes;
    int code = object_move(p->store, bucket_id, name, mp, &result, &bytes, err);
    if (code == E_IO) { /* of one object: the others are moved all the same */
        log_error("object not moved", lstr("mountpath", mp->path), lerr(err));
        job_tally_fail(p->tally, name, err);
        *err = ERROR_INIT;
        atomic_store(&p->unread, true);
        return 0;
    } else if (code != 0) {
        return code;
    }
    switch (result) {
    case MOVE_DONE:
        job_tally_done(p->tally, bytes);
        atomic_store(&p->moved, true);
        break;
    case MOVE_LATER:
        atomic_store(&p->waits, true);
        break;
    case MOVE_DAMAGED:
        error_set(err, E_CORRUPT, "its attribute on '%s' cannot be read", mp->path);
        job_tally_fail(p->tally, name, err);
        *err = ERROR_INIT;
        atomic_store(&p->unread, true);
        break;
    case MOVE_NOTHING:
        break;
    }
    return 0;
}

static int walk_bucket(struct pass *p, struct mountpath *mp, uint64_t bucket_id, struct error *err)
{
    const struct place place = {.pass = p, .mp = mp, .bucket_id = bucket_id};
    const atomic_bool *stop = &p->stop->wanted;
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(bucket_id, stop, belongs_elsewhere, &place);
    int code = 0;
    while (code == 0 && b->walk.more && !*stop) {
        code = index_batch_fill(b, mp->index, err);
        if (p->first)
            job_tally_expect(p->tally, b->count);
        for (size_t i = 0; i < b->count && code == 0 && !*stop; i++)
            code = move_one(p, mp, bucket_id, b->names[i], err);
    }
    return code;
}

static int walk(void *ctx, size_t i, struct error *err)
{
    struct pass *p = ctx;
    struct mountpath *mp = p->set->all[i];
    uint64_t id = 0;
    int code = 0, found = 0;
    if (index_check(mp->index, NULL) != 0) { /* it is being rebuilt */
        atomic_store(&p->waits, true);
        return 0;
    }
    while (code == 0 && !p->stop->wanted &&
           (found = index_next_bucket(mp->index, id, &id, err)) == 1)
        code = walk_bucket(p, mp, id, err);
    return code == 0 && found < 0 ? found : code;
}

/* --- what is leaving -------------------------------------------------------------------------- */

static int is_dir_empty(const char *path, bool *empty, struct error *err)
{
    DIR *dir = opendir(path);
    *empty = true;
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    const struct dirent *e;
    while ((errno = 0, e = readdir(dir)) != NULL)
        *empty = *empty && e->d_name[0] == '.';
    int code = errno != 0 ? error_errno(err, errno, "read directory '%s'", path) : 0;
    closedir(dir);
    return code;
}

static void blame_jobs(struct error *why)
{
    error_set(why, E_OBJECT_RESERVED,
              "jobs that are under way hold objects or files, or an index is being rebuilt");
}

/* Its directory goes with it, and what is in quarantine is the operator's to remove. */
static int check_quarantine(const struct mountpath *mp, struct error *err)
{
    uint64_t files = 0;
    int code = quarantine_count(mp, &files, err);
    if (code != 0 || files == 0)
        return code;
    return error_set(err, E_CORRUPT,
                     "%llu damaged files are in '%s/.dfc/quarantine': remove them, or keep them "
                     "elsewhere, first",
                     (unsigned long long)files, mp->path);
}

static int has_file(int dir, const char *name, const char *file, bool *has, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", name, file);
    *has = faccessat(dir, path, F_OK, 0) == 0;
    if (*has || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return error_errno(err, errno, "look for '%s' among the uploads", path);
}

static int is_open_upload(int dir, const char *name, bool *is, struct error *err)
{
    bool is_done = false;
    int code = has_file(dir, name, "about.json", is, err);
    if (code == 0 && *is)
        code = has_file(dir, name, "done.json", &is_done, err);
    *is = *is && !is_done;
    return code;
}

/* Uploads in parts that are not completed (uploads/upload_dir.h). */
static int count_uploads(const struct mountpath *mp, uint64_t *open, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/uploads", mp->path);
    DIR *dir = opendir(path);
    const struct dirent *e;
    int code = 0;
    *open = 0;
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    while (code == 0 && (errno = 0, e = readdir(dir)) != NULL) {
        bool is = false;
        if (e->d_name[0] != '.')
            code = is_open_upload(dirfd(dir), e->d_name, &is, err);
        *open += is;
    }
    if (code == 0 && errno != 0)
        code = error_errno(err, errno, "read '%s'", path);
    closedir(dir);
    return code;
}

static void blame_uploads(const struct mountpath *mp, uint64_t uploads, struct error *why)
{
    error_set(why, E_OBJECT_RESERVED,
              "%llu uploads in parts are open on '%s': complete or abort them, or detach it with "
              "--lost",
              (unsigned long long)uploads, mp->path);
}

static void blame_rings(const struct mountpath *mp, uint64_t files, struct error *why)
{
    error_set(why, E_OBJECT_RESERVED,
              "%llu files of samples of rings are on '%s': they go when later generations have "
              "taken their place; push and swap, or clear the rings, or detach it with --lost",
              (unsigned long long)files, mp->path);
}

/* *why: what has files there and is still to end. */
static int check_empty(struct mountpath *mp, struct error *why, struct error *err)
{
    bool has, no_jobs = true;
    uint64_t uploads = 0, samples = 0;
    int code = mountpath_has_objects(mp, &has, err);
    if (code == 0 && has)
        return error_set(
            err, E_CORRUPT,
            "what is left on '%s' cannot be moved off (the log has it by name): delete "
            "it, or give the mountpath up as lost",
            mp->path);
    _cleanup_free_ char *jobs = xprintf("%s/.dfc/jobs", mp->path);
    if (code == 0)
        code = check_quarantine(mp, err);
    if (code == 0)
        code = is_dir_empty(jobs, &no_jobs, err);
    if (code == 0)
        code = count_uploads(mp, &uploads, err);
    if (code == 0)
        code = ring_files_count(mp, &samples, err);
    if (!no_jobs)
        blame_jobs(why);
    if (samples > 0)
        blame_rings(mp, samples, why);
    if (uploads > 0)
        blame_uploads(mp, uploads, why);
    return code;
}

static int check_leaving(const struct mountpath_set *set, struct error *why, struct error *err)
{
    int code = 0;
    for (size_t i = set->placed; i < set->count && code == 0; i++)
        code = check_empty(set->all[i], why, err);
    return code;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* A copy that was removed must not come back with a loss of power. */
static int sync_all(const struct mountpath_set *set, struct error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        int errnum = fault_errno("resilver.settle");
        if (errnum == 0 && syncfs(mp->root_fd) != 0)
            errnum = errno;
        if (errnum != 0)
            return mountpath_failed(mp, error_errno(err, errnum, "sync '%s'", mp->path));
    }
    return 0;
}

static int settle(struct pass *p, bool *done, struct error *err)
{
    struct mountpaths *all = object_store_mountpaths(p->store);
    int code = sync_all(p->set, err);
    if (code == 0)
        code = mountpaths_settle(all, p->set, err);
    if (code == E_MOUNTPATH_STATE) /* they were changed: again */
        return 0;
    *done = code == 0;
    if (code != 0)
        return code;
    _cleanup_mountpath_set_ const struct mountpath_set *now = mountpaths_current(all);
    return now->settled ? 0 : mountpath_set_check_whole(now, err);
}

static bool is_current(const struct pass *p)
{
    _cleanup_mountpath_set_ const struct mountpath_set *now =
        mountpaths_current(object_store_mountpaths(p->store));
    return now == p->set;
}

/* Jobs and uploads end, and samples go, without telling.  Samples may take days: what leaves is
 * looked at ever more seldom, and the indexes are walked again only then. */
static int wait_for_others(const struct pass *p, struct error *why, struct error *err)
{
    uint64_t pause_ms = POLL_MS;
    int code = 0;
    while (code == 0 && why->code != 0 && !p->stop->wanted && is_current(p)) {
        job_tally_wait(p->tally, why);
        (void)job_stop_pause(p->stop, pause_ms);
        pause_ms = pause_ms < POLL_MAX_MS ? pause_ms * 2 : POLL_MAX_MS;
        *why = ERROR_INIT;
        if (!p->waits) /* else objects are to be moved: that takes a pass */
            code = check_leaving(p->set, why, err);
    }
    job_tally_wait(p->tally, NULL);
    return code;
}

/* One pass, and what follows from it. */
static int run_pass(struct pass *p, bool *done, struct error *err)
{
    struct mountpaths *all = object_store_mountpaths(p->store);
    bool alone = mountpaths_wait_older(all, p->set, &p->stop->wanted, 0);
    struct error why = ERROR_INIT;
    unsigned width = p->set->count < WALKERS_MAX ? (unsigned)p->set->count : WALKERS_MAX;
    int code =
        p->set->count == 0 ? 0 : parallel_for("resilver", width, p->set->count, walk, p, err);
    if (code != 0 || p->stop->wanted)
        return code;
    if (!alone)
        (void)mountpaths_wait_older(all, p->set, &p->stop->wanted, WAIT_MS);
    if (!alone || (p->moved && !p->unread))
        return 0;
    if (p->waits && !p->unread)
        blame_jobs(&why);
    else
        code = p->unread ? job_tally_end(p->tally, err) : check_leaving(p->set, &why, err);
    if (code != 0)
        return code;
    if (why.code == 0)
        return settle(p, done, err);
    return wait_for_others(p, &why, err);
}

static bool needs_nothing(const struct mountpath_set *set)
{
    return set->settled && set->placed == set->count;
}

/* What has left is closed when the last request that holds it has ended. */
static void release(struct mountpaths *all, struct job_stop *stop)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(all);
    (void)mountpaths_wait_older(all, set, &stop->wanted, RELEASE_MS);
    mountpaths_reap(all);
}

int resilver_run(struct object_store *s, struct job_stop *stop, struct job_tally *tally,
                 struct error *err)
{
    bool done = false, first = true;
    int code = 0;
    while (code == 0 && !done && !stop->wanted) {
        _cleanup_mountpath_set_ const struct mountpath_set *set =
            mountpaths_current(object_store_mountpaths(s));
        struct pass p = {.store = s, .set = set, .stop = stop, .tally = tally, .first = first};
        if (needs_nothing(set))
            break;
        code = run_pass(&p, &done, err);
        first = false;
    }
    if (code == 0)
        release(object_store_mountpaths(s), stop);
    if (code == 0 && stop->wanted && !done)
        return error_set(err, E_ABORTED, "the resilver was stopped");
    return code != 0 ? code : job_tally_end(tally, err);
}
