#include "target/jobs/promote_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

const char *promote_walk_below(const char *root, const char *path)
{
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    if (strncmp(path, root, len) != 0)
        return NULL;
    return path[len] == '/' ? path + len + 1 : path[len] == '\0' ? path + len : NULL;
}

/* --- a directory ------------------------------------------------------------------------------ */

struct names {
    char *list[PROMOTE_BATCH];
    size_t count;
};

static void names_drop(struct names *n)
{
    while (n->count > 0)
        free(n->list[--n->count]);
}

static int names_give(const struct promote_walk *w, int dir, const char *below, struct names *n,
                      struct error *err)
{
    int code = n->count > 0 ? w->files(w->ctx, dir, below, n->list, n->count, err) : 0;
    names_drop(n);
    return code;
}

static void refuse(const struct promote_walk *w, const char *below, const char *name, int code,
                   const char *why)
{
    struct error err = ERROR_INIT;
    error_set(&err, code, "%s", why);
    w->other(w->ctx, below, name, &err);
}

static int walk_dir(const struct promote_walk *w, int dir, const char *below, struct error *err);

/* One that cannot be opened keeps nobody from the others. */
static int walk_below(const struct promote_walk *w, int dir, const char *below, const char *name,
                      struct error *err)
{
    struct error why = ERROR_INIT;
    if (strlen(below) + strlen(name) + 1 > PROMOTE_BELOW_MAX) {
        refuse(w, below, name, E_NAME, "its path is longer than the name of an object");
        return 0;
    }
    int fd = openat(dir, name, DIR_FLAGS);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0) {
        error_errno(&why, errno, "open directory '%s'", name);
        w->other(w->ctx, below, name, &why);
        return 0;
    }
    _cleanup_free_ char *next = xprintf("%s%s/", below, name);
    return walk_dir(w, fd, next, err);
}

static int take_entry(const struct promote_walk *w, int dir, const char *below, const char *name,
                      struct names *n, struct error *err)
{
    struct error why = ERROR_INIT;
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return 0;
        error_errno(&why, errno, "look at '%s'", name);
        w->other(w->ctx, below, name, &why);
        return 0;
    }
    if (S_ISDIR(st.st_mode))
        return walk_below(w, dir, below, name, err);
    if (!S_ISREG(st.st_mode)) {
        refuse(w, below, name, E_INVALID, "it is no file: links and devices are not followed");
        return 0;
    }
    n->list[n->count++] = xstrdup(name);
    return n->count == PROMOTE_BATCH ? names_give(w, dir, below, n, err) : 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int walk_entries(const struct promote_walk *w, DIR *d, const char *below, struct error *err)
{
    struct names n = {.count = 0};
    const struct dirent *e;
    int code = 0;
    while (code == 0 && (errno = 0, e = readdir(d)) != NULL) {
        if (!is_dots(e->d_name))
            code = take_entry(w, dirfd(d), below, e->d_name, &n, err);
    }
    if (code == 0 && errno != 0)
        code = error_errno(err, errno, "read directory '%s/%s'", w->path, below);
    if (code == 0)
        code = names_give(w, dirfd(d), below, &n, err);
    names_drop(&n);
    return code;
}

/* Takes the descriptor. */
static int walk_dir(const struct promote_walk *w, int dir, const char *below, struct error *err)
{
    DIR *d = fdopendir(dir);
    if (d == NULL) {
        int code = error_errno(err, errno, "read directory '%s/%s'", w->path, below);
        close(dir);
        return code;
    }
    int code = walk_entries(w, d, below, err);
    closedir(d);
    return code;
}

/* --- the way there ---------------------------------------------------------------------------- */

/* *dir, which is the caller's, is replaced by the directory `name` in it; -1: there is none. */
static int step_into(int *dir, const char *name, struct error *err)
{
    int next = openat(*dir, name, DIR_FLAGS);
    int errnum = errno;
    close(*dir);
    *dir = next;
    if (next >= 0 || errnum == ENOENT)
        return 0;
    if (errnum == ELOOP || errnum == ENOTDIR)
        return error_set(err, E_INVALID, "the path leads through '%s', which is no directory",
                         name);
    return error_errno(err, errnum, "open directory '%s'", name);
}

/* A file, or a directory, or nothing. */
static int walk_end(const struct promote_walk *w, int dir, const char *name, struct error *err)
{
    struct names n = {.list = {xstrdup(name)}, .count = 1};
    struct stat st;
    int code = 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        code = errno == ENOENT ? 0 : error_errno(err, errno, "look at '%s'", w->path);
    else if (S_ISREG(st.st_mode))
        code = names_give(w, dir, "", &n, err);
    else if (!S_ISDIR(st.st_mode))
        code = error_set(err, E_INVALID, "'%s' is neither a file nor a directory", w->path);
    else if ((code = step_into(&dir, name, err)) == 0 && dir >= 0) {
        code = walk_dir(w, dir, "", err);
        dir = -1;
    }
    names_drop(&n);
    cleanup_close_(&dir);
    return code;
}

int promote_walk(const struct promote_walk *w, struct error *err)
{
    const char *below = promote_walk_below(w->root, w->path);
    if (below == NULL)
        return error_set(err, E_INVALID, "'%s' is not below '%s' (promote_root)", w->path, w->root);
    int dir = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_errno(err, errno, "open promote_root '%s'", w->root);
    if (*below == '\0')
        return walk_dir(w, dir, "", err);
    _cleanup_free_ char *parts = xstrdup(below);
    char *rest = parts, *part = strsep(&rest, "/");
    int code = 0;
    for (; rest != NULL && code == 0 && dir >= 0; part = strsep(&rest, "/"))
        code = step_into(&dir, part, err);
    if (code == 0 && dir >= 0)
        return walk_end(w, dir, part, err);
    cleanup_close_(&dir);
    return code;
}
