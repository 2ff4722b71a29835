/* For tests that try very many points, as every write that may fail.  The thread sanitizer makes
 * them ten times slower, and finds races, which are the same at the next point: a test takes one
 * point of TSAN_STRIDE there, and all of them in the other builds. */
#pragma once

#ifdef __SANITIZE_THREAD__
#define TSAN_STRIDE 4
#else
#define TSAN_STRIDE 1
#endif
