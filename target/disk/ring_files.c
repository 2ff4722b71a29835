#include "target/disk/ring_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "ring/segment.h"
#include "target/disk/mountpath.h"

enum { DEPTH = 2 }; /* ring/<bucket id>/<lane>/ */

/* An empty one may be left of a push that found no room. */
static int count_file(int dir, const char *name, uint64_t *files, struct error *err)
{
    struct stat st;
    uint64_t first;
    if (!segment_name_parse(name, &first))
        return 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "look at '%s'", name);
    *files += st.st_size > 0;
    return 0;
}

/* Directories and files may go meanwhile. */
static int count_below(const char *path, unsigned depth, uint64_t *files, struct error *err)
{
    DIR *dir = opendir(path);
    const struct dirent *e;
    int code = 0;
    if (dir == NULL)
        return errno == ENOENT || errno == ENOTDIR ? 0 : error_errno(err, errno, "open '%s'", path);
    while (code == 0 && (errno = 0, e = readdir(dir)) != NULL) {
        if (*e->d_name == '.')
            continue;
        if (depth == DEPTH) {
            code = count_file(dirfd(dir), e->d_name, files, err);
        } else {
            _cleanup_free_ char *below = xprintf("%s/%s", path, e->d_name);
            code = count_below(below, depth + 1, files, err);
        }
    }
    if (code == 0 && errno != 0)
        code = error_errno(err, errno, "read '%s'", path);
    closedir(dir);
    return code;
}

int ring_files_count(const struct mountpath *mp, uint64_t *files, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/ring", mp->path);
    *files = 0;
    return count_below(path, 0, files, err);
}
