#include "cluster/placement/protection.h"

#include "cluster/placement/lag.h"
#include "cluster/documents/layout.h"
#include "cluster/placement/copies_reduce.h"

static size_t count_owners(const struct cluster_state *s)
{
    size_t owners = 0;
    for (size_t i = 0; i < s->smap.count; i++)
        owners += node_owns(&s->smap.nodes[i]);
    return owners;
}

/* A slice is on a target of its own. */
static size_t targets_needed(const struct bucket *b)
{
    return b->props.ec_data > 0 ? b->props.ec_data + b->props.ec_parity : b->props.copies;
}

static bool all_have_all(const struct cluster_state *s, const struct bucket *b)
{
    size_t whole = 0, owners = count_owners(s);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        whole +=
            n->state == NODE_ACTIVE && node_owns(n) && node_is_present(n) && n->lag != LAG_MISSED;
    }
    return whole == owners && owners >= targets_needed(b) && b->filled == b->props.copies &&
           layout_is_settled(&s->smap);
}

/* What it has, or may still have, is not to be had. */
static bool is_missed(const struct cluster_state *s, const struct node *n)
{
    return n->role == NODE_TARGET && !node_is_present(n) &&
           (node_owns(n) || !layout_is_settled(&s->smap));
}

static bool any_missed(const struct cluster_state *s)
{
    bool missed = false;
    for (size_t i = 0; i < s->smap.count; i++)
        missed = missed || is_missed(s, &s->smap.nodes[i]);
    return missed;
}

enum protection protection_of(const struct cluster_state *s, const struct bucket *b)
{
    bool away = any_missed(s);
    bool one = b->props.copies == 1;
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) == 0 ||
        (away && (one || !lag_spares_an_owner(s, b))))
        return PROTECTION_UNAVAILABLE;
    if (one)
        return PROTECTION_ONE_COPY;
    return all_have_all(s, b) ? PROTECTION_WHOLE : PROTECTION_DEGRADED;
}

const char *protection_name(enum protection p)
{
    static const char *const names[PROTECTIONS] = {
        [PROTECTION_ONE_COPY] = "one_copy",
        [PROTECTION_WHOLE] = "protected",
        [PROTECTION_DEGRADED] = "degraded",
        [PROTECTION_UNAVAILABLE] = "unavailable",
    };
    return names[p];
}

static void next_reason(struct buf *out)
{
    if (out->len > 0)
        buf_puts(out, "; ");
}

static const char *what_ails(const struct cluster_state *s, const struct node *n, bool several)
{
    if (n->state == NODE_UNREACHABLE)
        return "is unreachable";
    if (is_missed(s, n))
        return n->state == NODE_ACTIVE ? "serves no copies until it reports all its disks"
                                       : "does not answer, and the rebalance waits for what it has";
    return several && n->state == NODE_ACTIVE && n->lag == LAG_MISSED
               ? "lacks writes that it missed, which a repair brings"
               : NULL;
}

static void say_copies(const struct cluster_state *s, const struct bucket *b, struct buf *out)
{
    size_t owners = count_owners(s);
    if (owners < targets_needed(b)) {
        next_reason(out);
        buf_printf(out, "%zu %s are asked for, and there %s %zu target%s", targets_needed(b),
                   b->props.ec_data > 0 ? "slices" : "copies", owners == 1 ? "is" : "are", owners,
                   owners == 1 ? "" : "s");
        if (owners <= b->props.ec_data)
            buf_puts(out, ": too few to store a large object");
    }
    if (b->filled < b->props.copies) {
        next_reason(out);
        buf_printf(out, "copies were raised from %u to %u, and a repair is to make them", b->filled,
                   b->props.copies);
    }
    if (bucket_has_surplus(b)) {
        next_reason(out);
        buf_printf(out, "copies were lowered from %u to %u, and the others are to be removed",
                   b->lowered_from, b->props.copies);
    }
    if (!layout_is_settled(&s->smap)) {
        next_reason(out);
        buf_puts(out, "objects are being moved to other targets");
    }
}

void protection_why(const struct cluster_state *s, const struct bucket *b, struct buf *out)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        const char *what = n->role == NODE_TARGET ? what_ails(s, n, bucket_has_copies(b)) : NULL;
        if (what == NULL)
            continue;
        next_reason(out);
        buf_printf(out, "target '%s' %s", n->id, what);
    }
    if (bucket_has_copies(b))
        say_copies(s, b, out);
    if (out->len == 0 && smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) == 0)
        buf_puts(out, "there is no active target");
}
