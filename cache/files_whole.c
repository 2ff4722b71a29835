/* Whole entities, of files.h: one file each, that has nothing but their bytes. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cache/files_parts.h"
#include "common/cleanup.h"
#include "common/fault.h"
#include "common/mem.h"

char *files_foot_path(const char *whole)
{
    return xprintf("%s" FILES_FOOT, whole);
}

/* ---- reading ---- */

int files_open_whole(struct files *f, const struct piece *whole)
{
    struct stat st;
    _cleanup_free_ char *path = files_piece_path(f, &whole->id, whole->set);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -errno;
    if ((uint64_t)st.st_size != whole->size)
        return -EBADMSG;
    return steal_fd(&fd);
}

void files_prove_whole(struct files *f, const struct piece *whole)
{
    _cleanup_free_ char *path = files_piece_path(f, &whole->id, whole->set);
    _cleanup_free_ char *foot = files_foot_path(path);
    utimensat(AT_FDCWD, foot, NULL, 0); /* if it fails, the next process compares */
}

/* The sums of one piece. */
static int sums_read(int fd, const struct piece *whole, const struct piece *p, uint64_t *sums)
{
    struct stat st;
    const size_t size = piece_foot_size(whole), tail_size = piece_tail_size(whole);
    if (fstat(fd, &st) != 0)
        return -errno;
    if ((uint64_t)st.st_size != size)
        return -EBADMSG;
    _cleanup_free_ char *tail = xmalloc(tail_size);
    int rc = files_pread(fd, tail, tail_size, size - tail_size);
    if (rc == 0 && !piece_tail_matches(whole, tail))
        return -EBADMSG;
    const uint64_t at = p->id.index * PIECE_PARTS * sizeof *sums;
    return rc != 0 ? rc : files_pread(fd, sums, piece_parts(p) * sizeof *sums, at);
}

int files_find_within(struct files *f, const struct piece *p, struct files_piece *out)
{
    const struct piece whole = piece_whole(p->entity);
    _cleanup_free_ char *path = files_piece_path(f, &whole.id, whole.set);
    _cleanup_free_ char *foot = files_foot_path(path);
    _cleanup_close_ int fd = files_open_whole(f, &whole);
    if (fd < 0)
        return fd;
    _cleanup_close_ int sums = open(foot, O_RDONLY | O_CLOEXEC);
    int rc = sums >= 0         ? sums_read(sums, &whole, p, out->sums)
             : errno == ENOENT ? -EBADMSG
                               : -errno;
    if (rc != 0)
        return rc;
    out->fd = steal_fd(&fd);
    out->base = p->id.index * PIECE_BYTES;
    out->is_whole = true;
    return 0;
}

/* ---- writing ---- */

struct files_join {
    char *path, *final; /* of the bytes: in new/, and later */
    char *foot, *final_foot;
    char *name; /* the entity's */
    struct cache_entity entity;
    struct piece whole;
    int fd; /* -1: nothing was written yet */
    uint64_t done;
    uint64_t *sums;
};

struct files_join *files_join_begin(struct files *f, const struct piece *whole)
{
    struct files_join *j = xcalloc(1, sizeof *j);
    uint64_t number = __atomic_add_fetch(&f->written, 1, __ATOMIC_RELAXED);
    j->path = xprintf("%s/new/%" PRIu64, f->path, number);
    j->final = files_piece_path(f, &whole->id, whole->set);
    j->foot = files_foot_path(j->path);
    j->final_foot = files_foot_path(j->final);
    j->name = xstrdup(whole->entity->name);
    j->entity = (struct cache_entity){.name = j->name, .set = "", .size = whole->entity->size};
    j->whole = *whole;
    j->whole.entity = &j->entity;
    j->fd = -1;
    j->sums = xcalloc(piece_parts(whole), sizeof *j->sums);
    return j;
}

static void join_free(struct files_join *j)
{
    if (j->fd >= 0)
        close(j->fd);
    free(j->path);
    free(j->final);
    free(j->foot);
    free(j->final_foot);
    free(j->name);
    free(j->sums);
    free(j);
}

/* The disk begins at once: nothing of it is to wait for in the end. */
static int join_put(struct files_join *j, const void *data, size_t size)
{
    if (j->fd < 0)
        j->fd = open(j->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc = j->fd >= 0 ? files_pwrite(j->fd, data, size, j->done) : -errno;
    if (rc == 0)
        sync_file_range(j->fd, (off_t)j->done, (off_t)size, SYNC_FILE_RANGE_WRITE);
    return rc;
}

int files_join_write(struct files_join *j, const void *data, size_t size)
{
    assert(j->done % PIECE_PART == 0 && j->done + size <= j->whole.size);
    int rc = join_put(j, data, size);
    for (size_t at = 0; rc == 0 && at < size; at += PIECE_PART) {
        size_t part = size - at < PIECE_PART ? size - at : PIECE_PART;
        j->sums[(j->done + at) / PIECE_PART] = piece_sum((const char *)data + at, part);
    }
    j->done += rc == 0 ? size : 0;
    return rc;
}

/* The foot first: bytes without one are damaged.  The bytes are on the disk before: nobody compares
 * them when the kernel reads them. */
static int join_rename(struct files_join *j)
{
    int rc = fdatasync(j->fd) == 0 ? -fault_errno("cache.rename") : -errno;
    if (rc == 0)
        rc = files_rename(j->foot, j->final_foot);
    if (rc == 0)
        rc = files_rename(j->path, j->final);
    return rc;
}

int files_join_publish(struct files_join *j, size_t *bytes)
{
    struct stat st, foot_st;
    const size_t size = piece_foot_size(&j->whole);
    _cleanup_free_ char *foot = xmalloc(size);
    assert(j->done == j->whole.size);
    piece_foot_write(&j->whole, j->sums, foot);
    int rc = files_put(j->foot, foot, size, 0);
    if (rc == 0 && (stat(j->path, &st) != 0 || stat(j->foot, &foot_st) != 0))
        rc = -errno;
    if (rc == 0)
        rc = join_rename(j);
    if (rc != 0) {
        files_join_abandon(j);
        return rc;
    }
    *bytes = files_bytes_of(&st) + files_bytes_of(&foot_st);
    join_free(j);
    return 0;
}

void files_join_abandon(struct files_join *j)
{
    if (j == NULL)
        return;
    unlink(j->path);
    unlink(j->foot);
    join_free(j);
}
