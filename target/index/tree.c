#include "target/index/tree.h"

#include <assert.h>

#include <xxhash.h>

static const char next_node_key[] = "\xff\xff\xff\xff\xff\xff\xff\xffnext"; /* node 2^64-1 */

static void store_u64(unsigned char *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> (56 - 8 * i));
}

static uint64_t load_u64(const unsigned char *at)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}

void tree_key_set(struct tree_key *k, uint64_t node, const char *rest, size_t len)
{
    assert(len <= TREE_CHUNK);
    store_u64(k->bytes, node);
    memcpy(k->bytes + 8, rest, len);
    k->len = 8 + len;
}

bool tree_key_in_node(const MDB_val *key, uint64_t node, const char **rest, size_t *len)
{
    if (key->mv_size < 8 || load_u64(key->mv_data) != node)
        return false;
    *rest = (const char *)key->mv_data + 8;
    *len = key->mv_size - 8;
    return true;
}

uint64_t tree_key_node(const MDB_val *key)
{
    return key->mv_size < 8 ? UINT64_MAX : load_u64(key->mv_data);
}

int tree_link_node(const MDB_val *value, uint64_t *node)
{
    if (value->mv_size != 8)
        return MDB_CORRUPTED;
    *node = load_u64(value->mv_data);
    return *node >= TREE_NODE_FIRST && *node < TREE_NODE_GONE ? 0 : MDB_CORRUPTED;
}

static MDB_val val_of(void *data, size_t len)
{
    return (MDB_val){.mv_size = len, .mv_data = data};
}

static int put_u64(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, uint64_t value)
{
    unsigned char bytes[8];
    store_u64(bytes, value);
    MDB_val data = val_of(bytes, sizeof bytes);
    return mdb_put(txn, dbi, key, &data, 0);
}

/* A node number that was never used in this index. */
static int node_new(MDB_txn *txn, MDB_dbi dbi, uint64_t *node)
{
    MDB_val key = val_of((void *)next_node_key, sizeof next_node_key - 1), value;
    int rc = mdb_get(txn, dbi, &key, &value);
    *node = TREE_NODE_FIRST;
    if (rc == 0)
        rc = tree_link_node(&value, node);
    else if (rc == MDB_NOTFOUND)
        rc = 0;
    return rc != 0 ? rc : put_u64(txn, dbi, &key, *node + 1);
}

/* Follows the link at `chunk` (503 bytes) of *node; with `make`, makes it where it is missing. */
static int link_follow(MDB_txn *txn, MDB_dbi dbi, uint64_t *node, const char *chunk, bool make)
{
    struct tree_key k;
    tree_key_set(&k, *node, chunk, TREE_CHUNK);
    MDB_val key = val_of(k.bytes, k.len), value;
    int rc = mdb_get(txn, dbi, &key, &value);
    if (rc == 0)
        return tree_link_node(&value, node);
    if (rc != MDB_NOTFOUND || !make)
        return rc;
    rc = node_new(txn, dbi, node);
    return rc != 0 ? rc : put_u64(txn, dbi, &key, *node);
}

int tree_put(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name, MDB_val *value,
             unsigned flags)
{
    assert(bucket_id < TREE_NODE_FIRST);
    uint64_t node = bucket_id;
    size_t len = strlen(name);
    assert(len <= TREE_NAME_MAX);
    for (; len >= TREE_CHUNK; name += TREE_CHUNK, len -= TREE_CHUNK) {
        int rc = link_follow(txn, dbi, &node, name, true);
        if (rc != 0)
            return rc;
    }
    struct tree_key k;
    tree_key_set(&k, node, name, len);
    MDB_val key = val_of(k.bytes, k.len);
    return mdb_put(txn, dbi, &key, value, flags);
}

/* The first entry of `node` into *key and *value; MDB_NOTFOUND where it is empty. */
static int node_first(MDB_txn *txn, MDB_dbi dbi, uint64_t node, MDB_val *key, MDB_val *value)
{
    struct tree_key k;
    tree_key_set(&k, node, "", 0);
    *key = val_of(k.bytes, k.len);
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(txn, dbi, &cursor);
    if (rc != 0)
        return rc;
    rc = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    mdb_cursor_close(cursor);
    const char *rest;
    size_t len;
    if (rc == 0 && !tree_key_in_node(key, node, &rest, &len))
        rc = MDB_NOTFOUND;
    return rc;
}

