/* What a node does next to be a member of its cluster: pure.
 *
 *   registering ── register accepted ──▶ registered ── keepalive every interval ─┐
 *        ▲                                   │  ▲                               │
 *        └── node_not_found, node_state ─────┘  └───────────────────────────────┘
 *
 * It asks one proxy after the other: the present primary first, then whoever else it knows.  While
 * registering, a whole round of refusals is followed by a pause that doubles from 100 ms to 5 s.
 * The first keepalive comes after a tenth of the interval, since its reply brings the lease.  So
 * does the one after a reply that named a newer state than this node has: no lease goes with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/state.h"

struct member_plan {
    bool registered;
    bool behind;     /* the reply named a newer state; whoever reads it sets this */
    size_t next;     /* which candidate to ask */
    unsigned rounds; /* in which nobody took us */
};

enum member_action { MEMBER_REGISTER, MEMBER_KEEPALIVE };

static inline enum member_action member_plan_action(const struct member_plan *p)
{
    return p->registered ? MEMBER_KEEPALIVE : MEMBER_REGISTER;
}

/* The action ended with this code, asked of one of `candidates`: how long to wait before the
 * next. */
uint64_t member_plan_result(struct member_plan *p, int code, size_t candidates,
                            uint64_t keepalive_interval_ms);

/* The least state that somebody waits for; version 0: none. */
struct member_wish {
    uint64_t term, version;
};
/* Of a sender's dfcv ("1.17"); NULL: one that is newer than `now`; what is none: none, for who has
 * sent it is told so by whoever looks at it. */
struct member_wish member_wish(const char *dfcv, const struct cluster_state *now);
bool member_wish_granted(const struct member_wish *w, const struct cluster_state *now);

/* Control URLs to ask, in order, each once: the primary's, those of the other proxies of the map,
 * those of `join` (separated by commas).  The caller frees the array and each text. */
size_t member_candidates(const struct cluster_state *s, const char *join, char ***out);
/* Who may have a newer state: the same, and then the other targets that are active.  A primary that
 * died may have told its last change to one of them alone. */
size_t member_sources(const struct cluster_state *s, const char *join, const char *self,
                      char ***out);
/* One of them, in turn; the array and the others are freed.  NULL where there is none. */
char *member_take_turn(char **urls, size_t count, size_t turn);
