/* Names of any length in LMDB, whose keys have at most 511 bytes, in bytewise order.
 *
 * A key is a node (u64, big-endian) and up to 503 bytes of name.  Bucket b is node b.  What is left
 * of a name at a node is either short and stands there as it is (a leaf), or has 503 bytes or more:
 * then its first 503 bytes are the key of a link to a node of its own, where the rest goes on.
 *
 *     (bucket 7)   "a"                    leaf
 *                  "xxx… 503 bytes"       link ──▶ (node 2^63+1)   ""      leaf: just those 503
 *                  "y"                    leaf                     "tail"  leaf
 *
 * Leaves have at most 502 bytes, links exactly 503, so that the two never meet in one key; and
 * because a link's key is a prefix of all names behind it, walking the tree depth first gives
 * the names in order.  Names of 1024 bytes need three levels.  A node that becomes empty goes
 * away with its link. */
#pragma once

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TREE_CHUNK = 503,
    TREE_KEY_MAX = 8 + TREE_CHUNK,
    TREE_LEVELS = 3,
    TREE_NAME_MAX = TREE_LEVELS * TREE_CHUNK - 1, /* more than a name's 1024 */
};

/* Nodes from here on are the tree's own; bucket ids are below. */
#define TREE_NODE_FIRST ((uint64_t)1 << 63)
/* Not names, but marks of names that are gone (tree_mark_gone()). */
#define TREE_NODE_GONE (UINT64_MAX - 1)

struct tree_key {
    unsigned char bytes[TREE_KEY_MAX];
    size_t len;
};

void tree_key_set(struct tree_key *k, uint64_t node, const char *rest, size_t len);
/* Is this key of LMDB's in `node`?  Then *rest, *len is what follows the node. */
bool tree_key_in_node(const MDB_val *key, uint64_t node, const char **rest, size_t *len);
/* The node of a key of LMDB's; UINT64_MAX where it has none. */
uint64_t tree_key_node(const MDB_val *key);
/* The node that a link leads to: 0 or MDB_CORRUPTED. */
int tree_link_node(const MDB_val *value, uint64_t *node);

/* All return 0 or LMDB's error. */
/* flags: 0, or MDB_NOOVERWRITE. */
int tree_put(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name, MDB_val *value,
             unsigned flags);
int tree_delete(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name);
/* Deletes up to *budget names of the node, which is counted down; something is left if it ends 0.
 */
int tree_drop(MDB_txn *txn, MDB_dbi dbi, uint64_t node, size_t *budget);
/* A mark for a name, by its 128-bit hash; tree_drop(TREE_NODE_GONE) takes all of them away. */
int tree_mark_gone(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name);
int tree_is_gone(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name, bool *gone);
