/* One upload of what is pending: back.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct target;

/* Blocks.  0: there is nothing more to be done here, whatever was; else it is to be tried again,
 * and *of_backend says whether the backend has refused it, which it may do with all names, or what
 * concerns this one alone. */
int back_upload(struct target *t, uint64_t bucket_id, const char *name, bool *of_backend,
                struct error *err);
