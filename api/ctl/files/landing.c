#include "api/ctl/files/landing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

#define TEMPORARY_PREFIX ".dfc-"

static int open_temporary(struct landing *l, struct error *err)
{
    char name[sizeof TEMPORARY_PREFIX + 16];
    random_id(TEMPORARY_PREFIX, name);
    l->fd = openat(l->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (l->fd < 0)
        return error_errno(err, errno, "create '%s' in its directory", l->leaf);
    l->temporary = xstrdup(name);
    return 0;
}

/* One directory deeper; the previous descriptor is closed. */
static int enter(int *directory, const char *name, const char *key, struct error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(*directory, name, flags);
    if (next < 0)
        return error_errno(err, errno, "enter directory '%s' of '%s'", name, key);
    close(*directory);
    *directory = next;
    return 0;
}

static int descend(int *directory, const char *name, const char *key, struct error *err)
{
    if (mkdirat(*directory, name, 0777) != 0 && errno != EEXIST)
        return error_errno(err, errno, "make directory '%s' of '%s'", name, key);
    return enter(directory, name, key, err);
}

int landing_open_below(struct landing *l, int root, const char *key, struct error *err)
{
    *l = LANDING_INIT;
    l->directory = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->directory < 0)
        return error_errno(err, errno, "open the directory");
    const char *part = key;
    for (const char *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1) {
        _cleanup_free_ char *name = xstrndup(part, (size_t)(slash - part));
        int rc = descend(&l->directory, name, key, err);
        if (rc != 0)
            return rc;
    }
    l->leaf = xstrdup(part);
    return open_temporary(l, err);
}

static int open_in_place(struct landing *l, const char *path, struct error *err)
{
    l->fd = open(path, O_WRONLY | O_CLOEXEC);
    return l->fd < 0 ? error_errno(err, errno, "open '%s'", path) : 0;
}

int landing_open_path(struct landing *l, const char *path, struct error *err)
{
    struct stat st;
    *l = LANDING_INIT;
    if (path[0] == '\0')
        return error_set(err, E_INVALID, "the path of the file to write is empty");
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return error_errno(err, EISDIR, "write '%s'", path);
    if (exists && !S_ISREG(st.st_mode))
        return open_in_place(l, path, err);
    _cleanup_free_ char *real = exists ? realpath(path, NULL) : xstrdup(path);
    if (real == NULL)
        return error_errno(err, errno, "resolve '%s'", path);
    char *slash = strrchr(real, '/');
    l->leaf = xstrdup(slash != NULL ? slash + 1 : real);
    if (slash != NULL)
        slash[1] = '\0';
    l->directory = open(slash != NULL ? real : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->directory < 0)
        return error_errno(err, errno, "open the directory of '%s'", path);
    return open_temporary(l, err);
}

/* The directory that has the last part of the key. */
static int open_parent(int root, const char *key, int *directory, struct error *err)
{
    _cleanup_close_ int at = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *part = key;
    if (at < 0)
        return error_errno(err, errno, "open the directory");
    for (const char *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1) {
        _cleanup_free_ char *name = xstrndup(part, (size_t)(slash - part));
        int rc = enter(&at, name, key, err);
        if (rc != 0)
            return rc;
    }
    *directory = steal_fd(&at);
    return 0;
}

int landing_directory_below(int root, const char *key, struct error *err)
{
    _cleanup_close_ int directory = -1;
    const char *slash = strrchr(key, '/');
    int rc = open_parent(root, key, &directory, err);
    return rc == 0 ? descend(&directory, slash != NULL ? slash + 1 : key, key, err) : rc;
}

static int replace_link(int directory, const char *leaf, const char *target, const char *key,
                        struct error *err)
{
    char name[sizeof TEMPORARY_PREFIX + 16];
    random_id(TEMPORARY_PREFIX, name);
    if (symlinkat(target, directory, name) != 0)
        return error_errno(err, errno, "make link '%s'", key);
    if (renameat(directory, name, directory, leaf) == 0)
        return 0;
    const int code = error_errno(err, errno, "replace link '%s'", key);
    unlinkat(directory, name, 0);
    return code;
}

