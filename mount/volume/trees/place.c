#include "mount/volume/trees/place.h"

#include <errno.h>

#include "mount/volume/trees/access.h"
#include "mount/volume/trash.h"

int place_check(struct volume *v, uint64_t directory, const char *name,
                const struct volume_caller *caller)
{
    struct attr a;
    struct volume_inode there;
    unsigned wanted = ACCESS_WRITE | ACCESS_SEARCH;
    int rc = volume_lookup(v, directory, name, &there);
    if (rc != -ENOENT)
        return rc == 0 ? -EEXIST : rc;
    for (;; directory = a.parent, wanted = ACCESS_SEARCH) {
        rc = volume_getattr(v, directory, &a);
        if (rc == 0 && !attr_is_directory(&a))
            rc = -ENOTDIR;
        if (rc == 0 && (a.nlink == 0 || trash_has(directory)))
            rc = -ENOENT;
        if (rc == 0 && !access_may(&a, caller, wanted))
            rc = -EACCES;
        if (rc != 0 || directory == VOLUME_ROOT)
            return rc;
    }
}
