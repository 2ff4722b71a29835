/* Addresses are sorted.  A range of them that begins alike, longer than what is known of it, is a
 * node; then the range is parted by the next byte, and each part is looked at in turn (breadth
 * first, so that a parent's number is below its children's). */
#include "vdisc/trie.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "vdisc/text_order.h"

struct range {
    uint32_t from, to; /* of the sorted addresses */
    uint32_t parent;
    size_t depth; /* bytes that the parent's text ends at */
};

struct building {
    struct trie *trie;
    const char *const *addresses;
    uint32_t *sorted;
    uint32_t room;
    struct range *queue;
    size_t queue_count, queue_room;
};

static const char *address_of(const void *context, uint32_t i)
{
    const char *const *addresses = context;
    return addresses[i];
}

static int compare(const void *context, uint32_t a, uint32_t b)
{
    return strcmp(address_of(context, a), address_of(context, b));
}

static const char *address(const struct building *b, uint32_t i)
{
    return b->addresses[b->sorted[i]];
}

/* Of the whole range: its ends are the ones that differ most. */
static size_t common_length(const struct building *b, const struct range *r)
{
    const char *first = address(b, r->from), *last = address(b, r->to - 1);
    size_t n = r->depth;
    while (first[n] != '\0' && first[n] == last[n])
        n++;
    return n;
}

static uint32_t add_node(struct building *b, uint32_t parent, const char *text, size_t len)
{
    struct trie *t = b->trie;
    if (t->count == b->room) {
        b->room = b->room * 2 + 16;
        t->nodes = xrealloc(t->nodes, b->room * sizeof *t->nodes);
    }
    t->nodes[t->count] = (struct trie_node){.parent = parent, .text = text, .len = len};
    return t->count++;
}

static void add_range(struct building *b, struct range r)
{
    if (b->queue_count == b->queue_room) {
        b->queue_room = b->queue_room * 2 + 16;
        b->queue = xrealloc(b->queue, b->queue_room * sizeof *b->queue);
    }
    b->queue[b->queue_count++] = r;
}

static void set_leaves(struct building *b, const struct range *r)
{
    for (uint32_t i = r->from; i < r->to; i++)
        b->trie->leaves[b->sorted[i]] =
            (struct trie_leaf){.node = r->parent, .rest = (uint32_t)r->depth};
}

/* The end of the addresses that have the same byte at r->depth as the one at `from`. */
static uint32_t end_of_part(const struct building *b, const struct range *r, uint32_t from)
{
    const unsigned char byte = (unsigned char)address(b, from)[r->depth];
    uint32_t low = from + 1, high = r->to;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((unsigned char)address(b, middle)[r->depth] == byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void part(struct building *b, struct range r)
{
    size_t common = common_length(b, &r);
    if (common > r.depth) {
        r.parent = add_node(b, r.parent, address(b, r.from) + r.depth, common - r.depth);
        r.depth = common;
    }
    for (uint32_t from = r.from; from < r.to;) {
        uint32_t to = end_of_part(b, &r, from);
        struct range below = {from, to, r.parent, r.depth};
        bool equal = strcmp(address(b, from), address(b, to - 1)) == 0;
        if (equal)
            set_leaves(b, &below);
        else
            add_range(b, below);
        from = to;
    }
}

void trie_init(struct trie *t, const char *const *addresses, uint32_t count)
{
    const struct text_order order = {.text = address_of, .compare = compare, .context = addresses};
    struct building b = {.trie = t, .addresses = addresses};
    *t = (struct trie){.leaves = xcalloc((size_t)count + 1, sizeof *t->leaves)};
    b.sorted = text_order_make(&order, count);
    add_node(&b, 0, "", 0);
    if (count > 0)
        add_range(&b, (struct range){.to = count});
    for (size_t i = 0; i < b.queue_count; i++)
        part(&b, b.queue[i]);
    free(b.queue);
    free(b.sorted);
}

void trie_done(struct trie *t)
{
    free(t->nodes);
    free(t->leaves);
    *t = (struct trie){0};
}
