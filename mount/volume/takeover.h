/* A process goes on with the session of one that has died.
 *
 * Commits of the dead process may still be on their way to the engine.  So each
 * lane gets a commit of this process, as after a commit without a reply
 * (lanes.h): what comes later is refused. */
#pragma once

#include "mount/volume/volume_parts.h"

/* 0: v has the session with its lanes.  E_NOT_FOUND: other clients gave it up.
 */
int takeover_session(struct volume *v, uint64_t session, struct error *err);
