/* GET of an object that is in slices: they are read together in a thread of their own, which waits
 * for the client, and the bytes go by a pipe.  The reply begins with the first of them, so that
 * what cannot be read is an error, and no reply that is cut. */
#pragma once

#include "target/store/object.h"

struct object_call;
struct read_range;

/* Takes the call over; `head` puts the reply's headers.  A HEAD gets these alone. */
void ec_read_reply(struct object_call *call, const struct object *o, const struct read_range *range,
                   void (*head)(const struct object_call *call, const struct attr *a,
                                const struct read_range *range));
