#include "ring/keeper.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct lane {
    struct ring_report report;
    char node[RING_LANE_MAX];
    uint64_t seen_ms;
    bool is_away;        /* its target's last report did not have it */
    uint64_t drained_ms; /* since when; 0: it is not */
};

struct heard { /* of a group */
    char name[RING_GROUP_MAX];
    uint64_t seen_ms, stored_ms; /* its last call; the last one that a head was stored for, or 0 */
};

struct ring_keeper {
    bool is_loaded;
    struct ring_head head;
    size_t count;
    struct lane *lanes;
    size_t heard_count;
    struct heard heard[RING_GROUPS_MAX]; /* groups of the head */
};

struct ring_keeper *ring_keeper_new(void)
{
    return xcalloc(1, sizeof(struct ring_keeper));
}

void ring_keeper_free(struct ring_keeper *k)
{
    if (k == NULL)
        return;
    ring_head_done(&k->head);
    free(k->lanes);
    free(k);
}

void ring_keeper_load(struct ring_keeper *k, const struct ring_head *head)
{
    const struct ring_head none = {.generation = 0};
    ring_head_done(&k->head);
    ring_head_copy(head != NULL ? head : &none, &k->head);
    k->heard_count = 0; /* this may be a new keeper: leases begin anew */
    k->is_loaded = true;
}

void ring_keeper_unload(struct ring_keeper *k)
{
    k->is_loaded = false;
}

bool ring_keeper_is_loaded(const struct ring_keeper *k)
{
    return k->is_loaded;
}

const struct ring_head *ring_keeper_head(const struct ring_keeper *k)
{
    return &k->head;
}

/* --- reports ---------------------------------------------------------------------------------- */

static struct lane *find(const struct ring_keeper *k, const char *name)
{
    for (size_t i = 0; i < k->count; i++) {
        if (strcmp(k->lanes[i].report.lane, name) == 0)
            return &k->lanes[i];
    }
    return NULL;
}

static struct lane *add(struct ring_keeper *k, const struct ring_report *r)
{
    k->lanes = xrealloc(k->lanes, (k->count + 1) * sizeof *k->lanes);
    struct lane *l = &k->lanes[k->count++];
    *l = (struct lane){.report = *r};
    return l;
}

/* A late report changes nothing that a newer one has said. */
static void merge(struct ring_report *old, const struct ring_report *r)
{
    const bool is_late =
        r->closed ? old->drained && !r->drained : old->closed || r->count < old->count;
    if (!is_late)
        *old = *r;
}

void ring_keeper_report(struct ring_keeper *k, const char *node, const struct ring_report *reports,
                        size_t count, uint64_t now_ms)
{
    for (size_t i = 0; i < k->count; i++) {
        if (strcmp(k->lanes[i].node, node) == 0)
            k->lanes[i].is_away = true;
    }
    for (size_t i = 0; i < count; i++) {
        struct lane *l = find(k, reports[i].lane);
        if (l == NULL)
            l = add(k, &reports[i]);
        else
            merge(&l->report, &reports[i]);
        snprintf(l->node, sizeof l->node, "%s", node);
        l->seen_ms = now_ms;
        l->is_away = false;
        if (l->report.drained && l->drained_ms == 0)
            l->drained_ms = now_ms + 1; /* 0 is none */
    }
}

static uint64_t taken_of(const struct ring_head *h, const struct lane *l)
{
    uint64_t taken;
    return ring_head_taken(h, l->report.lane, &taken) ? taken : l->report.first;
}

static bool counts(const struct ring_rules *r, const struct lane *l, uint64_t now_ms)
{
    return !l->is_away && now_ms - l->seen_ms <= r->fresh_ms;
}

