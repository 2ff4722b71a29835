#include "target/disk/job_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/file.h"

static int roomiest(const struct mountpath_set *set, const struct mountpath **best,
                    struct space *space, struct error *err)
{
    *best = NULL;
    *space = (struct space){0};
    for (size_t i = 0; i < set->placed; i++) {
        struct space s;
        if (mountpath_capacity(set->all[i], &s.total, &s.available, err) != 0)
            continue;
        if (*best == NULL || s.available > space->available) {
            *best = set->all[i];
            *space = s;
        }
    }
    return *best != NULL ? 0 : error_set(err, E_MOUNTPATH_DISABLED, "no mountpath is enabled");
}

/* Where the file system can, so that those who write at the same time do not meet at its end. */
static int reserve(const struct job_file *f, uint64_t size, struct error *err)
{
    if (size == 0 || fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS)
        return 0;
    return error_errno(err, errno, "reserve %llu bytes for '%s'", (unsigned long long)size,
                       f->path);
}

int job_file_create(struct mountpaths *m, const struct space_limits *limits, const char *job_id,
                    const char *name, uint64_t size, struct job_file *f, struct error *err)
{
    *f = (struct job_file){.fd = -1};
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    struct space space;
    const struct mountpath *mp;
    int code = roomiest(set, &mp, &space, err);
    if (code == 0)
        code = space_admit(limits, mp->path, &space, size, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *dir = xprintf("%s/.dfc/jobs/%s", mp->path, job_id);
    f->path = xprintf("%s/%s", dir, name);
    f->unfinished = xprintf("%s.part", f->path);
    if ((code = file_mkdirs(dir, 0700, err)) != 0)
        return code;
    f->fd = open(f->unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return f->fd < 0 ? error_errno(err, errno, "create '%s'", f->unfinished)
                     : reserve(f, size, err);
}

int job_file_keep(struct job_file *f, struct error *err)
{
    int errnum = file_sync(f->fd, "sync.file");
    if (errnum == 0 && rename(f->unfinished, f->path) != 0)
        errnum = errno;
    if (errnum != 0)
        return error_errno(err, errnum, "keep '%s'", f->path);
    free(steal(f->unfinished));
    return file_fsync_parent(f->path, err);
}

void job_file_done(struct job_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->unfinished != NULL)
        unlink(f->unfinished);
    free(f->unfinished);
    free(f->path);
}
