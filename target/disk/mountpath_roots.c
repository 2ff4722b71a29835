#include "target/disk/mountpath_roots.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

static bool has_control(const char *path)
{
    for (; *path != '\0'; path++) {
        if ((unsigned char)*path < ' ' || *path == 0x7f)
            return true;
    }
    return false;
}

static int check_text(const char *path, struct error *err)
{
    if (*path != '/')
        return error_set(err, E_INVALID, "'%s' is no absolute path", path);
    if (has_control(path))
        return error_set(err, E_INVALID, "the path has a control character");
    return 0;
}

/* The parent must be there; *absent: the directory itself is not. */
static int resolve(const char *path, char **real, bool *absent, struct error *err)
{
    _cleanup_free_ char *plain = xstrdup(path);
    for (size_t len = strlen(plain); len > 1 && plain[len - 1] == '/'; len--)
        plain[len - 1] = '\0';
    *real = realpath(plain, NULL);
    *absent = *real == NULL;
    if (!*absent)
        return 0;
    if (errno != ENOENT)
        return error_errno(err, errno, "resolve '%s'", plain);
    char *slash = strrchr(plain, '/');
    _cleanup_free_ char *name = xstrdup(slash + 1);
    slash[slash == plain ? 1 : 0] = '\0';
    _cleanup_free_ char *parent = realpath(plain, NULL);
    if (parent == NULL)
        return error_set(err, E_NOT_FOUND, "'%s' cannot be made: make its parent, '%s', first",
                         path, plain);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return error_set(err, E_INVALID, "'%s' does not end in a name", path);
    *real = xprintf("%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
    return 0;
}

static bool is_below(const char *real, const char *root)
{
    _cleanup_free_ char *resolved = realpath(root, NULL);
    if (resolved == NULL)
        return false; /* a root that is not there (yet) */
    size_t len = strcmp(resolved, "/") == 0 ? 0 : strlen(resolved);
    return strncmp(real, resolved, len) == 0 && real[len] == '/' && real[len + 1] != '\0';
}

/* A piece of a list up to the next comma, without blanks around it; *list goes on behind it. */
static char *take_piece(const char **list)
{
    const char *from = *list + strspn(*list, " \t");
    size_t len = strcspn(from, ",");
    *list = from + len + (from[len] == ',' ? 1 : 0);
    while (len > 0 && (from[len - 1] == ' ' || from[len - 1] == '\t'))
        len--;
    return xstrndup(from, len);
}

static void cut_to_parent(char *path)
{
    for (size_t len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    else
        *path = '\0';
}

/* Takes the path. */
static char *make_absolute(char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return path;
    _cleanup_free_ char *given = path;
    _cleanup_free_ char *here = realpath(".", NULL);
    return here != NULL ? xprintf("%s/%s", strcmp(here, "/") == 0 ? "" : here, given) : xstrdup("");
}

static bool has_piece(const char *list, const char *piece)
{
    while (*list != '\0') {
        _cleanup_free_ char *one = take_piece(&list);
        if (strcmp(one, piece) == 0)
            return true;
    }
    return false;
}

char *mountpath_roots_in_force(const char *roots, const char *mountpaths)
{
    bool parents = roots[0] == '\0';
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    for (const char *list = parents ? mountpaths : roots; *list != '\0';) {
        _cleanup_free_ char *root = make_absolute(take_piece(&list));
        if (parents)
            cut_to_parent(root);
        if (root[0] != '\0' && !has_piece(buf_str(&out), root))
            buf_printf(&out, "%s%s", buf_str(&out)[0] != '\0' ? "," : "", root);
    }
    return xstrdup(buf_str(&out));
}

static int check_is_below(const char *roots, const char *found, struct error *err)
{
    for (const char *list = roots; *list != '\0';) {
        _cleanup_free_ char *root = take_piece(&list);
        if (root[0] == '/' && is_below(found, root))
            return 0;
    }
    return error_set(err, E_INVALID,
                     "'%s' is below none of the target's mountpath_roots (%s): start the target "
                     "with other --mountpath-roots",
                     found, roots[0] != '\0' ? roots : "there are none");
}

int mountpath_roots_check(const char *roots, const char *path, bool create, char **real,
                          struct error *err)
{
    bool absent = false;
    _cleanup_free_ char *found = NULL;
    int code = check_text(path, err);
    if (code == 0)
        code = resolve(path, &found, &absent, err);
    if (code == 0)
        code = check_is_below(roots, found, err);
    if (code == 0 && absent && !create)
        code = error_set(err, E_NOT_FOUND,
                         "'%s' does not exist: mount the disk first, or repeat with --create to "
                         "make the directory",
                         found);
    if (code == 0)
        *real = steal(found);
    return code;
}
