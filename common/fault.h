/* Named fault points: places where a test can make the world fail.
 *
 *     int e = fault_errno("disk.write");       // 0, or the errno to pretend
 *     if (e != 0) return error_errno(err, e, ...);
 *
 * Points are rows of fault.def (POINT(name, where it is and what it breaks)).  They are armed by
 * the parameter `faults` (or DFC_FAULTS), e.g. "disk.write=EIO@3,net.send=cut@64k,sort.merge=kill":
 *
 *     name=EXXX      every pass fails with this errno
 *     name=EXXX@N    only the N-th pass (counting from 1)
 *     name=EXXX@N+   the N-th pass and all later ones
 *     name=kill[@N]  the process kills itself with SIGKILL (a crash at exactly this point)
 *     name=delay:MS  the pass waits MS milliseconds first; also delay:MS@N, delay:MS@N+
 *     name=hold:DIR  the pass waits as long as the directory DIR has a file named like its place;
 *                    also hold:DIR@N, hold:DIR@N+
 *     net.*=cut@64k  the byte-counting points: the stream is cut after so many bytes
 *     sync.*=skip    the points that can be left out (also index.intend): nothing is done, and it
 *                    is said to be well
 *     clock.*=ahead:MS, clock.*=behind:MS   the clock is wrong by so much
 *     name[TEXT]=…   only where the place (a path, say) has TEXT; others do not count as passes
 *
 * With nothing armed a pass costs one relaxed load. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

extern atomic_bool fault_armed;

/* Arms exactly what the spec says and counts passes anew; "" or NULL disarms all.  A bad spec
 * changes nothing. */
int fault_configure(const char *spec, struct error *err);
int fault_pass(const char *point, const char *place); /* use fault_errno, fault_errno_at */
uint64_t fault_cut_bytes(const char *point);          /* armed limit, UINT64_MAX when not */
bool fault_skip_pass(const char *point);              /* use fault_skips */
int fault_step_pass(const char *point);               /* use fault_step */
int64_t fault_shift_pass(const char *point);          /* use fault_shift_ms */

static inline int fault_errno(const char *point)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) ? fault_pass(point, "") : 0;
}

static inline int fault_errno_at(const char *point, const char *place)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) ? fault_pass(point, place) : 0;
}

/* Is this pass to be left out, as by a disk that lies? */
static inline bool fault_skips(const char *point)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) && fault_skip_pass(point);
}

/* Of a step that can be left out: 0, an errno to pretend, or FAULT_LEFT_OUT. */
enum { FAULT_LEFT_OUT = -1 };
static inline int fault_step(const char *point)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) ? fault_step_pass(point) : 0;
}

/* By how much a clock is to be wrong: 0 when not armed. */
static inline int64_t fault_shift_ms(const char *point)
{
    return atomic_load_explicit(&fault_armed, memory_order_relaxed) ? fault_shift_pass(point) : 0;
}
