/* The members of a cache group at one moment, and who owns a piece: pure.
 *
 * The owner is the best member by weighted HRW of those that are present.  So the pieces of a
 * member that is away are the next one's in rank, and all others stay where they are; when it is
 * back, it has its own again.  The earlier owner is the best one by the map before the last
 * changes: without members that came within settle_ms, and with the weights from before.  A member
 * that lacks a piece asks there first.
 *
 * A map is made of the primary's document (docs/reference/http-api.md, cache_group_get).  While a
 * primary has listened for less than away_ms, it may not have heard of all: members that the last
 * map had are kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/piece.h"
#include "common/error.h"

#define GROUP_MEMBERS_MAX 1000

struct group_member {
    char *id, *url;
    bool away;
    uint32_t weight; /* 0: it owns nothing */
    uint32_t earlier_weight;
    uint64_t present_ms; /* without a pause */
};

struct group_map {
    unsigned refs;
    size_t count;
    struct group_member members[GROUP_MEMBERS_MAX];
    struct hrw_node *now, *earlier; /* of each member */
};

/* With one reference.  before: the last map, or NULL.  E_JSON: what is wrong with the document. */
int group_map_parse(const char *text, const struct group_map *before, struct group_map **out,
                    struct error *err);
struct group_map *group_map_ref(struct group_map *m);
void group_map_unref(struct group_map *m); /* NULL is fine */

/* NULL: no member is present; a map may be NULL. */
const struct group_member *group_map_owner(const struct group_map *m, const struct piece_id *id);
/* Who had the piece before the last changes, if that is not `self`; else NULL. */
const struct group_member *group_map_earlier(const struct group_map *m, const struct piece_id *id,
                                             const char *self);
