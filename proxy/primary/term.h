/* How a term begins: pure.
 *
 * A proxy that is elected loads the documents, looks whether they lead on from what it has seen
 * itself (a metastore may have been emptied, put back, or be another cluster's), and commits the
 * command that begins its term upon them. */
#pragma once

#include "cluster/command/command.h"

/* May a proxy that holds `now` (an empty cluster id: it has seen none) begin upon `found` (NULL:
 * the metastore, which is at `place`, has no documents)?  E_WRONG_CLUSTER, E_STALE_MAP. */
int term_check_base(const struct cluster_state *now, const struct cluster_state *found,
                    const char *place, struct error *err);
/* The command; it borrows `self`.  `revision` makes the term greater than those before; `imported`:
 * the documents were brought by an operator, which begins a new epoch. */
struct command term_begin(const struct cluster_state *base, const struct node *self,
                          uint64_t revision, bool imported, int64_t wall_ms);
