/* The listeners of a proxy: public, intra-control, and S3 where it has a port. */
#pragma once

#include "common/error.h"

struct proxy;

/* The last step of a start.  proxy_free() ends them, also after an error. */
int listeners_start(struct proxy *p, struct error *err);
