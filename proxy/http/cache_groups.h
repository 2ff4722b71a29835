/* The cache groups that this primary has heard of: who is a member, and since when.
 *
 * Members are soft state.  Each one reports every few seconds; nothing is written to the documents.
 * A primary that begins knows no member, and hears of all within one interval of their reports.  It
 * says for how long it has listened (`age_ms`), so that readers keep the members that they know
 * until all had time to report.
 *
 *     report ─▶ present ── silent for away_ms, or it leaves ─▶ away ── for settle_ms ─▶ forgotten
 *                  ▲                                             │
 *                  └────────────────── report ───────────────────┘
 *
 * Bounded; what is silent for settle_ms makes room.  The clock is the caller's.  Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum {
    CACHE_GROUPS_MAX = 64,
    CACHE_MEMBERS_MAX = 1000, /* of a group */
    CACHE_WORD_MAX = 64,      /* of names, with their end */
    CACHE_URL_MAX = 280,
};

struct cache_groups;

struct cache_groups *cache_groups_new(void);
void cache_groups_free(struct cache_groups *g); /* NULL is fine */

struct cache_times {
    uint64_t away_ms;   /* a member that is silent for so long is not asked */
    uint64_t settle_ms; /* and after so long it is no member any more */
};

struct cache_report {
    const char *group, *id;
    const char *boot; /* of this run of the member */
    const char *url;  /* where readers reach it */
    uint32_t weight;  /* its share of the pieces; not 0 */
    bool drains, leaves;
};

/* E_INVALID: a field; E_EXISTS: a present member of another address has this id; E_OVERLOAD: there
 * are too many. */
int cache_groups_report(struct cache_groups *g, const struct cache_report *r,
                        const struct cache_times *times, uint64_t now_ms, struct error *err);
/* E_INVALID: no group can have this name. */
int cache_groups_check_name(const char *group, struct error *err);
/* The group's document, also of a group that nobody has heard of:
 *
 *     {"group", "age_ms", "away_ms", "settle_ms", "members": [{"id", "url", "state": "present" or
 *      "away", "weight" (0: it drains), "earlier_weight", "present_ms", "silent_ms"}]}
 *
 * earlier_weight: before a change within settle_ms, or of one that drains.  present_ms: for how
 * long it has been present without a pause. */
json_t *cache_groups_show(struct cache_groups *g, const char *group,
                          const struct cache_times *times, uint64_t now_ms);
