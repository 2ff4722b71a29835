/* A step of a ring: this target's lanes report to the keeper, the target that leads the head.  The
 * keeper stores the next head when a generation is full: the swap is one conditional PUT.
 *
 *   lanes ──POST /v1/ring-counts/{bucket id}──▶ keeper ──▶ PUT head, If-Match
 *         ◀── what no kept generation needs ── */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cluster/documents/state.h"
#include "common/error.h"
#include "ring/keeper.h"

struct ring;

/* Waits for peers.  What fails is logged, and tried again by the next step.  *more: another one may
 * find something to do at once. */
int ring_step(struct ring *r, bool *more);
/* A step with a wish, on the keeper alone: E_STALE_MAP elsewhere.  *generation: the last one then.
 * E_NO_GENERATION: a swap of nothing. */
int ring_wish(struct ring *r, enum ring_wish wish, uint64_t *generation, struct error *err);
/* What a group of readers says (ring_keeper_group()), on the keeper alone.  *joined:
 * ring_keeper_joins().  E_INVALID: it acknowledges what is not there; E_OVERLOAD: there
 * are too many groups. */
int ring_group(struct ring *r, const struct ring_group_call *call, uint64_t *generation,
               bool *joined, struct error *err);
/* A call that waits for a generation beyond this one is answered: there is one, or this target is
 * not the keeper. */
bool ring_is_beyond(struct ring *r, uint64_t generation);
/* Why a sample is not where it was, which may take a call to the keeper.  E_GENERATION_GONE: a kept
 * generation has it, and *count from it on; or none has, and *count is 0. */
int ring_why_gone(struct ring *r, const char *lane, uint64_t ordinal, uint64_t *count,
                  struct error *err);
/* Another target's report, and the answer. */
int ring_take_counts(struct ring *r, json_t *doc, json_t **answer, struct error *err);