int landing_link_below(int root, const char *key, const char *target, struct error *err)
{
    _cleanup_close_ int directory = -1;
    char there[PATH_MAX];
    const char *slash = strrchr(key, '/');
    const char *leaf = slash != NULL ? slash + 1 : key;
    int rc = open_parent(root, key, &directory, err);
    if (rc != 0 || symlinkat(target, directory, leaf) == 0)
        return rc;
    const int errnum = errno;
    const ssize_t n = errnum == EEXIST ? readlinkat(directory, leaf, there, sizeof there) : -1;
    if (n < 0)
        return error_errno(err, errnum, "make link '%s'", key);
    const bool same = (size_t)n == strlen(target) && memcmp(there, target, (size_t)n) == 0;
    return same ? 0 : replace_link(directory, leaf, target, key, err);
}

/* flags: of unlinkat(2). */
static int remove_entry(int root, const char *key, int flags, struct error *err)
{
    _cleanup_close_ int directory = -1;
    const char *slash = strrchr(key, '/');
    int rc = open_parent(root, key, &directory, err);
    if (rc != 0)
        return rc;
    if (unlinkat(directory, slash != NULL ? slash + 1 : key, flags) == 0 || errno == ENOENT)
        return 0;
    return error_errno(err, errno, "remove '%s'", key);
}

int landing_remove_below(int root, const char *key, struct error *err)
{
    return remove_entry(root, key, 0, err);
}

void landing_prune_below(int root, const char *directory)
{
    _cleanup_free_ char *path = xstrdup(directory);
    while (remove_entry(root, path, AT_REMOVEDIR, NULL) == 0) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

/* Without its time the file is right all the same: the next sync reads it. */
static void set_time(const struct landing *l)
{
    const struct timespec time = {.tv_sec = l->modified_ms / 1000,
                                  .tv_nsec = l->modified_ms % 1000 * 1000000};
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time};
    if (l->modified_ms != 0)
        futimens(l->fd, times);
}

int landing_commit(struct landing *l, struct error *err)
{
    set_time(l);
    int fd = steal_fd(&l->fd);
    if (close(fd) != 0 && errno != EINTR)
        return error_errno(err, errno, "write '%s'", l->leaf != NULL ? l->leaf : "the file");
    if (l->temporary == NULL)
        return 0;
    if (renameat(l->directory, l->temporary, l->directory, l->leaf) != 0)
        return error_errno(err, errno, "rename to '%s'", l->leaf);
    free(steal(l->temporary));
    return 0;
}

void landing_done(struct landing *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->temporary != NULL && !l->keep)
        unlinkat(l->directory, l->temporary, 0);
    if (l->directory >= 0)
        close(l->directory);
    free(l->temporary);
    free(l->leaf);
    *l = LANDING_INIT;
}

static int write_all(int fd, const char *path, const char *text, struct error *err)
{
    size_t len = strlen(text);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            return error_errno(err, errno, "write '%s'", path);
        if (n > 0)
            done += (size_t)n;
    }
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        return error_errno(err, errno, "write '%s'", path);
    return 0;
}

int landing_write_private(const char *path, const char *text, struct error *err)
{
    enum { OWNER_ALONE = 0600 };
    struct landing l;
    int r = landing_open_path(&l, path, err);
    if (r == 0 && l.temporary != NULL && fchmod(l.fd, OWNER_ALONE) != 0)
        r = error_errno(err, errno, "chmod '%s'", path);
    if (r == 0)
        r = write_all(l.fd, path, text, err);
    if (r == 0)
        r = landing_commit(&l, err);
    landing_done(&l);
    return r;
}
