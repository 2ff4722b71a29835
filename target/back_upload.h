/* One upload of what is pending: back.h. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct target;

/* Blocks.  0: there is nothing more to be done here, whatever was; else it is to be tried again. */
int back_upload(struct target *t, uint64_t bucket_id, const char *name, struct error *err);
