#include "cache/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cache/files_parts.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/lock_file.h"

#define FOLDER "dfc-cache"
#define STAT_BLOCK 512

char *files_piece_path(const struct files *f, const struct piece_id *id, uint64_t set)
{
    char name[PIECE_NAME];
    piece_name(id, name);
    return xprintf("%s/pieces/%016" PRIx64 "/%02x/%s", f->path, set,
                   (unsigned)(id->entity[1] + id->index) & 0xff, name);
}

/* ---- open and close ---- */

/* The directory that others may write may be above this one, but this one is ours alone.  So links
 * and pieces in it are ours, too, and it is looked at before anything is made in it. */
static int check_folder(const char *path, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return error_errno(err, errno, "look at '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, E_INVALID, "'%s' is a link, and must be a directory: remove it",
                         path);
    if (st.st_uid != geteuid())
        return error_set(err, E_INVALID,
                         "'%s' belongs to user %u, and must belong to user %u: remove it, or give "
                         "another directory",
                         path, (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(err, E_INVALID,
                         "others may write in '%s' (mode %04o): remove it, it is made anew", path,
                         (unsigned)st.st_mode & 07777);
    return 0;
}

/* What a process left that was killed is removed.  The directory stays: a full disk may have no
 * room for another one. */
static int empty_new(const char *path, struct error *err)
{
    int rc = file_mkdirs(path, 0700, err);
    DIR *d = rc == 0 ? opendir(path) : NULL;
    if (d == NULL)
        return rc != 0 ? rc : error_errno(err, errno, "open '%s'", path);
    for (const struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        _cleanup_free_ char *name = xprintf("%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = file_remove_tree(name, err);
    }
    closedir(d);
    return rc;
}

int files_open(const char *directory, struct files **out, struct error *err)
{
    struct stat st;
    if (stat(directory, &st) != 0)
        return error_errno(err, errno, "cache directory '%s'", directory);
    _cleanup_(files_closep)
    struct files *f = xcalloc(1, sizeof *f);
    f->lock = -1;
    f->path = xprintf("%s/" FOLDER, directory);
    _cleanup_free_ char *lock = xprintf("%s/lock", f->path);
    _cleanup_free_ char *new = xprintf("%s/new", f->path);
    _cleanup_free_ char *pieces = xprintf("%s/pieces", f->path);
    int rc = file_mkdirs(f->path, 0700, err);
    if (rc == 0)
        rc = check_folder(f->path, err);
    if (rc == 0)
        rc = lock_file_take(lock, &f->lock, err);
    if (rc == 0)
        rc = empty_new(new, err);
    if (rc == 0)
        rc = file_mkdirs(pieces, 0700, err);
    if (rc == 0)
        *out = steal(f);
    return rc;
}

void files_close(struct files *f)
{
    if (f == NULL)
        return;
    if (f->lock >= 0)
        close(f->lock);
    free(f->path);
    free(f);
}

/* ---- reading ---- */

int files_pread(int fd, void *to, size_t size, uint64_t offset)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EBADMSG; /* it was cut */
        done += (size_t)n;
    }
    return 0;
}

static int foot_read(int fd, const struct piece *p, uint64_t *sums)
{
    struct stat st;
    size_t size = piece_foot_size(p);
    if (fstat(fd, &st) != 0)
        return -errno;
    if ((uint64_t)st.st_size != p->size + size)
        return -EBADMSG;
    _cleanup_free_ char *foot = xmalloc(size);
    int rc = files_pread(fd, foot, size, p->size);
    return rc == 0 && !piece_foot_read(p, foot, sums) ? -EBADMSG : rc;
}

int files_find(struct files *f, const struct piece *p, struct files_piece *out)
{
    _cleanup_free_ char *path = files_piece_path(f, &p->id, p->set);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = foot_read(fd, p, out->sums);
    if (rc == 0) {
        out->fd = steal_fd(&fd);
        out->base = 0;
        out->is_whole = false;
    }
    return rc;
}

int files_read(const struct files_piece *found, const struct piece *p, size_t offset, size_t size,
               void *to)
{
    int e = fault_errno("cache.read");
    assert(offset % PIECE_PART == 0 && (size % PIECE_PART == 0 || offset + size == p->size));
    int rc = e != 0 ? -e : files_pread(found->fd, to, size, found->base + offset);
    for (size_t at = 0; rc == 0 && at < size; at += PIECE_PART) {
        size_t part = size - at < PIECE_PART ? size - at : PIECE_PART;
        if (piece_sum((char *)to + at, part) != found->sums[(offset + at) / PIECE_PART])
            rc = -EBADMSG;
    }
    return rc;
}

void files_found_close(struct files_piece *found)
{
    close(found->fd);
}

/* ---- all of them ---- */

int files_remove(struct files *f, const struct piece_id *id, uint64_t set)
{
    _cleanup_free_ char *path = files_piece_path(f, id, set);
    if (unlink(path) != 0)
        return -errno;
    if (id->index == PIECE_WHOLE) {
        _cleanup_free_ char *foot = files_foot_path(path);
        unlink(foot); /* what stays is removed at the next start */
    }
    /* Its two directories, if it was the last there. */
    for (unsigned i = 0; i < 2; i++) {
        *strrchr(path, '/') = '\0';
        if (rmdir(path) != 0)
            break;
    }
    return 0;
}

int files_room(struct files *f, struct files_room *room)
{
    struct statvfs st;
    if (statvfs(f->path, &st) != 0)
        return -errno;
    *room = (struct files_room){
        .total_bytes = (uint64_t)st.f_blocks * st.f_frsize,
        .free_bytes = (uint64_t)st.f_bavail * st.f_frsize,
    };
    return 0;
}

size_t files_bytes_of(const struct stat *st)
{
    size_t allocated = (size_t)st->st_blocks * STAT_BLOCK, size = (size_t)st->st_size;
    return allocated > size ? allocated : size; /* some allocate late */
}
