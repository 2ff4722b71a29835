/* Files of samples of rings on a mountpath (target/ring/lane.h).  They are on no other disk, and
 * are not moved: they go when no kept generation needs them. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct mountpath;

int ring_files_count(const struct mountpath *mp, uint64_t *files, struct error *err);
