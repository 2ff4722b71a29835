#include "mount/volume/trees/access.h"

#include <sys/stat.h>

static bool is_in_group(const struct volume_caller *caller, uint32_t gid)
{
    bool found = caller->gid == gid;
    for (size_t i = 0; i < caller->group_count && !found; i++)
        found = caller->groups[i] == gid;
    return found;
}

bool access_may(const struct attr *a, const struct volume_caller *caller, unsigned wanted)
{
    if (caller == NULL || caller->uid == 0)
        return true;
    unsigned shift = caller->uid == a->uid ? 6 : is_in_group(caller, a->gid) ? 3 : 0;
    return (a->mode >> shift & wanted) == wanted;
}

bool access_may_remove(const struct attr *directory, const struct attr *a,
                       const struct volume_caller *caller)
{
    if (!access_may(directory, caller, ACCESS_WRITE | ACCESS_SEARCH))
        return false;
    const bool is_sticky = (directory->mode & S_ISVTX) != 0;
    return !is_sticky || caller == NULL || caller->uid == 0 || caller->uid == directory->uid ||
           caller->uid == a->uid;
}
