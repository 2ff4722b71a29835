/* One process at a time in a directory.  The lock is the kernel's (flock): it ends with the
 * process, however that ends.  The file holds the process id, for people; a full disk leaves it
 * empty.  A symbolic link in its place is refused: the file that it leads to would be emptied. */
#pragma once

#include "common/error.h"

/* The descriptor holds the lock until it is closed.  E_EXISTS, naming the process, where another
 * one has it. */
int lock_file_take(const char *path, int *fd, struct error *err);
