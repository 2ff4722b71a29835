/* The rights that a removal one by one would need, looked at before a tree is moved as a whole. */
#pragma once

#include "mount/volume/trees/trees.h"

/* Below the directory `top`.  0, EACCES, EINTR; after an error `at` is the name.  What other
 * clients change meanwhile is not seen. */
int rights_check_below(struct volume *v, const struct volume_inode *top, const char *name,
                       const struct volume_caller *caller, char at[static META_NAME_MAX + 1]);
