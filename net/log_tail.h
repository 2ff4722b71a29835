/* The last lines of the log, in memory: what an operator asks a node for.
 *
 *     log_tail_keep(256 << 10);                  once, at the start; 0: none are kept
 *     log_tail_add(line, len);                   of each line: log_set_copy()
 *     log_tail_read(after, &out, &first)         those later than line number `after`
 *
 * Lines are numbered from 1, in each run of the daemon: log_tail_boot() tells runs apart.  Any
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

void log_tail_keep(size_t bytes);
/* With its newline.  One that is longer than all that may be kept is not kept. */
void log_tail_add(const char *line, size_t len);
/* Appends the lines to `out`; returns the number of the last one, or `after` if there is none.
 * *first: the number of the first line that is kept; those before have made room. */
uint64_t log_tail_read(uint64_t after, struct buf *out, uint64_t *first);
/* 16 hex digits: the same for the life of the process, others after a restart. */
const char *log_tail_boot(void);
