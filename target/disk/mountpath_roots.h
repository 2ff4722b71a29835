/* Where an operator may attach a mountpath: in directories that whoever starts the target has named
 * (or that it uses already), so that a call cannot make the daemon write anywhere else. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* The absolute directories, separated by commas, that `roots` names; "": the parents of
 * `mountpaths`, another such list, but for "/".  Relative ones begin at the working directory.
 * malloc'ed. */
char *mountpath_roots_in_force(const char *roots, const char *mountpaths);

/* `path` resolved: *real, malloc'ed, lies in one of `roots`, which are in force.  create: its last
 * component may be missing, as the caller makes it.  E_INVALID: it does not lie there, is not
 * absolute, or has a control character; E_NOT_FOUND: it or its parent is missing. */
int mountpath_roots_check(const char *roots, const char *path, bool create, char **real,
                          struct error *err);
