/* Pieces that are being written, of files.h. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/files_parts.h"
#include "common/cleanup.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"

struct files_writer {
    struct files *files;
    char *path;  /* in new/ */
    char *final; /* its name later */
    char *name;  /* the entity's */
    struct cache_entity entity;
    struct piece piece;
    size_t done; /* parts */
    bool has[PIECE_PARTS];
    uint64_t sums[PIECE_PARTS];
};

struct files_writer *files_begin(struct files *f, const struct piece *p)
{
    struct files_writer *w = xcalloc(1, sizeof *w);
    uint64_t number = __atomic_add_fetch(&f->written, 1, __ATOMIC_RELAXED);
    w->files = f;
    w->path = xprintf("%s/new/%" PRIu64, f->path, number);
    w->final = files_piece_path(f, &p->id, p->set);
    w->name = xstrdup(p->entity->name);
    w->entity = (struct cache_entity){.name = w->name, .set = "", .size = p->entity->size};
    w->piece = *p;
    w->piece.entity = &w->entity;
    return w;
}

static void writer_free(struct files_writer *w)
{
    free(w->path);
    free(w->final);
    free(w->name);
    free(w);
}

int files_pwrite(int fd, const void *data, size_t size, uint64_t offset)
{
    int e = fault_errno("cache.write");
    if (e != 0)
        return -e;
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

int files_put(const char *path, const void *data, size_t size, uint64_t offset)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0 ? files_pwrite(fd, data, size, offset) : -errno;
}

int files_write(struct files_writer *w, size_t offset, const void *data, size_t size)
{
    assert(offset % PIECE_PART == 0 && offset + size <= w->piece.size &&
           (size % PIECE_PART == 0 || offset + size == w->piece.size));
    int rc = files_put(w->path, data, size, offset);
    for (size_t at = 0; rc == 0 && at < size; at += PIECE_PART) {
        size_t part = size - at < PIECE_PART ? size - at : PIECE_PART;
        size_t number = (offset + at) / PIECE_PART;
        w->sums[number] = piece_sum((const char *)data + at, part);
        w->done += !w->has[number];
        w->has[number] = true;
    }
    return rc;
}

bool files_is_whole(const struct files_writer *w)
{
    return w->done == piece_parts(&w->piece);
}

/* The first piece of a set, or with these two digits, makes their directories. */
int files_rename(const char *from, const char *to)
{
    if (rename(from, to) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *copy = xstrdup(to);
    if (file_mkdirs(dirname(copy), 0700, &err) != 0)
        return errno != 0 ? -errno : -EIO;
    return rename(from, to) == 0 ? 0 : -errno;
}

int files_publish(struct files_writer *w, size_t *bytes)
{
    struct stat st;
    size_t size = piece_foot_size(&w->piece);
    _cleanup_free_ char *foot = xmalloc(size);
    assert(files_is_whole(w));
    piece_foot_write(&w->piece, w->sums, foot);
    int rc = files_put(w->path, foot, size, w->piece.size);
    if (rc == 0 && stat(w->path, &st) != 0)
        rc = -errno;
    if (rc == 0)
        rc = -fault_errno("cache.rename");
    if (rc == 0)
        rc = files_rename(w->path, w->final);
    if (rc != 0) {
        files_abandon(w);
        return rc;
    }
    *bytes = files_bytes_of(&st);
    writer_free(w);
    return 0;
}

void files_abandon(struct files_writer *w)
{
    if (w == NULL)
        return;
    unlink(w->path);
    writer_free(w);
}
