#include "vdisc/client/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/failure.h"
#include "common/checksum.h"
#include "common/error.h"
#include "common/mem.h"
#include "vdisc/packs.h"

#define DEPTH_MAX 512 /* a mount loop, hardly a dataset */
#define PIECE (256u << 10)
#define MODE_BITS 07777

/* --- a directory ------------------------------------------------------------------------------ */

static int walk(const char *directory, const char *below, unsigned depth, struct local_files *all,
                struct dfc_error *err);

static int read_link(struct local_file *f, struct dfc_error *err)
{
    char target[ISO_LINK_MAX + 2];
    ssize_t n = readlink(f->path, target, sizeof target - 1);
    if (n < 0)
        return failure_errno(err, errno, "read link '%s'", f->path);
    target[n] = '\0';
    f->target = xstrdup(target);
    return DFC_OK;
}

/* Directories and links have no time of their own: a copy of the tree is the same image. */
static int add(struct local_files *all, const char *path, const char *name, const struct stat *st,
               struct dfc_error *err)
{
    if (all->count == all->room) {
        all->room = all->room * 2 + 64;
        all->files = xrealloc(all->files, all->room * sizeof *all->files);
    }
    struct local_file *f = &all->files[all->count++];
    *f = (struct local_file){.path = xstrdup(path),
                             .name = xstrdup(name),
                             .mtime_s = ISO_NO_TIME,
                             .mode = st->st_mode & MODE_BITS};
    if (S_ISDIR(st->st_mode)) {
        f->kind = ISO_DIRECTORY;
        return DFC_OK;
    }
    if (S_ISLNK(st->st_mode)) {
        f->kind = ISO_LINK;
        f->mode = 0777;
        return read_link(f, err);
    }
    f->kind = ISO_FILE;
    f->size = (uint64_t)st->st_size;
    f->mtime_s = st->st_mtim.tv_sec;
    return DFC_OK;
}

