/* Locks that this client has: after a process has taken over. */
#pragma once

#include "mount/volume/volume_parts.h"

/* Finds the inodes with locks of this session.  0, or a code with its error. */
int locks_recover(struct volume *v, struct error *err);
