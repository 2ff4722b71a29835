/* Files with keys or secrets, of which a process demands that others cannot read them.
 *
 *   owner          mode
 *   the process's  0600 at most
 *   root           0640 at most: a secret that is mounted for the group of a daemon
 *   any other      0600 at most, and the process is root's, as dfcctl with a daemon's key */
#pragma once

#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"

/* Pure.  May a file of this owner and mode hold a secret of a process that runs as `self`? */
int secret_file_check_mode(uid_t owner, mode_t mode, uid_t self, struct error *err);
/* Appends the whole file, at most 64 KiB.  Owner and mode are those of the file that was opened, so
 * that nobody can put another one in its place.  The caller wipes the text, also after an error. */
int secret_file_read(const char *path, struct buf *out, struct error *err);
