/* Where an operator may attach a mountpath: in directories that whoever starts the target has named
 * (or that it uses already), so that a call cannot make the daemon write anywhere else. */
#pragma once

#include "common/error.h"

/* `path`, for which only the last component may be missing, resolved: *real, malloc'ed, lies in one
 * of `roots` (directories, separated by commas; "": the parents of `mountpaths`, another such list,
 * but for "/").  E_INVALID: it does not, is not absolute, or has a control character; E_NOT_FOUND:
 * its parent is missing. */
int mountpath_roots_check(const char *roots, const char *mountpaths, const char *path, char **real,
                          struct error *err);
