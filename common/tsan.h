/* What the thread sanitizer is told.
 *
 * An order that it cannot see, as of messages through the kernel: what a thread did before
 * tsan_before(x) comes before all that another does after tsan_after(x).
 *
 * For tests that try very many points, as every write that may fail.  The thread sanitizer makes
 * them ten times slower, and finds races, which are the same at the next point: a test takes one
 * point of TSAN_STRIDE there, and all of them in the other builds.  Of cases in a table by another
 * table, as scenarios by fault points, it takes one of TSAN_CASES, which divides the length of
 * neither: so each row of both is met. */
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define TSAN_STRIDE 4
#define TSAN_CASES 5
#define tsan_before(x) __tsan_release(x)
#define tsan_after(x) __tsan_acquire(x)
#else
#define TSAN_STRIDE 1
#define TSAN_CASES 1
#define tsan_before(x) (void)(x)
#define tsan_after(x) (void)(x)
#endif