/* Of the report's holes, what is within h. */
static void add_holes(const struct ring_report *r, struct ring_have *h)
{
    for (size_t i = 0; i < r->holes_count; i++) {
        const struct ring_range *hole = &r->holes[i];
        const uint64_t from = hole->from > h->from ? hole->from : h->from;
        const uint64_t to = hole->to < h->to ? hole->to : h->to;
        if (from < to)
            h->holes[h->holes_count++] = (struct ring_range){.from = from, .to = to};
    }
}

/* What the lanes have that no generation has, by this head; the number of samples. */
static uint64_t have_of(const struct ring_keeper *k, const struct ring_head *head,
                        const struct ring_rules *r, bool all, uint64_t now_ms,
                        struct ring_have *out, size_t *count)
{
    uint64_t sum = 0;
    *count = 0;
    for (size_t i = 0; i < k->count; i++) {
        const struct lane *l = &k->lanes[i];
        const uint64_t from = taken_of(head, l);
        if (l->report.count <= from || !(all || counts(r, l, now_ms)))
            continue;
        struct ring_have *h = &out[*count];
        *h = (struct ring_have){.from = from, .to = l->report.count};
        snprintf(h->lane, sizeof h->lane, "%s", l->report.lane);
        add_holes(&l->report, h);
        sum += ring_have_samples(h);
        *count += ring_have_samples(h) > 0;
    }
    return sum;
}

uint64_t ring_keeper_fill(const struct ring_keeper *k, const struct ring_rules *r, uint64_t now_ms)
{
    size_t count;
    _cleanup_free_ struct ring_have *have = xcalloc(k->count + 1, sizeof *have);
    return have_of(k, &k->head, r, false, now_ms, have, &count);
}

/* --- groups ----------------------------------------------------------------------------------- */

/* Its entry; one that this keeper has not heard of is heard now. */
static struct heard *heard_of(struct ring_keeper *k, const char *name, uint64_t now_ms)
{
    for (size_t i = 0; i < k->heard_count; i++) {
        if (strcmp(k->heard[i].name, name) == 0)
            return &k->heard[i];
    }
    struct heard *h = &k->heard[k->heard_count++];
    *h = (struct heard){.seen_ms = now_ms};
    snprintf(h->name, sizeof h->name, "%s", name);
    return h;
}

/* Groups that have left the head. */
static void drop_heard(struct ring_keeper *k)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->heard_count; i++) {
        if (ring_head_group(&k->head, k->heard[i].name) != NULL)
            k->heard[kept++] = k->heard[i];
    }
    k->heard_count = kept;
}

static bool has_lease(struct ring_keeper *k, const struct ring_group *g, uint64_t now_ms)
{
    return now_ms - heard_of(k, g->name, now_ms)->seen_ms <= g->lease_ms;
}

/* A group with a lease has not acknowledged the current generation of this head. */
static bool is_awaited(struct ring_keeper *k, const struct ring_head *head, uint64_t now_ms)
{
    bool is = false;
    for (size_t i = 0; i < head->groups_count; i++) { /* all: each one's lease begins */
        const struct ring_group *g = &head->groups[i];
        is = (has_lease(k, g, now_ms) && g->done < head->generation) || is;
    }
    return is && head->generations_count > 0;
}

/* No group has acknowledged the current generation, which must not be passed over. */
static bool is_unread(const struct ring_head *head, const struct ring_rules *r)
{
    return r->consumed && head->generations_count > 0 && head->consumed < head->generation;
}

static void forget_silent(struct ring_keeper *k, uint64_t now_ms, struct ring_head *next)
{
    for (size_t i = 0; i < k->head.groups_count; i++) {
        const struct ring_group *g = &k->head.groups[i];
        if (!has_lease(k, g, now_ms))
            ring_head_leave_group(next, g->name);
    }
}

/* Nothing is to be stored for the call.  A quarter of the lease is the longest time between two
 * heads that are stored for a group that goes on calling: a keeper that was deposed, and does not
 * hear of these calls, cannot store a head that passes the group over. */
