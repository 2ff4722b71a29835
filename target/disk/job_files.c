#include "target/disk/job_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/claim.h"
#include "cluster/documents/state.h"
#include "xaction/course.h"
#include "xaction/xaction.h"

#define FILE_MAX ((size_t)1 << 32)

static char *job_dir(const struct mountpath *mp, const char *job_id)
{
    return xprintf("%s/.dfc/jobs/%s", mp->path, job_id);
}

int job_files_begin(struct mountpaths *m, const struct job *job, struct error *err)
{
    _cleanup_json_ json_t *doc = job_to_json(job);
    _cleanup_free_ char *text = json_text(doc);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->placed; i++) {
        _cleanup_free_ char *dir = job_dir(set->all[i], job->id);
        _cleanup_free_ char *path = xprintf("%s/job.json", dir);
        int code = file_mkdirs(dir, 0700, err);
        if (code == 0)
            code = file_replace(path, text, strlen(text), 0600, err);
        if (code != 0)
            return error_wrap(err, "job '%s'", job->id);
    }
    return 0;
}

int job_files_open(struct mountpaths *m, const char *job_id, const char *name, int *fd,
                   struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        _cleanup_free_ char *path = xprintf("%s/.dfc/jobs/%s/%s", set->all[i]->path, job_id, name);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*fd >= 0)
            return 0;
        if (errno != ENOENT)
            return error_errno(err, errno, "open '%s'", path);
    }
    return error_set(err, E_NOT_FOUND, "job '%s' has no file '%s' on any mountpath", job_id, name);
}

/* A file of a job on the first mountpath that has a directory of it: one that was attached since
 * has none. */
static int place(struct mountpaths *m, const char *job_id, const char *name, char **path,
                 struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->placed; i++) {
        _cleanup_free_ char *dir = job_dir(set->all[i], job_id);
        if (access(dir, F_OK) != 0)
            continue;
        *path = xprintf("%s/%s", dir, name);
        return 0;
    }
    return error_set(err, E_MOUNTPATH_DISABLED,
                     "no mountpath is enabled that had been when job '%s' began", job_id);
}

int job_files_write(struct mountpaths *m, const char *job_id, const char *name, const void *data,
                    size_t len, struct error *err)
{
    _cleanup_free_ char *path = NULL;
    int code = place(m, job_id, name, &path, err);
    return code != 0 ? code : file_replace(path, data, len, 0600, err);
}

int job_files_append(struct mountpaths *m, const char *job_id, const char *name, const void *data,
                     size_t len, struct error *err)
{
    _cleanup_free_ char *path = NULL;
    int code = place(m, job_id, name, &path, err);
    if (code != 0)
        return code;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, "open '%s'", path);
    return file_write_all(fd, data, len, err);
}

int job_files_read(struct mountpaths *m, const char *job_id, const char *name, struct buf *out,
                   struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        _cleanup_free_ char *dir = job_dir(set->all[i], job_id);
        _cleanup_free_ char *path = xprintf("%s/%s", dir, name);
        if (access(path, F_OK) == 0)
            return file_read_all(path, FILE_MAX, out, err);
    }
    return error_set(err, E_NOT_FOUND, "job '%s' has no file '%s' on any mountpath", job_id, name);
}

static int clear_dir(const char *path, const char *prefix, struct error *err)
{
    DIR *d = opendir(path);
    if (d == NULL)
        return errno == ENOENT ? 0 : error_errno(err, errno, "open '%s'", path);
    int code = 0;
    for (const struct dirent *e; code == 0 && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            unlinkat(dirfd(d), e->d_name, 0) != 0)
            code = error_errno(err, errno, "remove '%s/%s'", path, e->d_name);
    }
    closedir(d);
    return code;
}

int job_files_clear(struct mountpaths *m, const char *job_id, const char *prefix, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    int code = 0;
    for (size_t i = 0; i < set->count && code == 0; i++) {
        _cleanup_free_ char *dir = job_dir(set->all[i], job_id);
        code = clear_dir(dir, prefix, err);
    }
    return code;
}

size_t job_files_roomy(const uint64_t *room, size_t count, unsigned n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = room[i] > most ? room[i] : most;
    for (size_t i = 0; i < count; i++) {
        if (room[(n + i) % count] >= most / 2)
            return (n + i) % count;
    }
    return 0;
}

