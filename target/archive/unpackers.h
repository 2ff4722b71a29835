/* Replies with members that must be unpacked (member_unpack.h): a thread of the class UNPACKER does
 * so, and waits for its client.  The reply begins with the first bytes, so that what cannot be read
 * is an error, and no reply that is cut; what is found later cuts it. */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "target/store/object.h"

struct member_place;
struct object_call;
struct read_range;
struct reader;
struct target;
struct unpackers;

int unpackers_new(struct target *t, struct unpackers **out, struct error *err);
/* Those under way are cut.  Before the servers wait for their requests.  NULL is fine. */
void unpackers_stop(struct unpackers *u);
void unpackers_free(struct unpackers *u); /* after the servers; NULL is fine */

/* Other work on archives that takes as long as its client does: fn(arg) runs in one of the threads,
 * and asks now and then whether it must end.  E_OVERLOAD. */
int unpackers_submit(struct unpackers *u, void (*fn)(void *arg), void *arg, struct error *err);
bool unpackers_are_stopping(const struct unpackers *u);

/* Takes the call over, and the open object.  `range` is of the member; `head` puts the reply's
 * headers.  The reader is shared. */
void unpackers_reply(struct unpackers *u, struct object_call *call, const struct object *o,
                     struct reader *reader, const struct member_place *m,
                     const struct read_range *range,
                     void (*head)(const struct object_call *call, const struct attr *a,
                                  const struct read_range *range));
