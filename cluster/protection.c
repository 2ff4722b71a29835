#include "cluster/protection.h"

#include "cluster/lag.h"
#include "cluster/layout.h"

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
        whole += node_owns(n) && n->state == NODE_ACTIVE && n->lag != LAG_MISSED;
    }
    return whole == owners && owners >= targets_needed(b) && b->filled == b->props.copies &&
           layout_is_settled(&s->smap);
}

enum protection protection_of(const struct cluster_state *s, const struct bucket *b)
{
    bool away = smap_count(&s->smap, NODE_TARGET, NODE_UNREACHABLE) > 0;
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

static void say_node(const struct node *n, bool several, struct buf *out)
{
    if (n->state == NODE_UNREACHABLE) {
        next_reason(out);
        buf_printf(out, "target '%s' is unreachable", n->id);
    } else if (several && n->state == NODE_ACTIVE && n->lag == LAG_MISSED) {
        next_reason(out);
        buf_printf(out, "target '%s' is to be given what it has missed", n->id);
    }
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
    if (!layout_is_settled(&s->smap)) {
        next_reason(out);
        buf_puts(out, "objects are being moved to other targets");
    }
}

void protection_why(const struct cluster_state *s, const struct bucket *b, struct buf *out)
{
    for (size_t i = 0; i < s->smap.count; i++) {
        if (s->smap.nodes[i].role == NODE_TARGET)
            say_node(&s->smap.nodes[i], b->props.copies > 1, out);
    }
    if (b->props.copies > 1)
        say_copies(s, b, out);
}
