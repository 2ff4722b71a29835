/* info: what a mount says of a path, by the path's attributes user.dfc.*. */
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

#define OWN "user.dfc."
#define TRIES 8 /* an attribute may grow while it is read */

/* Both calls of an attribute: with no room they tell the size.  NULL with errno. */
static char *read_all(const char *path, const char *name, size_t *size)
{
    for (unsigned i = 0; i < TRIES; i++) {
        ssize_t n = name != NULL ? getxattr(path, name, NULL, 0) : listxattr(path, NULL, 0);
        if (n < 0)
            return NULL;
        char *text = xmalloc((size_t)n + 1);
        n = name != NULL ? getxattr(path, name, text, (size_t)n) : listxattr(path, text, (size_t)n);
        if (n >= 0) {
            text[n] = '\0';
            *size = (size_t)n;
            return text;
        }
        free(text);
        if (errno != ERANGE)
            return NULL;
    }
    return NULL;
}

int program_info(const struct options *o)
{
    size_t size, value_size;
    bool found = false;
    _cleanup_free_ char *names = read_all(o->directory, NULL, &size);
    if (names == NULL && mounts_is_dead(errno))
        return mounts_say_dead(o->directory);
    if (names == NULL)
        return program_fail(errno == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_FAILED, "'%s': %s",
                            o->directory, strerror(errno));
    for (const char *at = names; at < names + size; at += strlen(at) + 1) {
        if (strncmp(at, OWN, strlen(OWN)) != 0)
            continue;
        _cleanup_free_ char *value = read_all(o->directory, at, &value_size);
        if (value == NULL && errno != ENODATA)
            return program_fail(PROGRAM_FAILED, "'%s': %s: %s", o->directory, at, strerror(errno));
        if (value != NULL)
            printf("%-10s  %s\n", at + strlen(OWN), value);
        found = true;
    }
    if (!found)
        return program_fail(PROGRAM_NOT_FOUND, "'%s' is not below a mounted bucket", o->directory);
    return PROGRAM_OK;
}
