/* For tests that try very many points, as every write that may fail.  The thread sanitizer makes
 * them ten times slower, and finds races, which are the same at the next point: a test takes one
 * point of TSAN_STRIDE there, and all of them in the other builds.  Of cases in a table by another
 * table, as scenarios by fault points, it takes one of TSAN_CASES, which divides the length of
 * neither: so each row of both is met. */
#pragma once

#ifdef __SANITIZE_THREAD__
#define TSAN_STRIDE 4
#define TSAN_CASES 5
#else
#define TSAN_STRIDE 1
#define TSAN_CASES 1
#endif
