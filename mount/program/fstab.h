/* mount(8) calls mount.dfc for lines of /etc/fstab of the type dfc:
 *
 *     mount.dfc dfc://BUCKET[/PREFIX] DIR [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTION,…]
 *
 * An option NAME or NAME=VALUE is the flag --NAME or --NAME=VALUE; `rw` is --writable.  Pure.
 *
 * mount(8) calls it for `-o remount`, too.  The options are those that the mount has then. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* Is the program called by such a name? */
bool fstab_is_helper(const char *program);

struct fstab_words {
    char **argv; /* as dfc-mount takes it, with a NULL behind */
    int argc;
    bool fake;             /* -f: nothing is to be mounted */
    bool remount;          /* -o remount: what is mounted becomes writable, or read-only */
    bool read_only;        /* of a remount, whose other options stay as they are */
    const char *directory; /* NULL: the line has none */
};

/* 0, or a code of error.def. */
int fstab_parse(int argc, char *const *argv, struct fstab_words *out, struct error *err);
void fstab_done(struct fstab_words *words);
