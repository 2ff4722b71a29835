/* What a follower does next to be a member of its cluster: pure (proxy/primary/follower.c makes the
 * calls).
 *
 *            start                    answer
 *   JOINING ───────▶ register ──────────────────▶ MEMBER ──▶ keepalive ─┬─ same version: wait
 *      ▲                                             ▲                  ├─ newer: fetch the state
 *      └──────── 404: the primary does not know us ──┴──────────────────┘
 *
 * What fails is tried again at the next tick; every other time where --join says. */
#pragma once

#include <stdbool.h>

struct follower_plan {
    bool member;
    bool use_join; /* ask where --join says */
};

enum follower_call { FOLLOWER_NOTHING, FOLLOWER_REGISTER, FOLLOWER_KEEPALIVE, FOLLOWER_FETCH };

/* At a tick. */
enum follower_call follower_plan_call(const struct follower_plan *p);
/* A call has ended with this code; `newer`: a keepalive's answer names a newer state.  What is to
 * be called at once. */
enum follower_call follower_plan_ended(struct follower_plan *p, enum follower_call call, int code,
                                       bool newer);
