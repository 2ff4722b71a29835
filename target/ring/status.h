/* What the keeper of a ring knows: for clients, and for the metrics of this target. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/error.h"
#include "ring/keeper.h"

struct ring;

/* By which the keeper decides. */
struct ring_rules ring_rules_of(const struct ring *r, const struct bucket *b);

/* Head, fill, lanes.  E_NOT_READY: this target has not loaded the head, or is not the keeper. */
int ring_status(struct ring *r, const struct bucket *b, json_t **out, struct error *err);

/* Sums over rings.  All but `bytes` are of rings whose keeper this target is. */
struct ring_totals {
    uint64_t bytes; /* of lanes on this target */
    uint64_t rings, generations, groups;
    uint64_t waiting; /* samples that can be read and are in no generation */
    uint64_t held;    /* rings with a full generation that is held back */
};
void ring_add_totals(struct ring *r, const struct bucket *b, struct ring_totals *sum);
void ring_totals_show(const struct ring_totals *sum); /* as gauges */
