/* Slices that nobody knows any more go: of objects that were written over or deleted, and of writes
 * that failed.  A thread of its own looks every `slices_sweep_interval` through what is here; a
 * slice is garbage when it is older than `slices_grace`, and each owner of its name says that its
 * manifest is of another write, or none, and none that a job hides there has it
 * (ec_plan_is_garbage()).  They are asked by the state in force, and who knows other owners does
 * not answer: objects may be on their way to these.  What was found goes only after a second such
 * time, when all say the same again: whoever has begun to read it can go on for so long. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct ec;

int ec_sweep_start(struct ec *e, struct error *err);
/* Somebody has left some, none of them made before that time of the wall clock: looks for these
 * when they are old enough (slices/sweep_timer.h).  Any thread. */
void ec_sweep_soon(struct ec *e, int64_t since_ms);
void ec_sweep_end(struct ec *e); /* after e->stop */
