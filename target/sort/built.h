/* Which outputs of a sort this target has finished, and of which order each is
 * (sort/task/resume.h), for a later life of it: the file `built` of the job's directory, to which
 * each is added when it is finished.
 *
 *     for each   8 bytes: length of what follows
 *                struct entry: order, size, checksum; name
 *                8 bytes: XXH3
 *
 * That an output stands is said by its file, not by this list: it counts where the job hides an
 * object of that name, size and checksum.  So what was made of another order, taken back or lost
 * with a disk since is not taken for it, and neither is one whose entry a crash has cut short.
 * Without a checksum none is, nor any after a loss of power (crash_state.h). */
#pragma once

#include "sort/base/env.h"
#include "target/sort/part.h"

/* It is finished here.  Any thread. */
int sort_built_add(const struct sort_part *p, const char *name, const struct sort_digest *order,
                   struct error *err);
/* The orders of those that stand. */
int sort_built_each(const struct sort_part *p,
                    void (*each)(void *arg, const struct sort_digest *order), void *arg,
                    struct error *err);