static int visit(const char *path, const char *name, unsigned depth, struct local_files *all,
                 struct dfc_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return failure_errno(err, errno, "look at '%s'", path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return failure_set(err, DFC_LOCAL, E_INVALID,
                           "'%s' is a device, a pipe or a socket: an image has files, directories "
                           "and links; remove it first",
                           path);
    int rc = add(all, path, name, &st, err);
    return rc == DFC_OK && S_ISDIR(st.st_mode) ? walk(path, name, depth + 1, all, err) : rc;
}

static int not_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int bytewise(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk(const char *directory, const char *below, unsigned depth, struct local_files *all,
                struct dfc_error *err)
{
    struct dirent **entries = NULL;
    int rc = DFC_OK;
    if (depth > DEPTH_MAX)
        return failure_errno(err, ELOOP, "read directory '%s'", directory);
    const int n = scandir(directory, &entries, not_dots, bytewise);
    if (n < 0)
        return failure_errno(err, errno, "read directory '%s'", directory);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        _cleanup_free_ char *path = xprintf("%s/%s", directory, name);
        _cleanup_free_ char *rest =
            below[0] != '\0' ? xprintf("%s/%s", below, name) : xstrdup(name);
        if (rc == DFC_OK)
            rc = visit(path, rest, depth, all, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int local_walk(const char *directory, struct local_files *all, struct dfc_error *err)
{
    return walk(directory, "", 0, all, err);
}

void local_files_done(struct local_files *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->files[i].path);
        free(all->files[i].name);
        free(all->files[i].target);
    }
    free(all->files);
    *all = (struct local_files){0};
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int changed(const struct local_file *f, struct dfc_error *err)
{
    return failure_set(err, DFC_LOCAL, E_IMAGE_CHANGED,
                       "file '%s' changed while it was burned: burn again when nothing writes it",
                       f->path);
}

/* Up to `room` bytes; 0 at the file's end. */
static ssize_t read_some(int fd, const struct local_file *f, void *to, size_t room,
                         struct dfc_error *err)
{
    ssize_t n;
    do
        n = read(fd, to, room);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        failure_errno(err, errno, "read '%s'", f->path);
    return n;
}

static int open_file(const struct local_file *f, struct dfc_error *err)
{
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        failure_errno(err, errno, "open '%s'", f->path);
    return fd;
}

static int digest_fd(struct local_file *f, int fd, struct dfc_error *err)
{
    struct checksum_value value;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_SHA256);
    _cleanup_free_ char *piece = xmalloc(PIECE);
    uint64_t size = 0;
    for (ssize_t n; (n = read_some(fd, f, piece, PIECE, err)) != 0; size += (uint64_t)n) {
        if (n < 0)
            return DFC_LOCAL;
        checksum_update(sum, piece, (size_t)n);
    }
    if (size != f->size)
        return changed(f, err);
    checksum_final(sum, &value);
    memcpy(f->sha256, value.bytes, sizeof f->sha256);
    f->known = true;
    return DFC_OK;
}

int local_digest(struct local_file *f, struct dfc_error *err)
{
    _cleanup_close_ int fd = open_file(f, err);
    return fd < 0 ? DFC_LOCAL : digest_fd(f, fd, err);
}

void local_body_init(struct local_body *b, const struct local_file *const *files, size_t count,
                     bool padded)
{
    *b = (struct local_body){.files = files, .count = count, .padded = padded, .fd = -1};
}

static void close_file(struct local_body *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
    checksum_free(b->sum);
    b->sum = NULL;
    b->done = 0;
}

void local_body_done(struct local_body *b)
{
    close_file(b);
}

uint64_t local_body_size(const struct local_body *b)
{
    uint64_t size = 0;
    for (size_t i = 0; i < b->count; i++)
        size += b->padded ? packs_room(b->files[i]->size) : b->files[i]->size;
    return size;
}

static int check_end(struct local_body *b, const struct local_file *f)
{
    struct checksum_value value;
    char more;
    const ssize_t n = read_some(b->fd, f, &more, 1, &b->failure);
    if (n < 0)
        return DFC_LOCAL;
    checksum_final(b->sum, &value);
    return n > 0 || memcmp(value.bytes, f->sha256, sizeof f->sha256) != 0 ? changed(f, &b->failure)
                                                                          : DFC_OK;
}

/* The file's last bytes are given only if they make it what it was. */
static ptrdiff_t read_file(struct local_body *b, const struct local_file *f, void *to, size_t room)
{
    const uint64_t left = f->size - b->done;
    ssize_t n = read_some(b->fd, f, to, left < room ? (size_t)left : room, &b->failure);
    if (n < 0)
        return -1;
    if (n == 0) {
        changed(f, &b->failure);
        return -1;
    }
    checksum_update(b->sum, to, (size_t)n);
    b->done += (uint64_t)n;
    return b->done == f->size && check_end(b, f) != DFC_OK ? -1 : n;
}

static bool begin_file(struct local_body *b, const struct local_file *f)
{
    if (b->fd >= 0)
        return true;
    b->fd = open_file(f, &b->failure);
    if (b->fd < 0)
        return false;
    b->sum = checksum_new(CHECKSUM_SHA256);
    return f->size > 0 || check_end(b, f) == DFC_OK;
}

ptrdiff_t local_body_read(void *body, void *to, size_t room)
{
    struct local_body *b = body;
    while (b->at < b->count) {
        const struct local_file *f = b->files[b->at];
        const uint64_t whole = b->padded ? packs_room(f->size) : f->size;
        if (!begin_file(b, f))
            return -1;
        if (b->done < f->size)
            return read_file(b, f, to, room);
        if (b->done < whole) {
            const size_t n = whole - b->done < room ? (size_t)(whole - b->done) : room;
            memset(to, 0, n);
            b->done += n;
            return (ptrdiff_t)n;
        }
        close_file(b);
        b->at++;
    }
    return 0;
}

int local_body_rewind(void *body)
{
    struct local_body *b = body;
    close_file(b);
    b->at = 0;
    return 0;
}
