/* Calls of one thread that end before their time: of programs that answer to somebody else, who may
 * have gone. */
#pragma once

#include <stdbool.h>

/* From now on the calls of this thread, of any client, end with DFC_CANCELLED soon after
 * interrupted() returns true: within a second.  The thread asks it often.  NULL: no more. */
void client_interruptible(bool (*interrupted)(void *context), void *context);

/* What calls of this thread ask while they wait. */
bool client_is_interruptible(void);
bool client_is_interrupted(void);
