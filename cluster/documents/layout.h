/* Unfinished moves: the earlier sets of owners that the map remembers.
 *
 *   placed    the version of the map with which the present set of owners began
 *   earlier   the sets before it, oldest first, until what lay by them lies by the present one
 *
 * When a command changes who owns (a target joins, is put into maintenance, comes back from it, has
 * another weight), the old set is remembered; when a rebalance that ran by the present set is
 * through, all are forgotten (CMD_MOVES_DONE).  Until then an object may lie with its owner by the
 * present set, or by one of the earlier ones; layout_ask() says whom a target has to ask before it
 * may say what an object is, or change it:
 *
 *   a miss, a write   every other earlier owner that is still in the map
 *   a hit             nobody, unless this target was an owner before: then all of them, too.  (What
 *                     it has may be from any of the sets by which it owned the name, also where it
 *                     owned it again later: until a rebalance is through nothing need have been
 *                     moved to it.  What others have was written by them as the present owner, or
 *                     moved to them by who knew the present owners, and then was the greatest
 *                     version that there was.)
 *
 * That a node is removed from the map for good moves no name but its own, and what only it had is
 * given up: nothing is remembered for that, and it is asked no more.
 *
 * Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/smap.h"

enum { LAYOUTS_MAX = 16 };

/* What is in its new place stays in its old one for keep_ms (the setting rebalance_keep), and a
 * page of a list is read within this (proxy/list/merge.h says what follows). */
static inline uint64_t layout_page_ms(uint64_t keep_ms)
{
    return keep_ms / 2;
}

/* The map that follows `old` by a command: does it change who owns?  Then `next` says since when,
 * and remembers the old set (with `remember`).  E_OVERLOAD where it would remember more than
 * LAYOUTS_MAX. */
int layout_follow(const struct smap *old, struct smap *next, bool remember, struct error *err);
/* `to` remembers what `from` does. */
void layout_copy(const struct smap *from, struct smap *to);
void layout_forget(struct smap *m);

static inline bool layout_is_settled(const struct smap *m)
{
    return m->earlier_count == 0;
}

/* Whom `self` has to ask about an object: each node once, those of later sets first; room for
 * LAYOUTS_MAX * n.  `n`: how many owners an object has; `hit`: self has the object, or its
 * tombstone. */
size_t layout_ask(const struct smap *m, uint64_t bucket_id, const char *object, size_t n,
                  const char *self, bool hit, const struct node **out);

/* The `n` owners by the earlier set with this index, those of them that are still in the map, best
 * first.  Returns how many. */
size_t layout_owners(const struct smap *m, size_t set, uint64_t bucket_id, const char *object,
                     size_t n, const struct node **out);

/* What a map has beside its nodes: {"placed": 7, "earlier": [{"number": 3, "targets": [{"id": "t1",
 * "weight": 1024}]}], "lagged": 9} */
json_t *layout_to_json(const struct smap *m);
/* Of an object with these fields, which may be absent. */
int layout_from_json(json_t *doc, struct smap *out, struct error *err);
/* What brings the layout of `from`, which `m` has, to that of `to`: the same fields, but "earlier":
 * "same" for the same sets, which may have a thousand names. */
json_t *layout_delta(const struct smap *from, const struct smap *to);
int layout_patch(json_t *doc, struct smap *m, struct error *err);