static bool is_renewal(struct heard *h, const struct ring_group *old, const struct ring_group *g,
                       uint64_t now_ms)
{
    const bool is_recent = h->stored_ms != 0 && now_ms - h->stored_ms < g->lease_ms / 4;
    h->seen_ms = now_ms;
    if (!is_recent)
        h->stored_ms = now_ms;
    return is_recent && g->done == old->done && g->lease_ms == old->lease_ms;
}

enum ring_group_reply ring_keeper_group(struct ring_keeper *k, const struct ring_group_call *call,
                                        uint64_t now_ms, struct ring_head *next)
{
    const struct ring_group *old = ring_head_group(&k->head, call->name);
    struct ring_group g = {.done = call->done, .lease_ms = call->lease_ms};
    if (call->done > k->head.generation)
        return RING_GROUP_AHEAD;
    if (old == NULL && call->leaves)
        return RING_GROUP_KNOWN;
    snprintf(g.name, sizeof g.name, "%s", call->name);
    if (old != NULL && g.done < old->done) /* a late call */
        g.done = old->done;
    if (old != NULL && is_renewal(heard_of(k, call->name, now_ms), old, &g, now_ms) &&
        !call->leaves)
        return RING_GROUP_KNOWN;
    ring_head_copy(&k->head, next);
    forget_silent(k, now_ms, next); /* they would keep others out of a ring that has no swaps */
    if (call->leaves) {
        ring_head_leave_group(next, call->name);
    } else if (!ring_head_set_group(next, &g)) {
        ring_head_done(next);
        return RING_GROUP_MANY;
    }
    return RING_GROUP_STORES;
}

bool ring_keeper_joins(const struct ring_keeper *k, const struct ring_group_call *call)
{
    const struct ring_group *old = ring_head_group(&k->head, call->name);
    const uint64_t done = old != NULL && old->done > call->done ? old->done : call->done;
    return !call->leaves && (old == NULL || done + 1 < k->head.generation);
}

/* --- the next head ---------------------------------------------------------------------------- */

static bool is_cut(const struct ring_head *h, const char *lane)
{
    for (size_t i = 0; i < h->generations_count; i++) {
        for (size_t j = 0; j < h->generations[i].count; j++) {
            if (strcmp(h->generations[i].cuts[j].lane, lane) == 0)
                return true;
        }
    }
    return false;
}

static void forget_drained(const struct ring_keeper *k, uint64_t now_ms, struct ring_head *next)
{
    for (size_t i = 0; i < k->count; i++) {
        const struct lane *l = &k->lanes[i];
        if (l->drained_ms != 0 && now_ms >= l->drained_ms + RING_FORGET_MS &&
            !is_cut(next, l->report.lane))
            ring_head_forget(next, l->report.lane);
    }
}

/* What the lanes have no room for; false: they have room. */
static bool drop(const struct ring_keeper *k, const struct ring_rules *r, uint64_t now_ms,
                 const struct ring_have *have, size_t count, struct ring_head *next)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct lane *l = find(k, have[i].lane);
        if (l->report.drop_to <= have[i].from || !counts(r, l, now_ms))
            continue;
        if (!any)
            ring_head_copy(&k->head, next);
        any = true;
        ring_head_drop(next, &have[i], l->report.drop_to);
    }
    return any;
}

static bool set_pause(const struct ring_keeper *k, bool is_paused, struct ring_head *next)
{
    ring_head_copy(&k->head, next);
    next->is_paused = is_paused;
    return true;
}

static bool is_due(struct ring_keeper *k, const struct ring_head *head, const struct ring_rules *r,
                   uint64_t sum, uint64_t now_ms)
{
    return !is_awaited(k, head, now_ms) && sum >= r->cap && !head->is_paused && !is_unread(head, r);
}

