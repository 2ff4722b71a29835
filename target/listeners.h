/* The listeners of a target: public, intra-control, intra-data, and S3 where it has a port. */
#pragma once

#include "common/error.h"

struct target;

/* The last step of a start; also after an error target_listeners_free() ends them. */
int target_listen(struct target *t, struct error *err);
/* Waits for requests that are under way. */
void target_listeners_free(struct target *t);