static int entry_delete(MDB_txn *txn, MDB_dbi dbi, uint64_t node, const char *rest, size_t len)
{
    struct tree_key k;
    tree_key_set(&k, node, rest, len);
    MDB_val key = val_of(k.bytes, k.len);
    return mdb_del(txn, dbi, &key, NULL);
}

int tree_delete(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name)
{
    uint64_t path[TREE_LEVELS] = {bucket_id};
    size_t len = strlen(name), depth = 0;
    assert(len <= TREE_NAME_MAX);
    for (; len >= TREE_CHUNK; name += TREE_CHUNK, len -= TREE_CHUNK) {
        uint64_t node = path[depth];
        int rc = link_follow(txn, dbi, &node, name, false);
        if (rc != 0)
            return rc;
        path[++depth] = node;
    }
    int rc = entry_delete(txn, dbi, path[depth], name, len);
    for (; rc == 0 && depth > 0; depth--) {
        MDB_val key, value;
        rc = node_first(txn, dbi, path[depth], &key, &value);
        if (rc != MDB_NOTFOUND)
            return rc;
        name -= TREE_CHUNK;
        rc = entry_delete(txn, dbi, path[depth - 1], name, TREE_CHUNK);
    }
    return rc;
}

static int drop_level(MDB_txn *txn, MDB_dbi dbi, uint64_t node, unsigned level, size_t *budget);

/* Deletes the first entry of `node`; for a link, first what is behind it.  MDB_NOTFOUND: empty. */
static int drop_first(MDB_txn *txn, MDB_dbi dbi, uint64_t node, unsigned level, size_t *budget)
{
    MDB_val key, value;
    int rc = node_first(txn, dbi, node, &key, &value);
    if (rc != 0)
        return rc;
    if (key.mv_size > TREE_KEY_MAX)
        return MDB_CORRUPTED;
    struct tree_key k = {.len = key.mv_size}; /* a copy: deleting moves what LMDB points to */
    memcpy(k.bytes, key.mv_data, key.mv_size);
    if (k.len == TREE_KEY_MAX) {
        uint64_t child;
        rc = tree_link_node(&value, &child);
        if (rc == 0)
            rc = drop_level(txn, dbi, child, level + 1, budget);
        if (rc != 0 || *budget == 0)
            return rc;
    }
    key = val_of(k.bytes, k.len);
    (*budget)--;
    return mdb_del(txn, dbi, &key, NULL);
}

/* A link of a damaged page may lead back to where it is. */
static int drop_level(MDB_txn *txn, MDB_dbi dbi, uint64_t node, unsigned level, size_t *budget)
{
    int rc = level < TREE_LEVELS ? 0 : MDB_CORRUPTED;
    while (rc == 0 && *budget > 0)
        rc = drop_first(txn, dbi, node, level, budget);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int tree_drop(MDB_txn *txn, MDB_dbi dbi, uint64_t node, size_t *budget)
{
    return drop_level(txn, dbi, node, 0, budget);
}

/* --- marks of names that are gone ------------------------------------------------------------- */

static void gone_key(struct tree_key *k, uint64_t bucket_id, const char *name)
{
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits_withSeed(name, strlen(name), bucket_id));
    tree_key_set(k, TREE_NODE_GONE, (const char *)hash.digest, sizeof hash.digest);
}

int tree_mark_gone(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name)
{
    struct tree_key k;
    gone_key(&k, bucket_id, name);
    MDB_val key = val_of(k.bytes, k.len), nothing = val_of(NULL, 0);
    return mdb_put(txn, dbi, &key, &nothing, 0);
}

int tree_is_gone(MDB_txn *txn, MDB_dbi dbi, uint64_t bucket_id, const char *name, bool *gone)
{
    struct tree_key k;
    gone_key(&k, bucket_id, name);
    MDB_val key = val_of(k.bytes, k.len), value;
    int rc = mdb_get(txn, dbi, &key, &value);
    *gone = rc == 0;
    return rc == MDB_NOTFOUND ? 0 : rc;
}
