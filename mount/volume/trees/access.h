/* May a caller do it?  For calls on whole trees, which the kernel does not look into.  Pure. */
#pragma once

#include <stdbool.h>

#include "mount/volume/attr.h"
#include "mount/volume/trees/trees.h"

enum access_wanted { ACCESS_SEARCH = 1, ACCESS_WRITE = 2, ACCESS_READ = 4 };

/* wanted: bits of enum access_wanted.  caller NULL: the volume itself, which may all. */
bool access_may(const struct attr *a, const struct volume_caller *caller, unsigned wanted);
/* Take a name of the inode `a` out of the directory: also by the rule of the sticky bit. */
bool access_may_remove(const struct attr *directory, const struct attr *a,
                       const struct volume_caller *caller);
