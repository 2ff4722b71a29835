/* A check of a volume's metadata: do names, counters, lists and queues agree?
 *
 * All keys are read, a page at a time.  Of a volume that is in use the pages are of different
 * moments: so what a first check finds is true only if a second one finds it again
 * (check_keep_common()). */
#pragma once

#include "mount/volume/check/findings.h"
#include "mount/volume/format.h"

/* check_done() is due in any case. */
int check_run(struct check *c, struct meta *m, const struct volume_format *f, struct error *err);
