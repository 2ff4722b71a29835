/* Internal objects: their names begin with ".dfc-".  Such an object holds a part of other objects,
 * as the contents of images do.  Lists, jobs over a prefix and rules of a lifecycle leave internal
 * names out, unless the prefix is internal, too, or the request wants them.  All else has them. */
#pragma once

#include <stdbool.h>
#include <string.h>

#define INTERNAL_PREFIX ".dfc-"

/* A name, or a prefix of names. */
static inline bool name_is_internal(const char *name)
{
    return strncmp(name, INTERNAL_PREFIX, sizeof INTERNAL_PREFIX - 1) == 0;
}
