/* Reading the index of a disk that may be dying.  LMDB reads through memory: a block that cannot be
 * read is a SIGBUS, and one that never comes is a thread that hangs.  So a child of this process
 * reads, and is ended when it takes too long. */
#pragma once

#include "target/index/index.h"

/* Cuts the index in `dir` off from its disk, before it is closed or read by a child: memory that
 * would be written to the files becomes this process's own.  Nobody else uses the index. */
void index_child_cut_off(const char *dir);

/* index_sum() over all buckets.  E_IO where the index cannot be read, E_TIMEOUT. */
int index_child_sum(struct index *x, const char *dir, uint64_t timeout_ms, uint64_t *objects,
                    uint64_t *bytes, struct error *err);