static bool seals(struct ring_keeper *k, const struct ring_rules *r, enum ring_wish wish,
                  uint64_t sum, uint64_t now_ms)
{
    return wish == RING_SWAP ? sum > 0
                             : wish == RING_WHEN_FULL && is_due(k, &k->head, r, sum, now_ms);
}

/* `next` has a new generation.  It gets more of them, as long as they are due by it. */
static void seal_more(struct ring_keeper *k, const struct ring_rules *r, uint64_t now_ms,
                      uint64_t wall_ms, struct ring_head *next)
{
    _cleanup_free_ struct ring_have *have = xcalloc(k->count + 1, sizeof *have);
    while (next->generation - k->head.generation < ring_keeper_seals_max(r)) {
        size_t count;
        struct ring_head more;
        const uint64_t sum = have_of(k, next, r, false, now_ms, have, &count);
        if (!is_due(k, next, r, sum, now_ms))
            return;
        ring_head_seal(next, have, count, r->cap, r->keep, wall_ms, &more);
        ring_head_done(next);
        *next = more;
    }
}

unsigned ring_keeper_seals_max(const struct ring_rules *r)
{
    return r->keep < 2 ? 1 : (r->keep + 1) / 2;
}

bool ring_keeper_plan(struct ring_keeper *k, const struct ring_rules *r, enum ring_wish wish,
                      uint64_t now_ms, uint64_t wall_ms, struct ring_head *next)
{
    size_t count;
    _cleanup_free_ struct ring_have *have = xcalloc(k->count + 1, sizeof *have);
    const uint64_t sum = have_of(k, &k->head, r, wish == RING_CLEAR, now_ms, have, &count);
    bool is_next = true;
    if (wish == RING_PAUSE || wish == RING_RESUME)
        is_next = set_pause(k, wish == RING_PAUSE, next);
    else if (wish == RING_CLEAR)
        ring_head_clear(&k->head, have, count, next);
    else if (seals(k, r, wish, sum, now_ms))
        ring_head_seal(&k->head, have, count, sum < r->cap ? sum : r->cap, r->keep, wall_ms, next);
    else
        is_next = wish == RING_WHEN_FULL && drop(k, r, now_ms, have, count, next);
    if (is_next && wish == RING_WHEN_FULL && next->generation > k->head.generation)
        seal_more(k, r, now_ms, wall_ms, next);
    if (is_next) {
        forget_drained(k, now_ms, next);
        forget_silent(k, now_ms, next);
    }
    return is_next;
}

/* Lanes that are gone, and that the head does not have. */
static void drop_forgotten(struct ring_keeper *k)
{
    size_t kept = 0;
    uint64_t taken;
    for (size_t i = 0; i < k->count; i++) {
        if (!k->lanes[i].is_away || ring_head_taken(&k->head, k->lanes[i].report.lane, &taken))
            k->lanes[kept++] = k->lanes[i];
    }
    k->count = kept;
}

void ring_keeper_stored(struct ring_keeper *k, struct ring_head *next)
{
    ring_head_done(&k->head);
    k->head = *next;
    *next = (struct ring_head){.generation = 0};
    drop_forgotten(k);
    drop_heard(k);
}

struct ring_answer ring_keeper_answer(const struct ring_keeper *k, const struct ring_report *r)
{
    uint64_t taken = 0;
    if (!k->is_loaded)
        return (struct ring_answer){.release = 0};
    const bool is_known = ring_head_taken(&k->head, r->lane, &taken);
    return (struct ring_answer){.release = ring_head_release(&k->head, r->lane),
                                .sealed = ring_head_sealed(&k->head, r->lane),
                                .taken = taken,
                                .forget = r->drained && !is_known};
}

size_t ring_keeper_lanes(const struct ring_keeper *k)
{
    return k->count;
}

void ring_keeper_lane(const struct ring_keeper *k, size_t i, struct ring_lane_seen *out)
{
    *out = (struct ring_lane_seen){.report = &k->lanes[i].report, .seen_ms = k->lanes[i].seen_ms};
}