/* Where it cannot be told there is none: another one is taken, if there is any. */
static uint64_t room_of(const struct space_limits *limits, const struct mountpath *mp)
{
    struct space s;
    return mountpath_capacity(mp, &s.total, &s.available, NULL) == 0 ? space_room(limits, &s) : 0;
}

/* One that was attached since the job began has no directory of it: then the next one. */
int job_files_open_work(struct mountpaths *m, const struct space_limits *limits, const char *job_id,
                        unsigned n, int *fd, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    int code = error_set(err, E_MOUNTPATH_DISABLED, "no mountpath is enabled");
    _cleanup_free_ uint64_t *room = xcalloc(set->placed + 1, sizeof *room);
    for (size_t i = 0; i < set->placed; i++)
        room[i] = room_of(limits, set->all[i]);
    size_t first = set->placed > 0 ? job_files_roomy(room, set->placed, n) : 0;
    for (size_t i = 0; i < set->placed; i++) {
        _cleanup_free_ char *dir = job_dir(set->all[(first + i) % set->placed], job_id);
        code = file_open_unnamed(dir, fd, err);
        if (code == 0 || access(dir, F_OK) == 0)
            break;
    }
    return code;
}

/* A work file has no name: its disk tells whose it is. */
static const char *path_of(const struct mountpath_set *set, int fd)
{
    struct stat st;
    for (size_t i = 0; fstat(fd, &st) == 0 && i < set->count; i++) {
        if (set->all[i]->device == st.st_dev)
            return set->all[i]->path;
    }
    return "unknown";
}

int job_files_claim_work(struct mountpaths *m, const struct space_limits *limits,
                         const struct space_steps *steps, int fd, uint64_t from, uint64_t to,
                         struct error *err)
{
    uint64_t had = from > 0 ? space_step_end(steps, from - 1) : 0;
    uint64_t end = to > 0 ? space_step_end(steps, to - 1) : 0;
    if (end <= had)
        return 0;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    return claim_take(limits, path_of(set, fd), fd, had, end, err);
}

/* --- settling --------------------------------------------------------------------------------- */

static int read_job(const char *dir, const char *id, struct job **job, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/job.json", dir);
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int code = file_read_all(path, JOB_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = json_parse(buf_str(&text), text.len, &doc, err);
    if (code == 0)
        code = job_from_json(doc, job, err);
    if (code == 0 && strcmp((*job)->id, id) != 0) {
        code = error_set(err, E_CORRUPT, "'%s' is the document of job '%s'", path, (*job)->id);
        job_unref(*job);
    }
    return code;
}

/* A crash right after mkdir leaves a directory without a document: nothing was begun in it. */
static void settle_one(struct xactions *x, const struct jobs *jobs, const char *target_id,
                       const char *dir, const char *id)
{
    enum xaction_order order;
    if (!xaction_settles(jobs_find(jobs, id), target_id, &order))
        return;
    struct error err = ERROR_INIT;
    struct job *job = NULL;
    int code = read_job(dir, id, &job, &err);
    if (code == E_NOT_FOUND) {
        code = file_remove_tree(dir, &err);
    } else if (code == 0) {
        code = xactions_order(x, order, job, &err);
        job_unref(job);
    }
    if (code != 0 && code != E_JOB_STATE)
        log_warn("ended job not cleaned up", lstr("job", id), lerr(&err));
}

static void settle_mountpath(const struct mountpath *mp, struct xactions *x,
                             const struct jobs *jobs, const char *target_id)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/jobs", mp->path);
    DIR *d = opendir(path);
    if (d == NULL) {
        if (errno != ENOENT)
            log_warn("jobs not listed", lstr("dir", path), lstr("error", strerror(errno)));
        return;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        _cleanup_free_ char *dir = xprintf("%s/%s", path, e->d_name);
        settle_one(x, jobs, target_id, dir, e->d_name);
    }
    closedir(d);
}

void job_files_settle(struct mountpaths *m, struct xactions *x, const struct jobs *jobs,
                      const char *target_id)
{
    xactions_settle(x, jobs, target_id);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++)
        settle_mountpath(set->all[i], x, jobs, target_id);
}
