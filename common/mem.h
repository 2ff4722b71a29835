/* malloc and friends that end the program (with a line on stderr) instead of returning NULL:
 * for small, bounded allocations, where no caller could do anything better.  What a peer or a
 * user can make large goes through malloc() and an error. */
#pragma once

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xaligned(size_t alignment, size_t size); /* of whole alignments, each a power of two */
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text); /* NULL stays NULL */
char *xstrndup(const char *text, size_t len);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
