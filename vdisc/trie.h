/* The addresses of an image as the table has them: an inverted trie (schema: ITrie).  What several
 * addresses begin with is a node, which names its parent; an extent has the number of a node and
 * the rest of its address.  Node 0 is the root, has no text and is its own parent; each other
 * node's number is above its parent's.  The same addresses give the same nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trie_node {
    uint32_t parent;
    const char *text; /* of an address that was given; not NUL-terminated */
    size_t len;
};

/* Where an address is: its node, and what follows. */
struct trie_leaf {
    uint32_t node;
    uint32_t rest; /* offset into the address */
};

struct trie {
    struct trie_node *nodes;
    uint32_t count;
    struct trie_leaf *leaves; /* of each address, in the order given */
};

/* The addresses must outlive the trie. */
void trie_init(struct trie *t, const char *const *addresses, uint32_t count);
void trie_done(struct trie *t);
