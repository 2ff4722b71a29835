/* A member is told to drain: it owns nothing from then on, until its next start. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "mount/group/map.h"

/* E_UNAUTHORIZED: the member has another key; E_NET, E_TIMEOUT: it does not answer. */
int group_drain(const struct group_member *member, const char *key_file, uint64_t timeout_ms,
                struct error *err);
