/* The kernel's table of mounts (proc(5), /proc/self/mountinfo). */
#pragma once

#include <stdbool.h>

#define MOUNTS_TYPE "fuse.dfc"

/* The type and the source of what is mounted at the path, the topmost; malloc'ed.  table: the
 * file's text.  Pure. */
bool mounts_find(const char *table, const char *path, char **type, char **source);

/* Is a bucket mounted there?  The path is absolute and without links. */
bool mounts_has(const char *path);

/* What calls on a mount fail with that no process serves any more. */
bool mounts_is_dead(int errnum);
int mounts_say_dead(const char *path); /* what to do then; an exit code */

/* The source of a file system of this type that is mounted there; malloc'ed, NULL: none. */
char *mounts_source(const char *path, const char *type);

/* The path without links, malloc'ed, also of a mount whose process has died; NULL with errno. */
char *mounts_path(const char *directory);
