/* Who is let in at a target's public listener: by its guard where it asks for proof
 * (access/guard.h), else by its gate (access/exposure_gate.h). */
#pragma once

#include "common/error.h"

struct http_guard;
struct target;

/* Makes t->guard or t->gate; after the state is read. */
int public_guard_start(struct target *t, struct error *err);
/* For http_server_config.guard of the public listener. */
const struct http_guard *public_guard_hook(const struct target *t);
void public_guard_free(struct target *t); /* after the servers */
