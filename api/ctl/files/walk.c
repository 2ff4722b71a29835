#include "api/ctl/files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/mem.h"

/* Directories nested deeper than this are reported: a mount loop, hardly a dataset. */
#define DEPTH_MAX 128

static bool walk_level(const char *directory, const char *below, unsigned depth,
                       const struct walk_visitor *v);

static void problem_errno(const struct walk_visitor *v, const char *path, int errnum)
{
    struct error e;
    error_errno(&e, errnum, "cannot be read");
    v->problem(v->context, path, &e);
}

static void problem_kind(const struct walk_visitor *v, const char *path, const struct stat *st,
                         bool link)
{
    struct error e;
    const char *kind = S_ISDIR(st->st_mode)    ? "a symbolic link to a directory"
                       : S_ISFIFO(st->st_mode) ? "a pipe"
                       : S_ISSOCK(st->st_mode) ? "a socket"
                                               : "a device";
    error_set(&e, E_INVALID, "it is %s%s, not a file", link ? "(a link to) " : "", kind);
    v->problem(v->context, path, &e);
}

static bool walk_entry(const char *path, const char *below, unsigned depth,
                       const struct walk_visitor *v)
{
    struct stat own, st;
    if (lstat(path, &own) != 0 || stat(path, &st) != 0) {
        problem_errno(v, path, errno);
        return true;
    }
    if (S_ISREG(st.st_mode))
        return v->file(v->context, path, below, (uint64_t)st.st_size);
    if (S_ISDIR(own.st_mode))
        return walk_level(path, below, depth + 1, v);
    problem_kind(v, path, &st, S_ISLNK(own.st_mode) && !S_ISDIR(st.st_mode));
    return true;
}

static int not_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int bytewise(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool walk_level(const char *directory, const char *below, unsigned depth,
                       const struct walk_visitor *v)
{
    struct dirent **entries = NULL;
    bool go_on = true;
    if (depth > DEPTH_MAX) {
        problem_errno(v, directory, ELOOP);
        return true;
    }
    int n = scandir(directory, &entries, not_dots, bytewise);
    if (n < 0) {
        problem_errno(v, directory, errno);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        _cleanup_free_ char *path = xprintf("%s/%s", directory, name);
        _cleanup_free_ char *rest =
            below[0] != '\0' ? xprintf("%s/%s", below, name) : xstrdup(name);
        go_on = go_on && walk_entry(path, rest, depth, v);
        free(entries[i]);
    }
    free(entries);
    return go_on;
}

bool walk_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void walk_directory(const char *directory, const struct walk_visitor *v)
{
    walk_level(directory, "", 0, v);
}
