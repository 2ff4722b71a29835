/* Writing to the work files of a sort: room for the bytes first, where the environment asks for it.
 */
#pragma once

#include "sort/base/env.h"

/* All of it.  E_NO_SPACE where there is no room, or the disk is full. */
int work_write(const struct sort_env *env, int fd, const void *data, size_t len, uint64_t at,
               struct error *err);
