/* Files that are open here.  Any client may take away the last name of one.  So each heartbeat
 * looks for open files without a name, and puts an OPEN key for each.  The grace of inodes without
 * a name is at least twice a session's, so the heartbeat comes in time. */
#pragma once

#include "mount/volume/volume_parts.h"

/* Calls between() before each call of the engine: the walk may be longer than a session's life.  An
 * error of between() ends it.  0 or -errno. */
int open_files_keep(struct volume *v, int (*between)(struct volume *v));
