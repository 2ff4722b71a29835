/* A dump as a file that gzip has compressed: a stream to write it, and one to read it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* At the descriptor's place; it is borrowed.  fclose() writes the end, and fails if that does.
 * stops: not NULL: writes fail with ECANCELED once it returns true. */
FILE *dump_file_write(int fd, bool (*stops)(void *context), void *context);
/* Compressed or not: the content decides.  From the descriptor's place, which is the beginning for
 * rewind(); the descriptor is borrowed. */
FILE *dump_file_read(int fd);
