/* Batches: many objects, members and ranges in one reply, as an archive in the order asked for.
 *
 *   client ◀─ tar ─ a batch's thread ◀─ pipe ─ GET of an entry at its owner      (its turn)
 *                                    ◀─ pipe ─ GET of the next one at its owner  (ahead)
 *                                    ◀─ pipe ─ …
 *
 * Any target assembles a batch.  It asks the owners of as many entries ahead as fit in
 * `batch_window`, one pipe each (batch_fetch.h), so that its memory is bounded whatever is asked
 * for.  An entry is whole in the archive, or the reply is cut: it cannot look complete.
 *
 * A call waits in one thread of the class BATCH until its client has all; `batches_max` bounds
 * them, and what waits for one of them. */
#pragma once

#include "net/http/handler.h"

struct batches;
struct target;

extern const struct http_route batch_routes[];

int batches_new(struct target *t, struct batches **out, struct error *err);
/* Those under way are cut.  Before the servers wait for their requests.  NULL is fine. */
void batches_stop(struct batches *b);
/* After the servers, and before the client that reads from owners.  NULL is fine. */
void batches_free(struct batches *b);
