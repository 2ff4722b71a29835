/* How many files the process may have open at once (RLIMIT_NOFILE). */
#pragma once

#include <stdint.h>

/* The soft limit, 1024 as a rule, is for programs that call select(): it becomes the hard one. That
 * it cannot is logged. */
void descriptors_raise(void);
/* A limit below `wanted` is logged, with both numbers and what to do. */
void descriptors_check(uint64_t wanted);
uint64_t descriptors_limit(void); /* the soft one */
