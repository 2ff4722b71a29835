/* What a name stands for where this target, which acts for it, may lack something: all who may have
 * it are asked, the greatest version is brought here, and sent to each active owner that has less.
 *
 * Until all have it the name is marked as unsettled here, so that nobody is answered from it.
 *
 * Waits; in the name's turn (copies.h). */
#pragma once

#include "cluster/state.h"
#include "common/error.h"

struct object_held;
struct target;

/* E_NODE_UNREACHABLE: somebody who may have it could not be asked, or could not be sent it.
 * E_CORRUPT: nobody has its bytes any more; *lost, unless NULL, says what the name stands for. */
int copies_compare_all(struct target *t, const struct cluster_state *s, const struct bucket *b,
                       const char *name, struct object_held *lost, struct error *err);
