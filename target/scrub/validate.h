/* Does a target's index say what its files say, and are the files what they were stored as?
 *
 *   each file    its attribute can be read, its length is the attribute's, it lies where its name
 *                belongs, and the index has it so; with `checksums` its bytes are read, too
 *   each name    of the index has a file
 *
 * Everything goes on meanwhile.  Without a lock index and file may differ for a moment, while a
 * change is made.  So what looks like a difference is looked at once more under the name's lock,
 * and only then is one.
 *
 * A *validation* changes nothing.  A *scrub* does something about what it finds:
 *
 *   damaged, or in another's place    moved aside (quarantine.h); a good copy is asked for
 *   gone, or not given by the disk    a good copy is asked for
 *   a row of the index                says what the file says again
 *   quarantined earlier               a good copy is asked for again
 *
 * and it is made for long runs: it goes on where it was after a restart (scrub_cursor.h) and when
 * the mountpaths have changed, keeps no set of mountpaths from being closed, reads when the disk
 * has nothing else to do, or waits for that for a while before each MiB.
 *
 * The mountpaths are walked side by side, each by one thread of low priority; memory is bounded.  A
 * mountpath that is disabled, or whose index is being made anew, is a finding, since nobody can
 * say. */
#pragma once

#include "target/scrub/validate_config.h"
#include "target/store/job_stop.h"
#include "target/store/validate_report.h"

/* 0 whatever was found; E_ABORTED where it was stopped, or what kept it from looking further. */
int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err);
