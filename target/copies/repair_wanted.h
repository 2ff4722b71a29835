/* A good copy of an object is wanted: the one that was here is damaged or gone.  Who finds that
 * says so here: the scrub (validate.h), a read that checks what it sends, another owner that has
 * got damaged bytes.  Where there are several copies a good one is brought (read_repair.h); where
 * there is one, and no backend, the object is lost (unrecoverable.h). */
#pragma once

#include <stdint.h>

struct target;

/* Any thread; does not wait, and may be under the name's lock.  Saying it again is fine.  It counts
 * (repairs_wanted_total). */
void repair_wanted(struct target *t, uint64_t bucket_id, const char *name);
