/* stats: the metrics of a mount, which its root has as an attribute. */
#include "mount/program/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/program/mounts.h"
#include "mount/program/options.h"

#define ATTRIBUTE "user.dfc.stats"
#define MOST (64u << 10) /* of an attribute (xattr(7)) */

int program_stats(const struct options *o)
{
    _cleanup_free_ char *path = mounts_path(o->directory);
    if (path == NULL)
        return program_fail(PROGRAM_NOT_FOUND, "'%s': %s", o->directory, strerror(errno));
    if (!mounts_has(path))
        return program_fail(PROGRAM_NOT_FOUND,
                            "no bucket is mounted at '%s', nor an image or a volume", o->directory);
    _cleanup_free_ char *text = xmalloc(MOST);
    ssize_t size = getxattr(path, ATTRIBUTE, text, MOST);
    if (size < 0 && mounts_is_dead(errno))
        return mounts_say_dead(o->directory);
    if (size < 0)
        return program_fail(PROGRAM_FAILED, "'%s': read " ATTRIBUTE ": %s", o->directory,
                            strerror(errno));
    return fwrite(text, 1, (size_t)size, stdout) == (size_t)size && fflush(stdout) == 0
               ? PROGRAM_OK
               : program_fail(PROGRAM_FAILED, "write: %s", strerror(errno));
}
