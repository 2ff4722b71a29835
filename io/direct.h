/* A file that is written once, from its beginning to its end, past the page cache (O_DIRECT).
 *
 * What nobody reads soon needs no pages: none are found for it, filled, and flushed again, and what
 * others have in memory stays there.  The disk has its bytes when a write returns, but only a sync
 * makes them durable.
 *
 * A write goes past the page cache where its bytes are aligned in memory and in the file, as far as
 * they are whole blocks of DIRECT_BLOCK.  From the first byte on that is not, or that the file
 * system refuses to take so, all goes through the page cache.  Fault point: disk.write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define DIRECT_BLOCK 4096

struct direct {
    int fd;  /* its owner's */
    bool on; /* so far everything went past the page cache */
};

/* The file is empty.  Where it is not wanted, or the file system has no such writes, all goes
 * through the page cache. */
void direct_begin(struct direct *d, int fd, bool wanted);
/* All of them, at the file's end. */
int direct_write(struct direct *d, const void *data, size_t len, struct error *err);
/* The same of bytes that the file `from` has at `offset`: the file system shares or copies them
 * where it can; else `data` is written.  Fault point: disk.copy, of that attempt. */
int direct_copy(struct direct *d, int from, uint64_t offset, const void *data, size_t len,
                struct error *err);
/* The descriptor is an ordinary one again. */
void direct_end(struct direct *d);
