/* Does this target act for a name, and what must it have compared before it does?  By the state in
 * force, which may be another the next moment: who decides by it asks again before it is seen
 * (copies/write.c). */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"
#include "common/error.h"

struct owners;
struct target;

/* Did the map let in this run? */
bool copies_is_let_in(const struct target *t, const struct cluster_state *s);
/* May this target lack something of the name? */
bool copies_must_compare(const struct target *t, const struct cluster_state *s,
                         const struct bucket *b, const struct owners *o, const char *name);
/* E_STALE_MAP: another does; E_NODE_UNREACHABLE: nobody does. */
int copies_check_acting(const struct target *t, const struct owners *o, const char *name,
                        struct error *err);
/* The state in force, and copies_check_acting() by it.  *s is a reference, also after an error. */
int copies_take_state(struct target *t, uint64_t bucket_id, const char *name,
                      const struct cluster_state **s, const struct bucket **b, struct owners *o,
                      struct error *err);
