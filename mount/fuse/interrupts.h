/* Who waits for the cluster in a call that changes nothing need not wait if it is killed: the calls
 * to the cluster end, and so does the program.  Other signals do not count, since programs do not
 * expect EINTR of lookups and lists.  Without a look at the program, as in another namespace of
 * processes, any signal counts after a second.
 *
 *     interrupts_begin(req, session)
 *     the call
 *     interrupts_end()         before the reply
 *
 * The end of the session ends such calls, too. */
#pragma once

#include <fuse_lowlevel.h>
#include <stdbool.h>

void interrupts_begin(fuse_req_t req, struct fuse_session *session);
void interrupts_end(void);

/* Is the thread being killed?  By its /proc/TID/status (proc(5)).  Pure. */
bool interrupts_parse_killed(const char *status);
