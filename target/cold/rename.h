/* Rename in a bucket with a backend, of what the backend has:
 *
 *   owner of the old name                   owner of the new name
 *
 *     what is it?  HEAD: its tag, conditions
 *     POST copy_from                     -->    in the new name's turn:
 *                                                 a tombstone over what is here,
 *                                               then the copy, within the backend
 *     in the old name's turn:            <--
 *       is it that still?
 *       a tombstone over what is here,
 *     then the deletion
 *
 * Each name's own owner writes it, in its turn (cold/write.c), so that writes to it reach the
 * backend in order; nobody holds a turn while he waits for another one's.  What was written to the
 * old name in between is seen before it is deleted, and copied again.  The bytes stay where they
 * are, and what was kept here of either name is read anew.
 *
 * The new name's owner is waited for as long as a copy may take that goes on (rename_copy_ms()):
 * one that hangs is then given up, and may carry it out later.
 *
 * A failure leaves the old name, the new one or both, and says which; after the end of a target it
 * is the same: the request is sent again, and 404 then says that all was done. */
#pragma once

#include "common/error.h"
#include "net/http/server.h"

struct object_call;

/* Blocks (a mover).  E_PRECONDITION: the object was written meanwhile, or a condition of the
 * request does not hold. */
int cold_rename(struct object_call *call, struct error *err);
/* Waits for the writes of the name that have come before, and for the name's lock. */
int cold_await_writes(const struct object_call *call, struct error *err);

/* POST from another target, and from this one: copy_from. */
void cold_copy_begin(struct http_request *req);
