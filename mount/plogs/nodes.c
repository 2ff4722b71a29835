#include "mount/plogs/nodes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

enum { ROOT_ID = 1 };

static size_t slot_of(const char *key)
{
    return XXH3_64bits(key, strlen(key)) % PLOG_NODES_SLOTS;
}

static void node_init(struct plog_node *node, const char *key)
{
    node->key = xstrdup(key);
    node->mtime_ms = -1;
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr); /* an open or close gets its turn however many read */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&node->use, &attr);
    pthread_rwlockattr_destroy(&attr);
}

static void node_done(struct plog_node *node)
{
    assert(node->writer == NULL);
    pthread_rwlock_destroy(&node->use);
    free(node->key);
}

void plog_nodes_init(struct plog_nodes *n, const char *root_prefix)
{
    *n = (struct plog_nodes){.root = {.is_directory = true, .inode = ROOT_ID}};
    pthread_mutex_init(&n->lock, NULL);
    node_init(&n->root, root_prefix);
}

static void chain_done(struct plog_node *node)
{
    while (node != NULL) {
        struct plog_node *next = node->chain;
        node_done(node);
        free(node);
        node = next;
    }
}

void plog_nodes_done(struct plog_nodes *n)
{
    for (size_t i = 0; i < PLOG_NODES_SLOTS; i++)
        chain_done(n->slots[i]);
    chain_done(n->gone);
    node_done(&n->root);
    pthread_mutex_destroy(&n->lock);
}

/* ---- with the lock ---- */

static struct plog_node *find(struct plog_nodes *n, const char *key)
{
    struct plog_node *node = n->slots[slot_of(key)];
    while (node != NULL && strcmp(node->key, key) != 0)
        node = node->chain;
    return node;
}

static struct plog_node **chain_of(struct plog_nodes *n, const struct plog_node *node)
{
    return node->is_gone ? &n->gone : &n->slots[slot_of(node->key)];
}

static void enter(struct plog_nodes *n, struct plog_node *node)
{
    struct plog_node **at = chain_of(n, node);
    node->chain = *at;
    *at = node;
}

static void leave(struct plog_nodes *n, struct plog_node *node)
{
    struct plog_node **at = chain_of(n, node);
    while (*at != node)
        at = &(*at)->chain;
    *at = node->chain;
}

static void end_name(struct plog_nodes *n, struct plog_node *node)
{
    if (node->is_gone)
        return;
    leave(n, node);
    node->is_gone = true;
    enter(n, node);
}

static void give_back(struct plog_nodes *n, struct plog_node *node, uint64_t uses)
{
    assert(node->uses >= uses);
    node->uses -= uses;
    if (node->uses > 0)
        return;
    leave(n, node);
    node_done(node);
    free(node);
}

static bool is_same(const struct plog_node *node, const struct plog_node_is *is)
{
    return node->is_directory == is->is_directory && node->is_flat == is->is_flat &&
           strcmp(node->version, is->version) == 0;
}

/* ---- without ---- */

struct plog_node *plog_nodes_take(struct plog_nodes *n, const struct plog_node_is *is)
{
    pthread_mutex_lock(&n->lock);
    struct plog_node *node = find(n, is->key);
    if (node != NULL && !is_same(node, is)) {
        end_name(n, node);
        node = NULL;
    }
    if (node == NULL) {
        node = xcalloc(1, sizeof *node);
        node_init(node, is->key);
        node->is_directory = is->is_directory;
        node->is_flat = is->is_flat;
        node->inode = is->inode;
        snprintf(node->version, sizeof node->version, "%s", is->version);
        enter(n, node);
    }
    node->uses++;
    pthread_mutex_unlock(&n->lock);
    return node;
}

struct plog_node *plog_nodes_find(struct plog_nodes *n, const char *key)
{
    pthread_mutex_lock(&n->lock);
    struct plog_node *node = find(n, key);
    if (node != NULL)
        node->uses++;
    pthread_mutex_unlock(&n->lock);
    return node;
}

void plog_nodes_use(struct plog_nodes *n, struct plog_node *node)
{
    if (node == &n->root)
        return;
    pthread_mutex_lock(&n->lock);
    node->uses++;
    pthread_mutex_unlock(&n->lock);
}

void plog_nodes_forget(struct plog_nodes *n, struct plog_node *node, uint64_t uses)
{
    if (node == &n->root)
        return;
    pthread_mutex_lock(&n->lock);
    give_back(n, node, uses);
    pthread_mutex_unlock(&n->lock);
}

void plog_nodes_remove(struct plog_nodes *n, struct plog_node *node)
{
    pthread_mutex_lock(&n->lock);
    end_name(n, node);
    pthread_mutex_unlock(&n->lock);
}

void plog_nodes_replace(struct plog_nodes *n, struct plog_node *node, const char *id)
{
    pthread_mutex_lock(&n->lock);
    snprintf(node->version, sizeof node->version, "%s", id);
    node->is_flat = false;
    pthread_mutex_unlock(&n->lock);
}

void plog_nodes_rename(struct plog_nodes *n, struct plog_node *node, const char *key)
{
    pthread_mutex_lock(&n->lock);
    struct plog_node *before = find(n, key);
    if (before != NULL)
        end_name(n, before);
    if (!node->is_gone) {
        leave(n, node);
        free(node->key);
        node->key = xstrdup(key);
        enter(n, node);
    }
    pthread_mutex_unlock(&n->lock);
}

uint64_t plog_nodes_id(const struct plog_nodes *n, const struct plog_node *node)
{
    return node == &n->root ? ROOT_ID : (uint64_t)(uintptr_t)node;
}

struct plog_node *plog_nodes_of(struct plog_nodes *n, uint64_t id)
{
    return id == ROOT_ID ? &n->root : (struct plog_node *)(uintptr_t)id;
}
